"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from saen._util.atomic import (
    atomic_folder,
    atomic_write,
    check_output,
    expand_user,
    make_folder,
    temporary_beside,
    temporary_folder,
)
from saen.errors import FileError
from tests.refusals import refuses


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
    inside = tmp_path / "file" / "c"
    with refuses(f"{inside}: cannot be used as a folder (Not a directory)", FileError):
        make_folder(inside)


def test_a_device_and_a_named_pipe_are_written_to_not_replaced(tmp_path: Path) -> None:
    with atomic_write(os.devnull) as temporary:
        temporary.write_text("gone")
    assert not Path(os.devnull).is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_write(pipe) as temporary:
        temporary.write_text("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_symbolic_link_is_followed_and_the_mode_of_the_old_file_kept(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o604)
    link.symlink_to(file)
    with atomic_write(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o604


def test_the_content_is_on_disk_before_the_rename(tmp_path: Path, monkeypatch) -> None:
    happened = []
    monkeypatch.setattr(os, "fsync", lambda _: happened.append("fsync"))
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda a, b: (happened.append("replace"), replace(a, b)))
    with atomic_write(tmp_path / "note.txt"):
        pass
    assert happened == ["fsync", "replace"]


def test_what_a_killed_write_left_is_swept_and_a_living_one_is_not(tmp_path: Path) -> None:
    code = (
        "import os, sys; from saen._util.atomic import atomic_write\n"
        "with atomic_write(sys.argv[1]): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "note.txt")], check=False)
    [left] = tmp_path.iterdir()
    with atomic_write(tmp_path / "other.txt") as mine, atomic_write(tmp_path / "third.txt"):
        assert not left.exists()
        assert mine.exists()


def test_an_interrupt_while_a_temporary_folder_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir

    def interrupted(path: Path, *arguments: object, **options: object) -> None:
        make(path)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "toys"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_temporary_folders_of_killed_processes_are_removed_by_the_next_one(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from saen._util.atomic import temporary_folder\n"
        "(temporary_folder(sys.argv[1]) / 'note').touch(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    [left] = tmp_path.iterdir()
    mine = temporary_folder(str(tmp_path))
    assert list(tmp_path.iterdir()) == [mine] != [left]
    assert stat.S_IMODE(mine.stat().st_mode) == 0o700


def test_a_swap_of_folders_that_was_killed_midway_is_ended(tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    name = temporary_beside(tmp_path / "graphs").name.replace(f"-{os.getpid()}-", f"-{dead}-")
    for part in ("old", "new"):
        make_folder(tmp_path / name / part)
        (tmp_path / name / part / "file").write_text(part)
    temporary_beside(tmp_path / "graphs")
    assert [file.name for file in tmp_path.iterdir()] == ["graphs"]
    assert (tmp_path / "graphs" / "file").read_text() == "new"


def test_an_output_needs_force_where_a_file_is_and_is_never_an_input(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    check_output(file)
    file.touch()
    with pytest.raises(FileError, match=r"already exists \(use force=True"):
        check_output(file)
    check_output(file, force=True, inputs=["MUTAG", None, tmp_path / "other"])
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(FileError, match="is an input of this command"):
        check_output(tmp_path / "link", force=True, inputs=[str(file)])
    with pytest.raises(FileError, match="no such folder"):
        check_output(tmp_path / "nowhere" / "x")
    with pytest.raises(FileError, match="is a folder"):
        check_output(tmp_path)
    check_output(os.devnull)


def test_a_home_folder_of_nobody_is_one_line() -> None:
    with pytest.raises(FileError, match="no such user"):
        expand_user("~nobody-of-that-name/x")


def test_check_output_never_overwrites_a_file_of_an_input_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    inside = tmp_path / "data" / "targets.csv"
    check_output(inside, inputs=[tmp_path / "data"])  # a new file changes none of them
    inside.touch()
    with pytest.raises(FileError, match="is an input of this command"):
        check_output(inside, force=True, inputs=[tmp_path / "data"])
