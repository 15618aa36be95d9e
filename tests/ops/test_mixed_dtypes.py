"""Operands of different dtypes where PyTorch 2.13 takes none: its errors, and what it does take."""

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

X, D, W, B = torch.ones(2, 3), torch.ones(2, 3).double(), torch.ones(4, 3), torch.ones(4)
H = X.bfloat16()
REFUSED = [
    (lambda: F.linear(D, W, B), "mat1 and mat2 must have the same dtype, but got Double and Float"),
    (lambda: F.linear(D[None], W, B), "mat1 and mat2 must have the same dtype, but got Double and Float"),
    (lambda: F.linear(D, W, B.double()), "self and mat2 must have the same dtype, but got Double and Float"),
    (lambda: F.linear(D, W), "expected m1 and m2 to have the same dtype, but got: double != float"),
    (lambda: F.linear(X.long(), W), "expected m1 and m2 to have the same dtype, but got: long int != float"),
    (lambda: torch.addmm(B, D, W.t()), "mat1 and mat2 must have the same dtype, but got Double and Float"),
    (lambda: torch.mv(D, W[0]), "addmv input tensors must have the same dtype, but got Float, Double, and Float"),
    (lambda: torch.baddbmm(B, D[None], W.t()[None]), "Input dtypes must be the same, got: input float, batch1: double, batch2: float"),
    (lambda: torch.inner(D, W), "both inputs should have same dtype"),
    (lambda: torch.tensordot(D, W, ([1], [1])), "both inputs should have same dtype"),
    (lambda: torch.einsum("ij,kj->ik", D, W), "expected scalar type Double but found Float"),
    (lambda: F.bilinear(D, D, torch.ones(2, 3, 3)),
     "All tensors must have the same dtype, got input1: double, input2: double, weight: float"),
    (lambda: F.layer_norm(D, (3,), W[0]), "mixed dtype (CPU): all inputs must share same datatype."),
    (lambda: F.layer_norm(X, (3,), D[0]), "mixed dtype (CPU): expect parameter to have scalar type of Float"),
    (lambda: nn.BatchNorm1d(3)(D), "mixed dtype (CPU): all inputs must share same datatype."),
    (lambda: F.group_norm(D, 1, W[0]), "mixed dtype (CPU): all inputs must share same datatype."),
    (lambda: F.instance_norm(D[None], None, None, torch.ones(2)), "mixed dtype (CPU): all inputs must share same datatype."),
    (lambda: F.conv1d(H[None], torch.ones(4, 2, 1)), "Input type (CPUBFloat16Type) and weight type (torch.FloatTensor) should be the same "
                                                   "or input should be a MKLDNN tensor and weight is a dense tensor"),
    (lambda: F.binary_cross_entropy_with_logits(X, X.long()), "result type Float can't be cast to the desired output type Long"),
    (lambda: F.kl_div(X, X.long(), reduction="sum"), "kl_div: Integral inputs not supported."),
    (lambda: nn.GRUCell(3, 4)(D), "mat1 and mat2 must have the same dtype, but got Double and Float"),
]


@pytest.mark.parametrize("call, text", REFUSED)
def test_mixed_dtypes_are_refused(call, text):
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == text


def test_mixed_dtypes_that_are_taken():
    assert F.layer_norm(H, (3,), W[0], W[0]).dtype is torch.bfloat16
    assert nn.BatchNorm1d(3)(H).dtype is torch.bfloat16
    assert torch.einsum("ij,ij->ij", X, D).dtype is torch.float64
    assert torch.outer(X[0], D[0]).dtype is torch.float64
    assert F.binary_cross_entropy_with_logits(X, D).dtype is torch.float64
    assert F.binary_cross_entropy_with_logits(D, X).dtype is torch.float32


def test_error_for_a_saved_tensor_names_types_as_they_always_were():
    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"\[CPUBFloat16Type \[2\]\], which is output 0 of Exp, is at version 1"):
        y.sum().backward()
