"""The parts of torch.func: mapping over samples, transforms by differentiation, calls of modules as functions."""
