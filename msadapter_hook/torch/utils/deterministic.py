"""torch.utils.deterministic: what determinism asks of memory that nobody has written to."""

#: Memory of `empty` and its kin is filled with a known value (here it always is).
fill_uninitialized_memory = True
