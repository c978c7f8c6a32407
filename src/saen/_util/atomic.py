"""Atomic writes: a file is replaced as a whole, or not at all."""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from saen._util.remote import is_file, is_remote, upload
from saen.errors import FileError

# Temporary files are named .NAME.HOST-PROCESS-RANDOM, so that a later run knows whose they are.
_HOST = f"{zlib.crc32(platform.node().encode()):08x}"
_TEMPORARY = re.compile(rf"\.(?P<name>.+)\.{_HOST}-(?P<process>[0-9]+)-[0-9a-f]{{8}}", re.DOTALL)


@contextmanager
def atomic_write(path: str | Path, *, durable: bool = True) -> Iterator[Path]:
    """An empty file beside `path` to write to, which takes its place once the block is done.

    A block that fails leaves what was there before, and nothing else. A symbolic link is followed,
    the mode of a file that is replaced is kept, and what is not a regular file (a device or a
    named pipe) is written to instead of being replaced. With `durable`, the content has reached
    the disk before the old file is gone. Raises `FileError` where the file cannot be written.

    >>> folder = getfixture("tmp_path")
    >>> with atomic_write(folder / "note.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> [(file.name, file.read_text()) for file in folder.iterdir()]
    [('note.txt', 'whole')]
    """
    try:
        target = Path(path) if is_remote(path) else Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        special = is_special(target)
        temporary = temporary_beside(Path(tempfile.gettempdir(), "device") if special else target)
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror or error})", path=path) from error
    try:
        # Made here and now, so that a place that cannot be written is found before the work.
        temporary.touch(mode=0o600 if special else 0o666, exist_ok=False)
        mode = stat.S_IMODE((target if target.is_file() else temporary).stat().st_mode)
        yield temporary
        if is_remote(target):
            upload(temporary, target)
        elif special:
            with temporary.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        else:
            temporary.chmod(mode)  # some writers put a private file in its place
            if durable:
                _flush(temporary)
            temporary.replace(target)
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror or error})", path=path) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_output(path: str | Path, *, force: bool = False, inputs: Iterable[object] = ()) -> None:
    """Raise `FileError` before the work for a file that cannot, or must not, be written.

    An existing file is overwritten only with `force`, and one of the `inputs` (files or folders;
    what is none is skipped) or of what is in them never. Devices and named pipes may always be
    written to.

    >>> note = getfixture("tmp_path") / "note.txt"
    >>> check_output(note)
    >>> _ = note.write_text("mine")
    >>> check_output(note, force=True)
    >>> check_output(note)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    saen.errors.FileError: ...note.txt: already exists (use force=True to overwrite)
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise FileError("is a folder, not a file", path=path)
        if is_remote(target):
            if not force and is_file(target):
                raise FileError("already exists (use force=True to overwrite)", path=path)
            return
        if is_special(target):
            return
        if not Path(os.path.realpath(target)).parent.is_dir():
            raise FileError("cannot be written (no such folder)", path=path)
        exists = os.path.lexists(target)
        for source in inputs:
            if exists and holds_input(target, source):
                raise FileError("is an input of this command: choose another output", path=path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"cannot be written ({reason})", path=path) from None
    if exists and not force:
        raise FileError("already exists (use force=True to overwrite)", path=path)


def is_special(path: Path) -> bool:
    """Whether a path is of something that is neither a regular file nor a folder: a URL, say."""
    return is_remote(path) or (path.exists() and not path.is_file() and not path.is_dir())


def holds_input(target: Path, source: object) -> bool:
    """Whether to replace `target` would change the file or folder `source`.

    >>> folder = getfixture("tmp_path")
    >>> (folder / "a").touch()
    >>> holds_input(folder, folder / "a"), holds_input(folder / "a", folder)
    (True, True)
    """
    if not isinstance(source, str | Path):
        return False
    try:
        path = Path(source).expanduser()
        if path.samefile(target):
            return True
        ours, theirs = target.resolve(strict=True), path.resolve(strict=True)
        return ours.is_relative_to(theirs) or theirs.is_relative_to(ours)
    except (OSError, ValueError, RuntimeError):  # no path, no such file, no such user
        return False


def expand_user(path: str | os.PathLike[str]) -> Path:
    """The path with `~` replaced by a home folder; `FileError` if there is none.

    >>> expand_user("toy.csv").name
    'toy.csv'
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise FileError("there is no such user", path=Path(path)) from None


def make_folder(path: str | Path) -> Path:
    """A folder with all that lead to it, new or there already; `FileError` where that fails.

    >>> make_folder(getfixture("tmp_path") / "a" / "b").is_dir()
    True
    """
    folder = Path(path)
    if is_remote(folder):  # object stores have none
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot be used as a folder ({error.strerror})", path=path) from None
    return folder


def remove_folder(path: Path) -> None:
    """Remove a folder and all that is in it; if that is interrupted, none of it is found again.

    It is renamed first, and what is left of it is removed by a later run.
    """
    doomed = temporary_beside(path)
    with suppress(OSError):
        path.replace(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def temporary_beside(path: Path) -> Path:
    """A new name in the same folder; what killed processes left there is removed first.

    Raises `FileError` for `.`, `..` and `/`, which nothing can take the place of.
    """
    if path.name in ("", ".."):
        raise FileError(
            "cannot be replaced: choose another output, such as a new folder", path=path
        )
    with suppress(OSError):
        for file in path.parent.iterdir():
            match = _TEMPORARY.fullmatch(file.name)
            if match and not _is_running(int(match["process"])):
                _remove_leftover(file, path.with_name(match["name"]))
    return path.with_name(f".{path.name}.{_HOST}-{os.getpid()}-{secrets.token_hex(4)}")


def is_temporary(path: Path) -> bool:
    """Whether a file has a name that `temporary_beside` gives."""
    return _TEMPORARY.fullmatch(path.name) is not None


def temporary_folder(parent: str | None = None) -> Path:
    """A new private folder for temporary files; those of processes that were killed are removed."""
    folder = temporary_beside(Path(parent or tempfile.gettempdir(), "saen"))
    folder.mkdir(mode=0o700)
    return folder


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside `path`, which is removed when the block ends."""
    scratch = temporary_beside(path)
    try:
        yield make_folder(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """An empty folder to write to, which replaces `path` and all that is in it when the block ends.

    >>> toys = getfixture("tmp_path") / "toys"
    >>> with atomic_folder(toys) as new:
    ...     _ = (new / "note.txt").write_text("whole")
    >>> [file.name for file in toys.iterdir()]
    ['note.txt']
    """
    try:
        if is_remote(path):
            with tempfile.TemporaryDirectory(prefix="saen-") as name:
                yield Path(name)
                for file in sorted(Path(name).iterdir()):  # the index last
                    upload(file, path / file.name)
            return
        with scratch_folder(path) as scratch:
            yield make_folder(scratch / "new")
            _swap_folder(scratch, path)
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror or error})", path=path) from error


def _swap_folder(scratch: Path, path: Path) -> None:
    """Put `scratch / "new"` in the place of the folder `path`, if need be by way of "old"."""
    new, old = scratch / "new", scratch / "old"
    if path.exists():
        path.replace(old)
    try:
        new.replace(path)
    except BaseException:
        if old.exists():
            old.replace(path)
        raise


def _remove_leftover(file: Path, target: Path) -> None:
    """Remove what a killed process left, after ending the swap of folders that it was in."""
    if file.is_dir() and not file.is_symlink():
        if (file / "old").is_dir() and (file / "new").is_dir() and not target.exists():
            (file / "new").replace(target)
        shutil.rmtree(file, ignore_errors=True)
    else:
        file.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # signal 0 would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _flush(path: Path) -> None:
    """Wait until the content of a file has reached the disk, on file systems that can tell."""
    with path.open("rb") as file:
        try:
            os.fsync(file.fileno())
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
