"""NestedData in files: one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from reprlib import repr as short
from typing import Any

from saen._util.atomic import atomic_write
from saen.data.nested import NestedData
from saen.errors import FileError, InputError


def write_nested(structures: NestedData, path: str | Path) -> None:
    """Write structures to a file of JSON lines, which `read_nested` reads.

    >>> pets = NestedData([{"word": ["the", "dog"]}], ["a"], levels=("words", "notes"))
    >>> file = getfixture("tmp_path") / "pets.jsonl"
    >>> write_nested(pets, file)
    >>> print(file.read_text().strip())
    {"levels": ["words", "notes"]}
    {"parts": {"word": ["the", "dog"]}, "target": "a"}

    Raises `FileError` where the file cannot be written.
    """
    lines: list[dict[str, Any]] = [{"parts": parts} for parts in structures.to_mappings()]
    if structures.targets is not None:
        for line, target in zip(lines, structures.targets.tolist(), strict=True):
            line["target"] = target
    header = {"levels": list(structures.levels)}
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in (header, *lines))


def read_nested(path: str | Path) -> NestedData:
    """Read structures from a file of JSON lines, one structure each.

    A line is `{"parts": whole}` or `{"parts": whole, "target": value}`. A whole is an object that
    maps roles to lists of parts; a label is a whole number, a string, or a list of these. The first
    line may be `{"levels": [names, bottom first]}`. Empty lines are passed over. The collection is
    named after the file.

    >>> file = getfixture("tmp_path") / "pets.jsonl"
    >>> _ = file.write_text('{"parts": {"word": ["the", "dog"]}, "target": "a"}')
    >>> read_nested(file)
    NestedData(pets: 2 level 0 → 1 level 1; 1 class)

    Raises `FileError`, which names the line, for anything else.
    """
    documents = _documents(path)
    line, first = next(documents, (0, None))
    header = first is not None and [*first] == ["levels"]
    rest = documents if first is None or header else chain([(line, first)], documents)
    targets: list[Any] = []

    def items() -> Iterator[Any]:
        nonlocal line
        for line, document in rest:
            if "parts" not in document or document.keys() - {"parts", "target"}:
                found = ", ".join(map(short, document)) or "none"
                message = f"expected the keys 'parts' and perhaps 'target', found {found}"
                raise FileError(message, path=path, line=line)
            if not isinstance(document["parts"], dict):
                found = short(document["parts"])
                message = f"'parts' maps roles to lists of parts, as an object: found {found}"
                raise FileError(message, path=path, line=line)
            targets.append(document.get("target"))
            here, there = _kind(targets[-1]), _kind(targets[0])
            if here != there:
                message = f"{here}, but the first structure has {there}"
                raise FileError(message, path=path, line=line)
            yield document["parts"]

    try:
        levels = first["levels"] if first is not None and header else ()
        structures = NestedData(items(), levels=levels, name=Path(path).stem)
    except InputError as error:
        raise FileError(str(error), path=path, line=line) from None
    try:
        return structures.with_targets(targets if targets and targets[0] is not None else None)
    except InputError as error:
        raise FileError(str(error), path=path) from None


def _documents(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number and the object of every line that is not empty."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    document = json.loads(line, object_pairs_hook=_mapping)
                except RecursionError:
                    raise FileError("nested too deeply", path=path, line=number) from None
                except ValueError as error:
                    reason = f"not readable as JSON ({error})"
                    raise FileError(reason, path=path, line=number) from None
                if not isinstance(document, dict):
                    message = f"expected an object, found {short(document)}"
                    raise FileError(message, path=path, line=number)
                yield number, document
    except FileNotFoundError:
        raise FileError("no such file", path=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot be read ({error})", path=path) from None


def _kind(target: Any) -> str:
    if target is None:
        return "no target"
    return "a string as target" if isinstance(target, str) else "a number as target"


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are distinct; among parts, a list is a label of several."""
    out = {
        key: [tuple(part) if isinstance(part, list) else part for part in value]
        if isinstance(value, list)
        else value
        for key, value in pairs
    }
    if len(out) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{twice!r} stands twice in one object")
    return out
