"""Files that are whole or not there at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from saen.errors import FileError


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """An empty file beside `path` to write to, which takes its place once the block is done.

    A block that fails leaves what was there before, and nothing else. Raises `FileError` where the
    file cannot be written.

    >>> folder = getfixture("tmp_path")
    >>> with atomic_write(folder / "note.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> [(file.name, file.read_text()) for file in folder.iterdir()]
    [('note.txt', 'whole')]
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        # Made here and now, so that a place that cannot be written is found before the work.
        temporary.touch(exist_ok=False)
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)  # some writers put a private file in its place
        temporary.replace(target)
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror or error})", path=path) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def make_folder(path: str | Path) -> Path:
    """A folder with all that lead to it, new or there already; `FileError` where that fails.

    >>> make_folder(getfixture("tmp_path") / "a" / "b").is_dir()
    True
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot be used as a folder ({error.strerror})", path=path) from None
    return folder
