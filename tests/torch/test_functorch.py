"""functorch: modules as functions of their parameters, served beside torch."""

import functorch
import pytest
import torch


def test_make_functional():
    model, x = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).eval(), torch.rand(4, 2)
    function, parameters, buffers = functorch.make_functional_with_buffers(model)
    assert torch.equal(function(parameters, buffers, x), model(x))
    with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
        functorch.make_functional(model)
    function, parameters = functorch.make_functional(torch.nn.Linear(2, 3))
    tangents = tuple(torch.ones_like(p) for p in parameters)
    _, out = functorch.jvp(lambda p: function(p, torch.ones(1, 2)), (parameters,), (tangents,))
    assert out.tolist() == [[3.0, 3.0, 3.0]]


def test_ensembles():
    models, x = [torch.nn.Linear(2, 3) for _ in range(4)], torch.rand(5, 2)
    function, parameters, buffers = functorch.combine_state_for_ensemble(models)
    out = functorch.vmap(function, in_dims=(0, 0, None))(parameters, buffers, x)
    assert torch.allclose(out, torch.stack([m(x) for m in models]))
