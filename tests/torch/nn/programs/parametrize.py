# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
import copy
import pickle

P = nn.utils.parametrize


class Sym(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, x):
        return x.triu()


m = nn.Linear(3, 3)
P.register_parametrization(m, "weight", Sym())
print(
    m,
    list(m.state_dict()),
    type(m).__name__,
    (m.weight == m.weight.T).all(),
    P.is_parametrized(m),
    P.is_parametrized(m, "bias"),
    P.type_before_parametrizations(m).__name__,
)
with P.cached():
    print(m.weight is m.weight)
print(m.weight is m.weight)
m.weight = torch.arange(9.0).view(3, 3)
print(m.weight, m.parametrizations.weight.original)


class Twice(nn.Module):
    def forward(self, x):
        return x * 2


P.register_parametrization(m, "weight", Twice())
print(m, m.weight)


def f():
    m.weight = torch.ones(3, 3)


T(f)
P.remove_parametrizations(m, "weight")
print(m, m.weight, type(m).__name__, list(m.state_dict()))
T(lambda: P.remove_parametrizations(m, "weight"))
T(lambda: P.register_parametrization(m, "foo", Sym()))


class Bad(nn.Module):
    def forward(self, x):
        return x[:1]


T(lambda: P.register_parametrization(nn.Linear(3, 3), "weight", Bad()))
print(P.register_parametrization(nn.Linear(3, 3), "weight", Bad(), unsafe=True).weight.shape)
m = P.register_parametrization(nn.Linear(3, 3), "weight", Sym())
c = copy.deepcopy(m)
print(c, (c.weight == m.weight).all())
T(lambda: pickle.dumps(m))
x = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
y = nn.utils.parametrizations.orthogonal(nn.Linear(2, 5), orthogonal_map="householder", use_trivialization=False)
print(x.weight, y.weight, x, y)
x.weight = torch.eye(3)
print(x.weight)
T(lambda: nn.utils.parametrizations.orthogonal(nn.Linear(3, 3), "bias"))
T(lambda: nn.utils.parametrizations.orthogonal(nn.Linear(3, 3), "zz"))
T(lambda: nn.utils.parametrizations.orthogonal(nn.Linear(3, 3), orthogonal_map="zz"))
w = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
print(list(w.state_dict()))
old = nn.utils.weight_norm(nn.Linear(3, 2))
print(w.load_state_dict(old.state_dict()))
T(lambda: nn.utils.weight_norm(old))
print(nn.utils.remove_weight_norm(old), list(old.state_dict()))
T(lambda: nn.utils.remove_weight_norm(old))
s = nn.utils.parametrizations.spectral_norm(nn.Conv2d(2, 3, 2), n_power_iterations=2)
print(s, s.weight.sum(), list(s.state_dict()))
T(lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0))
s = nn.utils.spectral_norm(nn.Linear(2, 3))
s(torch.ones(1, 2))
sd = s.state_dict()
print(list(sd), sd._metadata, s.load_state_dict(sd))
print(nn.utils.remove_spectral_norm(s).weight, s._forward_pre_hooks, s._state_dict_hooks)
T(lambda: nn.utils.remove_spectral_norm(s))
b = nn.Linear(3, 3)
a = P.transfer_parametrizations_and_params(m, b)
print(b)
