# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
class A(nn.Module):
    def __init__(self):
        self.x = nn.Parameter(torch.ones(1))


class B(nn.Module):
    def __init__(self):
        self.x = nn.Linear(1, 1)


class C(nn.Module):
    def __init__(self):
        self.register_buffer("x", torch.ones(1))


class D(nn.Module):
    def __init__(self):
        self.register_parameter("x", None)


class E(nn.Module):
    def __init__(self):
        self.x = nn.Buffer(torch.ones(1))


class G(nn.Module):
    def __init__(self):
        self.add_module("x", None)


for c in (A, B, C, D, E, G):
    T(c)
T(lambda: nn.Module(1))
T(lambda: nn.Module(a=1))
T(lambda: nn.Module().forward(1))
T(lambda: nn.Module()(1))
