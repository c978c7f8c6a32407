"""NestedData in files: one JSON object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np

from saen._util.atomic import atomic_write
from saen._util.strings import first_duplicate
from saen.data.nested import NestedData
from saen.errors import FileError, InputError
from saen.io.formats.format import Format
from saen.io.formats.jsonl import SUFFIXES, all_keys, example_keys
from saen.io.options import ReadOptions
from saen.io.parsing.records import BadGraphs, extra_columns, id_array
from saen.io.parsing.records import partial_targets as target_array
from saen.io.parsing.text_files import numbered_lines, parse_json_line


def write_nested(data: NestedData, path: str | Path) -> None:
    """Write nested data to a file of JSON lines, in the format that `read_nested` reads.

    Parameters
    ----------
    data : NestedData
        The data to write.
    path : str | Path
        The file.

    Raises
    ------
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> pets = NestedData([{"word": ["the", "dog"]}], ["a"], levels=("words", "notes"))
    >>> file = getfixture("tmp_path") / "pets.jsonl"
    >>> write_nested(pets, file)
    >>> print(file.read_text().strip())
    {"levels": ["words", "notes"]}
    {"parts": {"word": ["the", "dog"]}, "target": "a"}
    """
    lines: list[dict[str, Any]] = [{"parts": parts} for parts in data.to_mappings()]
    if data.targets is not None:
        for line, target in zip(lines, data.targets.tolist(), strict=True):
            line["target"] = target
    if not np.array_equal(data.ids, np.arange(len(data))):
        for line, own_id in zip(lines, data.ids.tolist(), strict=True):
            line["id"] = own_id
    for name, column in (data.extra or {}).items():
        for line, value in zip(lines, column.tolist(), strict=True):
            line.setdefault(name, value)
    header = {"levels": list(data.levels)}
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in (header, *lines))


def read_nested(
    path: str | Path,
    *,
    target: str | None = None,
    id: str | None = None,
    partial_targets: bool = False,
    all_columns: bool = False,
) -> NestedData:
    """Read nested data from a file of JSON lines, one example per line.

    A line is `{"parts": parent}` with an optional `"target"` and `"id"`. A parent is an object that
    maps roles to lists of parts; a part is a parent, a label (an integer, a string, or a list of
    these) or a number with a decimal point. Other keys are `extra`. The first line may be
    `{"levels": [names, bottom first]}`. Blank lines are ignored. The data are named after the file.

    Parameters
    ----------
    path : str | Path
        The file.
    target : str | None, default=None
        The key of the targets. None: `target`.
    id : str | None, default=None
        The key of the ids. None: `id`.
    partial_targets : bool, default=False
        Whether some examples may lack a target.
    all_columns : bool, default=False
        Whether to keep all other keys as `extra`, whatever their values.

    Raises
    ------
    FileError
        With the line for anything else.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "pets.jsonl"
    >>> _ = file.write_text('{"parts": {"word": ["the", "dog"]}, "target": "a"}')
    >>> read_nested(file)
    NestedData(pets: 2 level 0 → 1 examples; 1 class)
    """
    path = Path(path)
    documents = _documents(path)
    line, first = next(documents, (0, None))
    header = first is not None and [*first] == ["levels"]
    rest = documents if first is None or header else chain([(line, first)], documents)
    targets: list[Any] = []
    ids: list[int | str] = []
    extra: list[dict[str, Any]] = []

    def items() -> Iterator[Any]:
        nonlocal line
        for line, document in rest:  # noqa: B007 (errors name it)
            value, own_id, others = example_keys(document, target, id, partial=partial_targets)
            parts = others.pop("parts", None)
            if "parts" not in document:
                keys = ", ".join(map(short, document)) or "none"
                raise InputError(
                    f"expected the key 'parts', optionally 'target' and 'id', found {keys}"
                )
            if not isinstance(parts, dict):
                raise InputError(f"'parts' must map roles to lists of parts, not {short(parts)}")
            ids.append(len(ids) if own_id is None else own_id)
            targets.append(value)
            extra.append(all_keys(document, id, ["parts"]) if all_columns else others)
            kind, expected = _kind(targets[-1]), _kind(targets[0])
            if kind != expected and not partial_targets:
                raise InputError(f"{kind}, but the first example has {expected}")
            yield parts

    try:
        levels = first["levels"] if first is not None and header else ()
        data = NestedData(items(), levels=levels, name=path.stem)
        data = data.with_ids(id_array(ids)).with_extra(extra_columns(extra))
    except InputError as error:
        raise FileError(str(error), path=path, line=line) from None
    try:
        if partial_targets:
            return data.with_targets(target_array(targets))
        return data.with_targets(targets if targets and targets[0] is not None else None)
    except InputError as error:
        raise FileError(str(error), path=path) from None


def _looks_nested(path: Path, options: ReadOptions) -> bool:
    """Whether the first line of a file has levels or parts."""
    if not path.is_file():
        return False
    _, first = next(numbered_lines(path), (0, b""))
    keys = re.findall(rb'"[^"]*"(?=\s*:)', first)
    return keys[:1] == [b'"levels"'] or b'"parts"' in keys


def _documents(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the object of every line that is not blank."""
    for line, data in numbered_lines(path):
        document = parse_json_line(data, path, line, _DECODER)
        if not isinstance(document, dict):
            raise FileError(f"expected an object, found {short(document)}", path=path, line=line)
        yield line, document


def _kind(target: Any) -> str:
    if target is None:
        return "no target"
    return "a string as target" if isinstance(target, str) else "a number as target"


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are distinct; among parts, a list is a label with several values."""
    out = {
        key: [tuple(part) if isinstance(part, list) else part for part in value]
        if isinstance(value, list)
        else value
        for key, value in pairs
    }
    if len(out) < len(pairs):
        twice = first_duplicate(key for key, _ in pairs)
        raise InputError(f"duplicate key {twice!r} in one object")
    return out


_DECODER = json.JSONDecoder(object_pairs_hook=_mapping)


def _read(path: Path, options: ReadOptions, _: BadGraphs) -> NestedData:
    return read_nested(
        path,
        target=options.target,
        id=options.id,
        partial_targets=options.partial_targets,
        all_columns=options.all_columns,
    )


NESTED = Format(
    "jsonl",
    "JSON lines",
    SUFFIXES,
    "nested",
    ("target", "id"),
    _read,
    write=write_nested,
    looks=_looks_nested,
)
