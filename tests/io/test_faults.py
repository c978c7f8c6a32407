"""Hostile files and hopeless work: refused in one line, before they cost anything."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from saen._util.json_files import read_json, write_json
from saen._util.strings import first_duplicate
from saen.errors import FileError
from saen.io.formats.graphml import read_graphml
from saen.io.formats.nested import read_nested
from saen.io.formats.tu import read_tu
from saen.io.options import ReadOptions
from saen.io.parsing.archive import members


def test_tu_text_has_a_limit_on_columns(tmp_path: Path) -> None:
    for part, text in {
        "A": "1, 2\n",
        "graph_indicator": "1\n1\n",
        "node_attributes": "0," * 20_000 + "0\n1\n",
    }.items():
        (tmp_path / f"toy_{part}.txt").write_text(text)
    with pytest.raises(FileError, match=r"line 1: 20,001 columns \(at most 10,000\)"):
        read_tu(tmp_path)


def test_a_zip_member_without_a_name_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "toy.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), "1")
    with pytest.raises(FileError, match="has no name"), members(tmp_path / "toy.zip"):
        pass


def test_duplicates_are_found_by_looking_at_every_word_once() -> None:
    looked = []

    def words():
        for n in (*range(5), 4, 5):
            looked.append(n)
            yield str(n)

    assert first_duplicate(words()) == "4"
    assert looked == [0, 1, 2, 3, 4, 4]


def test_a_repeated_id_or_key_is_named(tmp_path: Path) -> None:
    nodes = "".join(f'<node id="{n}"/>' for n in (*range(20_000), 19_999))
    file = tmp_path / "twice.graphml"
    file.write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        f'<graph edgedefault="undirected">{nodes}</graph></graphml>'
    )
    with pytest.raises(FileError, match="two nodes have the id '19999'"):
        read_graphml(file, ReadOptions())
    pairs = ", ".join(f'"{n}": 1' for n in (*range(20_000), 19_999))
    line = tmp_path / "twice.jsonl"
    line.write_text(f'{{"parts": {{{pairs}}}}}\n')
    with pytest.raises(FileError, match="duplicate key '19999'"):
        read_nested(line)


def test_a_checksum_is_checked_where_there_is_one_and_missed_where_it_must_be(tmp_path) -> None:
    file = tmp_path / "summary.json"
    write_json(file, {"accuracy": 0.8947, "folds": (1, 2)}, sealed=True)
    assert read_json(file, sealed=True) == {"accuracy": 0.8947, "folds": [1, 2]}
    document = json.loads(file.read_text())
    del document["checksum"]
    file.write_text(json.dumps(document))
    assert read_json(file) == document
    with pytest.raises(FileError, match="has no checksum"):
        read_json(file, sealed=True)
