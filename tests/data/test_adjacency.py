from __future__ import annotations

import numpy as np
import pytest

from saen.data import _adjacency
from saen.data._adjacency import Entries, by_column, is_symmetric


@pytest.mark.parametrize("max_sorted", [0, 10**9], ids=["scipy", "sorted"])
def test_adjacency_is_transposed_by_scipy_or_by_sorting_with_the_same_result(
    max_sorted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_adjacency, "MAX_SORTED", max_sorted)
    pairs = np.unique(np.random.default_rng(0).integers(0, 30, (200, 2)), axis=0)
    listed = Entries.sorted(pairs, 30, {"number": np.arange(len(pairs))}, "error")
    order = by_column(listed.indptr, listed.columns)
    assert order.tolist() == np.lexsort((pairs[:, 0], pairs[:, 1])).tolist()
    both = listed.symmetrised()
    assert not is_symmetric(listed.indptr, listed.columns)
    assert is_symmetric(both.indptr, both.columns)
    numbers = {tuple(pair): number for number, pair in enumerate(pairs.tolist())}
    rows = np.repeat(np.arange(30), np.diff(both.indptr)).tolist()
    found = zip(rows, both.columns.tolist(), both.values["number"].tolist(), strict=True)
    assert all(numbers.get((a, b), numbers.get((b, a))) == number for a, b, number in found)
