# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
class E(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = 3
        self.l = nn.Linear(1, 1)

    def get_extra_state(self):
        return {"v": self.v}

    def set_extra_state(self, s):
        self.v = s["v"]


m = E()
s = m.state_dict()
print(list(s), s["_extra_state"])
n = E()
n.v = 5
n.load_state_dict(s)
print(n.v)
del s["_extra_state"]
T(lambda: n.load_state_dict(s))
p = nn.Module()
p.l = nn.Linear(1, 1)
T(lambda: p.load_state_dict(m.state_dict()))
print(p.load_state_dict(m.state_dict(), strict=False))
