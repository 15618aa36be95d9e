"""What is said about arguments that do not fit: PyTorch's words, for functions and methods. Right values: PyTorch 2.13."""

import pytest
import torch
import torch.nn.functional as F

X = torch.ones(2, 3)
ONE = [
    (lambda: torch.topk(X), 'topk() missing 1 required positional arguments: "k"'),
    (lambda: X.transpose(0), 'transpose() missing 1 required positional arguments: "dim1"'),
    (lambda: X.index_select(), 'index_select() missing 2 required positional argument: "dim", "index"'),
    (lambda: torch.zeros(), 'zeros() missing 1 required positional arguments: "size"'),
    (lambda: X.permute(), 'permute() missing 1 required positional arguments: "dims"'),
    (lambda: torch.linalg.inv(), 'linalg_inv() missing 1 required positional arguments: "A"'),
    (lambda: F.cross_entropy(X), "cross_entropy() missing 1 required positional argument: 'target'"),
    (lambda: torch.sin(X, X), "sin() takes 1 positional argument but 2 were given"),
    (lambda: X.topk(1, 2, 3, 4, 5), "topk() takes from 1 to 4 positional arguments but 5 were given"),
    (lambda: torch.max(X, 1, 2, 3), "max() takes from 2 to 3 positional arguments but 4 were given"),
    (lambda: X.unsqueeze("a"), "unsqueeze(): argument 'dim' (position 1) must be int, not str"),
    (lambda: torch.unsqueeze(X, "a"), "unsqueeze(): argument 'dim' (position 2) must be int, not str"),
    (lambda: X.mul_("a"), "mul_(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: torch.fft.fft("a"), "fft_fft(): argument 'input' (position 1) must be Tensor, not str"),
    (lambda: torch.index_select(X, 0, [1]), "index_select(): argument 'index' (position 3) must be Tensor, not list"),
    (lambda: torch.zeros([1.5]), "zeros(): argument 'size' (position 1) must be tuple of ints, but found element of type float at pos 0"),
    (lambda: torch.cat([X, 1]), "expected Tensor as element 1 in argument 0, but got int"),
    (lambda: torch.stack([X, None]), "expected Tensor as element 1 in argument 0, but got NoneType"),
    (lambda: torch.from_numpy([1]), "expected np.ndarray (got list)"),
]
SEVERAL = [
    (lambda: torch.max(X, "a"), """max() received an invalid combination of arguments - got (Tensor, str), but expected one of:
 * (Tensor input, *, Tensor out = None)
 * (Tensor input, Tensor other, *, Tensor out = None)
 * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)
"""),
    (lambda: X.squeeze("a"), """squeeze() received an invalid combination of arguments - got (str), but expected one of:
 * ()
      didn't match because some of the arguments have invalid types: (!str!)
 * (int dim)
      didn't match because some of the arguments have invalid types: (!str!)
 * (tuple of ints dim)
      didn't match because some of the arguments have invalid types: (!str!)
"""),
    (lambda: X.masked_fill(X > 0, "a"),
     """masked_fill() received an invalid combination of arguments - got (Tensor, str), but expected one of:
 * (Tensor mask, Tensor value)
      didn't match because some of the arguments have invalid types: (Tensor, !str!)
 * (Tensor mask, Number value)
      didn't match because some of the arguments have invalid types: (Tensor, !str!)
"""),
    (lambda: torch.pow(X), """pow() received an invalid combination of arguments - got (Tensor), but expected one of:
 * (Tensor input, Tensor exponent, *, Tensor out = None)
 * (Number self, Tensor exponent, *, Tensor out = None)
 * (Tensor input, Number exponent, *, Tensor out = None)
"""),
    (lambda: X.fill_("a"), """fill_() received an invalid combination of arguments - got (str), but expected one of:
 * (Tensor value)
      didn't match because some of the arguments have invalid types: (!str!)
 * (Number value)
      didn't match because some of the arguments have invalid types: (!str!)
"""),
]


@pytest.mark.parametrize("call, text", ONE + SEVERAL)
def test_what_is_said_about_arguments(call, text):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == text


def test_an_error_inside_of_an_operator_keeps_its_own_words():
    class Odd(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return torch.topk(args[0].as_subclass(torch.Tensor))

    with pytest.raises(TypeError, match="topk"):
        X.as_subclass(Odd).sum()
