"""The patterns of English that `make lint` looks for."""

from __future__ import annotations

import pytest

from tests.english import PATTERNS, complaints


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Good.\nOf a blend, nodes are explained.", [2]),
        ("A class without members is a warning.", [1]),
        ("Other settings are refused.", [1]),
        ("One\ntwo stands beside three, made anew.", [2, 2]),
        ("The training part is split.", [1]),
        ("A part of the training data, and a warning of it.", []),
        ("`beside` is code, and so is\n```sh\nsaen beside\n```\n", []),
    ],
)
def test_patterns_are_found_with_their_lines(text: str, lines: list[int]) -> None:
    assert [line for line, _ in complaints(text, PATTERNS)] == lines
