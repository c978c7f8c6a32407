"""JSON files, written atomically."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from saen._util.atomic import atomic_write
from saen.errors import FileError


def write_json(path: Path, document: Any) -> None:
    """Write JSON for people and machines to read, whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read JSON; a file that is none is a `FileError`."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError("no such file", path=path) from None
    except (OSError, ValueError) as error:
        raise FileError(f"not readable as JSON ({error})", path=path) from None
