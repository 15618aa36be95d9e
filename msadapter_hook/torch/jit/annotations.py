"""torch.jit.annotations: types that only scripts know."""

from typing import List  # noqa: UP035 - what annotations in scripts compare with


class _BroadcastingList:
    """`BroadcastingList2[int]`: one value or that many. As an annotation here, a list."""

    def __getitem__(self, kind):
        return List[kind]  # noqa: UP006 - what annotations in scripts compare with


for _n in range(1, 7):
    globals()[f"BroadcastingList{_n}"] = _BroadcastingList()
