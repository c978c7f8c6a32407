"""Any JSON as nested data: objects and lists become levels and roles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from saen._util.strings import boolean_text
from saen.data.nested import NestedData
from saen.errors import FileError, InputError
from saen.io.formats.jsonl import SUFFIXES, example_keys
from saen.io.formats.nested import NESTED
from saen.io.formats.registry import check_options
from saen.io.options import ReadOptions
from saen.io.parsing.records import id_array
from saen.io.parsing.text_files import numbered_lines, parse_json_line, read_text

CARRY = "carry"
"""The role of a value that is carried down to the level of the deepest ones."""
ITEM = "item"
VALUE = "value"


def from_json(
    documents: Iterable[Any],
    *,
    target: str | None = None,
    id: str | None = None,
    depth: int | None = None,
    name: str = "",
) -> NestedData:
    """Build nested data from what `json.loads` returns, one document per example.

    - An object has one part per key; the key is its role. The items of a list are parts with the
      role of the list's key, or `item` for a list within a list. Their order means nothing.
    - Strings are labels, and so are `true` and `false`. Numbers are numbers (a category that is
      written as a number belongs in quotes). `null` and what is missing are the same.
    - Values that lie less deep than the deepest are carried down, with the role `carry`.

    Parameters
    ----------
    documents : Iterable[Any]
        The documents. The target and the id of one are those under its keys `target` (or `label`)
        and `id`, if it has them; they are not parts.
    target : str | None, default=None
        Another key with the targets.
    id : str | None, default=None
        Another key with the ids.
    depth : int | None, default=None
        How many levels lie below the top. None: as many as the deepest document has. New data for a
        model need the depth that it was trained with.
    name : str, default=''
        The name of the dataset.

    Raises
    ------
    InputError
        For a document that is deeper than `depth`, or nested too deeply at all.

    Examples
    --------
    >>> rex = {"name": "Rex", "age": 3.5, "owners": [{"city": "Rome"}, {"city": "Oslo"}]}
    >>> from_json([rex], target="name")
    NestedData(3 level 0 → 3 level 1 → 1 examples; 1 class)
    >>> from_json([rex]).to_mappings()[0]["owners"]
    [{'city': ['Rome']}, {'city': ['Oslo']}]
    """
    examples = [_example(document, target, id) for document in documents]
    try:
        depths = [_depth(parts) for parts, _, _ in examples]
        deepest = max([1, *depths]) if depth is None else depth
        for number, own in enumerate(depths):
            if own > deepest:
                raise InputError(
                    f"document {number} has {own} levels below the top, expected at most {deepest}"
                )
        items = [_built(parts, deepest) for parts, _, _ in examples]
    except RecursionError:
        raise InputError("nested too deeply") from None
    targets = [value for _, value, _ in examples]
    known = [value is not None for value in targets]
    if any(known) and not all(known):
        raise InputError(f"document {known.index(False)} has no target, but others have one")
    levels = [*(f"level {number}" for number in range(deepest)), "examples"]
    ids = [number if own is None else own for number, (_, _, own) in enumerate(examples)]
    return NestedData(
        items, targets if any(known) else None, levels=levels, name=name, ids=id_array(ids)
    )


def read_any_json(path: Path, options: ReadOptions, depth: int | None = None) -> NestedData:
    """`from_json` of a file: JSON lines, or a `.json` file with a list of documents."""
    check_options(path.name, options, NESTED.options)
    try:
        documents = list(_documents(path))
        return from_json(
            documents, target=options.target, id=options.id, depth=depth, name=path.stem
        )
    except InputError as error:
        raise FileError(str(error), path=path) from None


def _documents(path: Path) -> Iterator[Any]:
    if path.suffix in SUFFIXES:
        for line, data in numbered_lines(path):
            yield parse_json_line(data, path, line, json.JSONDecoder())
        return
    if path.suffix != ".json":
        raise FileError(f"unknown format (known suffixes: .json, {', '.join(SUFFIXES)})", path=path)
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise FileError(f"invalid JSON: {error}", path=path) from None
    yield from content if isinstance(content, list) else [content]


def _example(document: Any, target: str | None, id: str | None) -> tuple[Any, Any, Any]:
    """Parts, target and id of a document."""
    if not isinstance(document, dict):
        parts = document if isinstance(document, list) else {VALUE: document}
        return parts, None, None
    value, own_id, parts = example_keys(document, target, id)
    return parts, value, own_id


def _parts(parent: Any) -> Iterator[tuple[str, Any]]:
    """The parts of an object or a list, each with its role."""
    pairs = parent.items() if isinstance(parent, dict) else [(ITEM, each) for each in parent]
    for key, value in pairs:
        # A list under a key is several parts, a list within a list is one.
        several = value if isinstance(parent, dict) and isinstance(value, list) else [value]
        for each in several:
            if each is not None:
                yield key or '""', each


def _depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max((_depth(part) for _, part in _parts(value)), default=0)


def _built(value: Any, depth: int) -> Any:
    """What `NestedData` reads: values `depth` levels below this one."""
    if isinstance(value, dict | list):
        return [(role, _built(part, depth - 1)) for role, part in _parts(value)]
    if depth:
        return [(CARRY, _built(value, depth - 1))]
    if isinstance(value, bool):
        return boolean_text(value)
    if isinstance(value, str):
        return value
    try:
        return float(value)
    except OverflowError:
        raise InputError("an integer is too large for a number") from None
