"""JSON files, written atomically; those of a run directory have a checksum."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from saen._util.atomic import atomic_write
from saen._util.remote import local_copy
from saen.errors import FileError

CHECKSUM = "checksum"
"""The key of the checksum in the files of a run directory."""


def write_json(path: Path, document: Any, *, sealed: bool = False) -> None:
    """Write JSON for people and machines to read, whole or not at all.

    `sealed` adds a checksum of the content under the key `checksum`.
    """
    if sealed:
        document = document | {CHECKSUM: _checksum(document)}
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def finite(value: Any) -> Any:
    """The value with null in place of numbers that are not finite, which JSON does not have.

    >>> finite({"scores": (0.5, float("nan"))})
    {'scores': [0.5, None]}
    """
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json(path: Path, *, sealed: bool = False) -> Any:
    """Read JSON; `FileError` if the file is not JSON, or not what its checksum says.

    A file without a checksum is read as it is (people write JSON too), unless it must be `sealed`.

    >>> file = getfixture("tmp_path") / "summary.json"
    >>> write_json(file, {"accuracy": 0.8947}, sealed=True)
    >>> _ = file.write_text(file.read_text().replace("0.8947", "0.9947"))
    >>> read_json(file)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    saen.errors.FileError: ...summary.json: damaged or edited: the checksum does not match
    """
    try:
        with local_copy(path) as local:
            document = json.loads(local.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError("no such file", path=path) from None
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"not readable as JSON ({error})", path=path) from None
    if isinstance(document, dict) and CHECKSUM in document:
        if document.pop(CHECKSUM) != _checksum(document):
            raise FileError("damaged or edited: the checksum does not match", path=path)
    elif sealed:
        raise FileError("has no checksum: damaged, or not written by saen", path=path)
    return document


def _checksum(document: Any) -> str:
    # Through JSON and back, as the reader will see it: keys are strings, tuples are lists.
    plain = json.loads(json.dumps(document))
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
