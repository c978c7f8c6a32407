"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from saen._util.atomic import atomic_write, make_folder
from saen.errors import FileError


def test_the_file_appears_when_the_block_is_done(tmp_path: Path) -> None:
    target = tmp_path / "note.txt"
    target.write_text("old")
    with atomic_write(target) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path  # renaming works within one file system only
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("failure", "seen"),
    [
        (OSError(errno.ENOSPC, "disk full"), FileError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (ValueError("not a number"), ValueError),
    ],
)
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, failure: BaseException, seen: type[BaseException]
) -> None:
    target = tmp_path / "note.txt"
    target.write_text("old")

    def write() -> None:
        with atomic_write(target) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(seen) as error:
        write()
    if seen is FileError:
        assert str(error.value) == f"{target}: cannot be written (disk full)"
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_a_place_that_cannot_be_written_is_found_before_the_work(tmp_path: Path) -> None:
    done = []

    def write() -> None:
        with atomic_write(tmp_path / "nowhere" / "note.txt"):
            done.append(True)

    with pytest.raises(FileError, match=r"note\.txt: cannot be written \(No such file"):
        write()
    assert not done


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_a_writer_that_renames_a_private_file_does_not_make_ours_private(tmp_path: Path) -> None:
    target, private = tmp_path / "note.txt", tmp_path / "private"
    private.touch(mode=0o600)
    before = os.umask(0o027)
    try:
        with atomic_write(target) as temporary:
            private.replace(temporary)
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_folder_is_made_with_all_that_lead_to_it_or_named(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b") == make_folder(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(FileError) as error:
        make_folder(tmp_path / "file" / "c")
    assert str(error.value) == f"{tmp_path / 'file' / 'c'}: cannot be used as a folder " + (
        "(Not a directory)"
    )
