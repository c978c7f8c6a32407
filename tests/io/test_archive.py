from __future__ import annotations

import stat
import struct
import zipfile
from pathlib import Path

import pytest

from saen import FileError
from saen.io.formats.tu import read_tu
from saen.io.parsing import archive

TOY = {
    "toy_A.txt": b"1, 2\n2, 1\n3, 3\n",
    "toy_graph_indicator.txt": b"1\n1\n2\n",
    "toy_graph_labels.txt": b"5\n7\n",
}
METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflate": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}
CENTRAL = b"PK\x01\x02"


def write_zip(
    path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, **attributes: int
) -> Path:
    with zipfile.ZipFile(path, "w", compression=method) as target:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            for key, value in attributes.items():
                setattr(info, key, value)
            target.writestr(info, content)
    return path


def rewrite_headers(path: Path, offset: int, layout: str, value: int) -> None:
    """Overwrite one field in every entry of the central directory (and only there)."""
    content = bytearray(path.read_bytes())
    start = content.find(CENTRAL)
    while start >= 0:
        struct.pack_into(layout, content, start + offset, value)
        start = content.find(CENTRAL, start + 4)
    path.write_bytes(content)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_zip_every_compression_of_zip_gives_the_graphs_of_the_folder(
    tmp_path: Path, method: int
) -> None:
    for name, content in TOY.items():
        (tmp_path / name).write_bytes(content)
    flat = write_zip(tmp_path / "flat.zip", TOY, method)
    nested = write_zip(
        tmp_path / "other-name.zip", {f"toy/{name}": text for name, text in TOY.items()}, method
    )
    expected = read_tu(tmp_path)
    assert expected.sizes.tolist() == [2, 1]
    assert read_tu(flat) == expected
    assert read_tu(nested) == expected
    assert read_tu(nested).name == "toy"


def test_zip_folders_and_other_files_in_a_zip_are_left_alone(tmp_path: Path) -> None:
    junk = {"toy/": b"", "toy/README.txt": b"hello", "__MACOSX/toy/._toy_A.txt": b"\0\1"}
    path = write_zip(
        tmp_path / "toy.zip", junk | {f"toy/{name}": text for name, text in TOY.items()}
    )
    assert len(read_tu(path)) == 2


def test_zip_links_in_a_folder_of_the_user_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").mkdir()
    for name, content in TOY.items():
        (tmp_path / "real" / name).write_bytes(content)
        (tmp_path / "linked" / name).symlink_to(tmp_path / "real" / name)
    assert read_tu(tmp_path / "linked") == read_tu(tmp_path / "real")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil.txt", "points outside"),
        ("toy/../../evil.txt", "points outside"),
        ("/etc/passwd", "absolute path"),
        ("C:/evil.txt", "absolute path"),
        ("c:evil.txt", "absolute path"),
        ("..\\evil.txt", "backslash"),
        ("toy\\toy_A.txt", "backslash"),
    ],
)
def test_zip_names_that_would_leave_the_folder_are_refused(
    tmp_path: Path, name: str, reason: str
) -> None:
    path = write_zip(tmp_path / "evil.zip", TOY | {name: b"x"})
    with pytest.raises(FileError, match=reason) as caught:
        read_tu(path)
    assert "evil.zip" in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == [path]


def test_zip_a_null_in_a_name_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "evil.zip", TOY | {"quiet#name.txt": b"x"})
    path.write_bytes(path.read_bytes().replace(b"quiet#name", b"quiet\0name"))
    with pytest.raises(FileError, match="null in its name"):
        read_tu(path)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_zip_links_and_special_files_in_a_zip_are_refused(tmp_path: Path, kind: int) -> None:
    path = write_zip(tmp_path / "evil.zip", TOY, external_attr=(kind | 0o777) << 16)
    with pytest.raises(FileError, match="link or a special file"):
        read_tu(path)


def test_zip_encrypted_members_are_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "secret.zip", TOY)
    rewrite_headers(path, 8, "<H", 1)
    with pytest.raises(FileError, match="encrypted"):
        read_tu(path)


def test_zip_a_duplicate_member_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.zip"
    write_zip(path, TOY | {"toy_B.txt": b"1\n"})
    path.write_bytes(path.read_bytes().replace(b"toy_B.txt", b"toy_A.txt"))
    with pytest.raises(FileError, match="is listed twice"):
        read_tu(path)


def test_zip_absurd_sizes_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "huge.zip", TOY)
    rewrite_headers(path, 24, "<I", 0xFFFFFFF0)  # 4 GiB each, three of them
    with pytest.raises(FileError, match="compression bomb") as caught:
        read_tu(path)
    assert "extract it and pass the folder" in str(caught.value)


def test_zip_a_compression_bomb_is_refused_and_honest_repetition_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 50_000
    repeated = {
        "toy_A.txt": b"1, 1\n",
        "toy_graph_indicator.txt": b"1\n" * n,
        "toy_graph_labels.txt": b"1\n",
    }
    path = write_zip(tmp_path / "toy.zip", repeated, zipfile.ZIP_LZMA)
    assert 2 * n > 100 * path.stat().st_size
    assert read_tu(path).n_nodes == n
    monkeypatch.setattr(archive, "FREE_BYTES", 1000)
    monkeypatch.setattr(archive, "MAX_RATIO", 100)
    with pytest.raises(FileError, match="compression bomb"):
        read_tu(path)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("change", [-2, 1000])
def test_zip_a_header_that_lies_about_a_size_is_caught(
    tmp_path: Path, method: int, change: int
) -> None:
    text = b"1\n" * 3
    files = TOY | {"toy_graph_indicator.txt": text}
    path = write_zip(tmp_path / "liar.zip", files, method)
    content = path.read_bytes()
    path.write_bytes(
        content.replace(struct.pack("<I", len(text)), struct.pack("<I", len(text) + change))
    )
    with pytest.raises(FileError, match=r"cannot be read|damaged|not a readable zip"):
        read_tu(path)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_zip_with_a_flipped_byte_is_an_error_or_harmless(tmp_path: Path, method: int) -> None:
    path = write_zip(tmp_path / "toy.zip", TOY, method)
    expected = read_tu(path)
    # Names have no checksum: a file under another name is as good as absent.
    harmless = (expected, expected.with_targets(None))
    content = path.read_bytes()
    damaged = 0
    for position in range(0, len(content), 3):
        changed = bytearray(content)
        changed[position] ^= 0xFF
        path.write_bytes(changed)
        try:
            assert read_tu(path) in harmless
        except FileError:
            damaged += 1
    assert damaged > 20


def test_a_truncated_zip_is_an_error(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "toy.zip", TOY)
    content = path.read_bytes()
    for length in range(0, len(content), 5):
        path.write_bytes(content[:length])
        with pytest.raises(FileError, match=r"toy\.zip"):
            read_tu(path)


def test_zip_what_is_not_a_zip_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "page.zip"
    path.write_text("<html>404</html>")
    with pytest.raises(FileError, match=r"page\.zip: not a readable zip"):
        read_tu(path)
    with pytest.raises(FileError, match="no such file or folder"):
        read_tu(tmp_path / "nowhere")


def test_zip_an_unknown_compression_method_is_an_error(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "new.zip", TOY)
    rewrite_headers(path, 10, "<H", 93)
    with pytest.raises(FileError, match="compression"):
        read_tu(path)


def test_zip_a_small_step_bounds_what_a_hostile_stream_gives_back(tmp_path: Path) -> None:
    # The decompressor must never be asked for the whole member at once.
    path = write_zip(tmp_path / "zeros.zip", {"zeros": bytes(2**24)}, zipfile.ZIP_DEFLATED)
    with archive.members(path) as (member,):
        sizes = [len(block) for block in member.blocks()]
    assert sum(sizes) == 2**24
    assert max(sizes) <= 2**16
