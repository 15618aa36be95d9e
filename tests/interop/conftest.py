"""Every test here starts from the same random numbers, of all three libraries: initializers, dropout, orders of datasets."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def seeds():
    import mindspore
    import torch

    mindspore.set_seed(0)
    torch.manual_seed(0)
    np.random.seed(0)
