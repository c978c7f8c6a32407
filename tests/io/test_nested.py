"""Files of nested data: one JSON object per line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import FileError
from saen.data.nested import NestedData
from saen.io.formats.nested import read_nested, write_nested
from tests.references.nested import collections

GOOD = '{"parts": {"x": [1]}}'


@given(collections(), st.sampled_from([None, "strings", "integers", "reals"]))
def test_nested_data_that_are_written_are_read_back(tmp_path_factory, drawn, kind):
    items, levels = drawn
    n = len(items)
    targets = {
        None: None,
        "strings": np.array([f"clàss {i}" for i in range(n)], dtype=np.str_),
        "integers": np.arange(n) - 1,
        "reals": np.arange(n) / 3,
    }[kind if n else None]
    data = NestedData(items, targets, levels=levels)
    path = tmp_path_factory.mktemp("nested") / "drawn.jsonl"
    write_nested(data, path)
    again = read_nested(path)
    assert again == data
    assert again.name == "drawn"
    assert [file.name for file in path.parent.iterdir()] == ["drawn.jsonl"]


def test_nested_files_have_one_json_object_per_line(tmp_path):
    parts = [{"sentence": [{"word": ["the", "dog"]}]}, {}]
    write_nested(NestedData(parts, ["dog", "none"], levels=("a", "b", "c")), tmp_path / "x.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert lines[0] == {"levels": ["a", "b", "c"]}
    assert lines[1:] == [
        {"parts": parts[0], "target": "dog"},
        {"parts": parts[1], "target": "none"},
    ]


def test_nested_files_need_no_levels_and_may_have_blank_lines(tmp_path):
    path = tmp_path / "toy.jsonl"
    path.write_text('\n{"parts": {"x": [1, ["a", [2]]]}}\n\n{"parts": {}}\n', encoding="utf-8")
    assert read_nested(path) == NestedData([[("x", 1), ("x", ("a", (2,)))], []])
    path.write_text("", encoding="utf-8")
    assert len(read_nested(path)) == 0
    path.write_text('{"levels": ["a", "b", "c"]}', encoding="utf-8")
    assert read_nested(path).levels == ("a", "b", "c")


KEYS = "expected the key 'parts', optionally 'target' and 'id', found"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f"{GOOD}\n[]", 2, "expected an object, found []"),
        (f"{GOOD}\n\n7", 3, "expected an object, found 7"),
        ("{", 1, "invalid JSON: Expecting property name enclosed in double quotes at column 2"),
        ('{"parts": {"x": [1], "x": [2]}}', 1, "duplicate key 'x' in one object"),
        ("[" * 100_000, 1, "nested too deeply"),
        (f'{GOOD}\n{{"part": {{}}}}', 2, f"{KEYS} 'part'"),
        ("{}", 1, f"{KEYS} none"),
        (f'{GOOD}\n{{"levels": ["a", "b"]}}', 2, f"{KEYS} 'levels'"),
        ('{"levels": 7}', 1, "levels "),
        ('{"parts": [["x", 1]]}', 1, "'parts' must map roles to lists of parts, not [('x', 1)]"),
        (f'{{"levels": ["a", "b", "c"]}}\n{GOOD}', 2, ""),
        (f'{{"parts": {{}}, "target": 0}}\n{GOOD}', 2,
         "no target, but the first example has a number as target"),
        (f'{GOOD}\n{{"parts": {{}}, "target": 0}}', 2,
         "a number as target, but the first example has no target"),
        ('{"parts": {}, "target": "a"}\n{"parts": {}, "target": 1}', 2,
         "a number as target, but the first example has a string as target"),
        ('{"parts": {}, "target": {}}', 1, "the target must be a string, a number, true or "
         "false, not {}"),
        (b'{"parts": {"\xff": []}}', 1, "not UTF-8 (byte 0xff at column 13)"),
    ],
)  # fmt: skip
def test_nested_files_that_are_invalid_are_refused_with_the_line(tmp_path, text, line, message):
    path = tmp_path / "toy.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError) as error:
        read_nested(path)
    assert error.value.line == line
    assert str(error.value).startswith(f"{path}{f', line {line}' if line else ''}: {message}")


def test_nested_files_that_cannot_be_opened_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"none\.jsonl: no such file or folder$"):
        read_nested(tmp_path / "none.jsonl")
    with pytest.raises(FileError, match=r"cannot be read \(.*[Ii]s a directory"):
        read_nested(tmp_path)
    with pytest.raises(FileError, match=r"nowhere/x.jsonl: cannot be written"):
        write_nested(NestedData([]), tmp_path / "nowhere" / "x.jsonl")
