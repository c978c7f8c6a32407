"""What readers and converters say about input that they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saen.errors import FileError, SaenError
from saen.io.loading import load_dataset


def refusal(kind: type[SaenError], call: Callable[..., Any], *values: Any, **options: Any) -> str:
    """The message of the error of this kind that a call raises."""
    with pytest.raises(kind) as caught:
        call(*values, **options)
    return str(caught.value)


def bad_file(path: Path, named: Path | None = None, **options: Any) -> str:
    """Why `load_dataset` refuses a file: what follows its path, or the path of another one."""
    return refusal(FileError, load_dataset, path, **options).removeprefix(str(named or path))
