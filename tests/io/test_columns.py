"""Labels and attributes of nodes and edges, in JSON lines, GraphML and networkx alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saen.errors import InputError
from saen.io.parsing.columns import Items
from tests.io.refusals import refusal


def items(*values: Any, n_bytes: int | None = None) -> Items:
    """Nodes with these values under "x"; None is for a node without one."""
    data = [{} if value is None else {"x": value} for value in values]
    return Items("node", data, "node {}".format, n_bytes)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), None),
        ((None, None), None),
        ((1, np.int8(-2)), [1, -2]),
        (("a", "é"), ["a", "é"]),
        (((1, 2), [3, 4]), [[1, 2], [3, 4]]),
    ],
)
def test_labels_are_integers_strings_or_tuples_of_them(values: Any, expected: Any) -> None:
    labels = items(*values).labels("x")
    assert labels is None if expected is None else labels.tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), None),
        ((1, 2.5, True), [[1], [2.5], [1]]),
        (([1, 2], (3, 10**20)), [[1, 2], [3, 1e20]]),
        ((np.float32(0.5), np.array(2)), [[0.5], [2]]),
        ((np.arange(2), [0, 1]), [[0, 1], [0, 1]]),
        (([], []), [[], []]),
        ((float("inf"),), [[float("inf")]]),
    ],
)
def test_numbers_are_single_or_in_flat_lists(values: Any, expected: Any) -> None:
    numbers = items(*values).numbers("x")
    assert numbers is None if expected is None else numbers.tolist() == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1, None), "node 1 has no 'x', but others have one"),
        ((1, 1.5), "node 1: the label must be an integer or a string, not 1.5"),
        ((True,), "node 0: the label must be an integer or a string, not True"),
        (((1, 2), 3), "node 0: the label must be an integer or a string, not (1, 2)"),
        ((1, "a"), "node 1: the label is 'a', but that of node 0 is 1: use only strings or only "),
        (((1, 2), (3, "a")), "node 1: the label is 'a', but that of node 0 is 1: use only "),
        (((1,), (1, 2)), "node labels with several values need one number of them"),
        (((), ()), "node labels with several values need one number of them"),
        ((10**30,), "one of the node labels does not fit into 64 bits"),
        (("a\0",), "one of the node labels contains a null character"),
        (("\ud800",), "one of the node labels contains an unpaired surrogate"),
        (("x" * 5000, *[""] * 20_000), "one of 20,001 node labels has 5,000 characters, which is "),
    ],
)
def test_labels_that_are_invalid_are_named(values: Any, message: str) -> None:
    found = items(*values, n_bytes=100)
    assert refusal(InputError, found.labels, "x").startswith(message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1, "2"), "node 1: 'x' must be a finite number or a flat list of finite numbers, not '2'"),
        (([1, [2]],), "node 0: 'x' must be a finite number or a flat list of finite numbers, not "),
        ((0, float("nan")), "node 1: 'x' must be a finite number or a flat list of finite "),
        ((0, [10**400]), "node 1: 'x' must be a finite number or a flat list of finite "),
        (([1], [1, 2]), "node 1: 2 numbers in 'x', but 1 in that of node 0"),
    ],
)
def test_numbers_that_are_invalid_are_named(values: Any, message: str) -> None:
    found = items(*values, n_bytes=100)
    assert refusal(InputError, found.numbers, "x").startswith(message)
