"""Which of several equal elements PyTorch's selections name: its algorithms are not stable, so their moves are repeated here.

A row is given as ranks (equal elements, equal rank); the functions permute a list of positions by them. They run only for
rows where equal elements make a difference, and only up to `LIMIT` elements; beyond, the first of equal elements is named.
"""

import numpy as np

LIMIT = 200_000


def ranks(row) -> list:
    """Dense ranks of a row, NaN last and all equal."""
    return np.unique(row, return_inverse=True)[1].reshape(-1).tolist()


# ------------------------------------------------------------------------------------------------ quick select
def quick_select(key, k):
    """The position of the k-th smallest, by Hoare's selection (Numerical Recipes' form)."""
    at = list(range(len(key)))

    def swap(i, j):
        at[i], at[j] = at[j], at[i]

    def above(i, j):
        return key[at[i]] > key[at[j]]

    low, high = 0, len(key) - 1
    while high > low:
        if high == low + 1:
            if above(low, high):
                swap(low, high)
            break
        swap(low + (high - low) // 2, low + 1)
        if above(low + 1, high):
            swap(low + 1, high)
        if above(low, high):
            swap(low, high)
        if above(low + 1, low):
            swap(low + 1, low)
        i, j, pivot = low + 1, high, key[at[low]]
        while True:
            i += 1
            while pivot > key[at[i]]:
                i += 1
            j -= 1
            while key[at[j]] > pivot:
                j -= 1
            if j < i:
                break
            swap(i, j)
        swap(low, j)
        if j <= k:
            low = i
        if j >= k:
            high = j - 1
    return at[k]


# ------------------------------------------------------------------------------------------------ introselect, introsort, heaps
class Introspective:
    """`nth_element`, `sort` and `partial_sort` as the C++ library does them, on positions ordered by `key`."""

    def __init__(self, key):
        self.key = key
        self.at = list(range(len(key)))

    def _less(self, i, j):
        return self.key[self.at[i]] < self.key[self.at[j]]

    def _swap(self, i, j):
        at = self.at
        at[i], at[j] = at[j], at[i]

    def _partition(self, first, last):
        """Around the median of three, put first; gives the cut."""
        less, swap = self._less, self._swap
        a, b, c = first + 1, first + (last - first) // 2, last - 1
        if less(a, b):
            swap(first, b if less(b, c) else c if less(a, c) else a)
        else:
            swap(first, a if less(a, c) else c if less(b, c) else b)
        key, at = self.key, self.at
        pivot = key[at[first]]
        low, high = first + 1, last
        while True:
            while key[at[low]] < pivot:
                low += 1
            high -= 1
            while pivot < key[at[high]]:
                high -= 1
            if not low < high:
                return low
            swap(low, high)
            low += 1

    def _insert(self, first, last):
        at, key = self.at, self.key
        for i in range(first + 1, last):
            moved = at[i]
            j = i
            while j > first and key[moved] < key[at[j - 1]]:
                at[j] = at[j - 1]
                j -= 1
            at[j] = moved

    def nth_element(self, n):
        first, last = 0, len(self.at)
        depth = 2 * max(last.bit_length() - 1, 0)
        if not last or n == last:
            return self
        while last - first > 3:
            if depth == 0:
                self._heap_select(first, n + 1, last)
                self._swap(first, n)
                return self
            depth -= 1
            cut = self._partition(first, last)
            if cut <= n:
                first = cut
            else:
                last = cut
        self._insert(first, last)
        return self

    def sort(self, first, last):
        if last - first > 1:
            self._sort_loop(first, last, 2 * ((last - first).bit_length() - 1))
            self._insert(first, last)
        return self

    def _sort_loop(self, first, last, depth):
        while last - first > 16:
            if depth == 0:
                self._heap_select(first, last, last)
                self._sort_heap(first, last)
                return
            depth -= 1
            cut = self._partition(first, last)
            self._sort_loop(cut, last, depth)
            last = cut

    def partial_sort(self, middle):
        self._heap_select(0, middle, len(self.at))
        self._sort_heap(0, middle)
        return self

    def _sift(self, first, hole, length, value):
        """Put `value` into the heap at `hole`: down to a leaf along the larger children, then up again."""
        at, key = self.at, self.key
        top, child = hole, hole
        while child < (length - 1) // 2:
            child = 2 * (child + 1)
            if key[at[first + child]] < key[at[first + child - 1]]:
                child -= 1
            at[first + hole] = at[first + child]
            hole = child
        if length % 2 == 0 and child == (length - 2) // 2:
            child = 2 * (child + 1)
            at[first + hole] = at[first + child - 1]
            hole = child - 1
        parent = (hole - 1) // 2
        while hole > top and key[at[first + parent]] < key[value]:
            at[first + hole] = at[first + parent]
            hole = parent
            parent = (hole - 1) // 2
        at[first + hole] = value

    def _heap_select(self, first, middle, last):
        length = middle - first
        if length >= 2:
            for parent in range((length - 2) // 2, -1, -1):
                self._sift(first, parent, length, self.at[first + parent])
        for i in range(middle, last):
            if self._less(i, first):
                value = self.at[i]
                self.at[i] = self.at[first]
                self._sift(first, 0, length, value)

    def _sort_heap(self, first, last):
        while last - first > 1:
            last -= 1
            value = self.at[last]
            self.at[last] = self.at[first]
            self._sift(first, 0, last - first, value)


# ------------------------------------------------------------------------------------------------ the selections
def top(row, k, largest, ordered):
    """Positions of the k largest (smallest) of a row, in the order PyTorch gives them."""
    key = ranks(row)
    if largest:
        key = [-r for r in key]
    moves = Introspective(key)
    if k * 64 <= len(key):
        return moves.partial_sort(k).at[:k]
    moves.nth_element(k - 1)
    if ordered:
        moves.sort(0, k - 1)
    return moves.at[:k]


def kth(row, k):
    """Position of the k-th smallest by quick select: kthvalue."""
    return quick_select(ranks(row), k)


def sorted_positions(row):
    """Positions in the order that an unstable sort leaves them, NaN being neither less nor greater: modes."""
    moves = Introspective(row.tolist())
    try:
        return moves.sort(0, len(moves.at)).at
    except IndexError:  # a NaN pivot let the search run out of the row
        return np.argsort(row, kind="stable").tolist()
