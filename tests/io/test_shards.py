"""Folders of shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Documents, Graphs, NestedData, generate_threads, load_dataset
from saen._util.json_files import read_json, write_json
from saen.errors import FileError, InputError
from saen.io.loading import data_kind, load_data, stream_data
from saen.io.store.shards import INDEX, read_shards, split_graphs, write_shards


def labelled() -> Graphs:
    edges = [[(0, 1), (1, 2)], [(0, 1)], [(0, 0)], [(0, 1), (0, 2)]]
    return Graphs.from_edge_lists(
        edges,
        node_labels=list("CNOCNCCNC"),
        edge_labels=["single", "double", "single", "loop", "single", "triple"],
        targets=["a", "b", "a", "b"],
        ids=["w", "x", "y", "z"],
        name="molecules",
    )


def test_shards_hold_the_graphs_in_order_with_ids_targets_and_name(tmp_path: Path) -> None:
    graphs = labelled()
    written = write_shards(split_graphs(graphs, 3), tmp_path / "s")
    assert len(written) == 3
    assert written == read_shards(tmp_path / "s")
    back = load_dataset(tmp_path / "s")
    assert back == graphs
    assert back.ids.tolist() == ["w", "x", "y", "z"]
    assert back.name == "molecules"
    document = json.loads((tmp_path / "s" / INDEX).read_text())
    assert document["graphs"] == 4
    assert document["vocabulary"] == {
        "node_labels": ["C", "N", "O"],
        "edge_labels": ["double", "loop", "single", "triple"],
    }
    assert document["shards"][0]["first_id"] == "w"


@given(st.integers(1, 25), st.data())
def test_shards_of_any_number_are_consecutive_and_not_empty(n: int, data: st.DataObject) -> None:
    graphs = generate_threads(n, average_nodes=6, seed=data.draw(st.integers(0, 9)))
    parts = list(split_graphs(graphs, data.draw(st.integers(1, n))))
    assert all(len(part) for part in parts)
    assert Graphs.concatenate(parts) == graphs
    assert np.concatenate([part.ids for part in parts]).tolist() == list(range(n))


def test_shards_are_of_about_equal_size() -> None:
    parts = list(split_graphs(generate_threads(400, seed=3), 8))
    sizes = [part.n_nodes for part in parts]
    assert max(sizes) < 1.3 * min(sizes)


@pytest.mark.parametrize("n", [0, 5])
def test_shards_need_a_number_that_the_graphs_allow(n: int) -> None:
    with pytest.raises(InputError, match=f"between 1 and 4, the number of examples, not {n}"):
        list(split_graphs(labelled(), n))


def test_shards_are_overwritten_only_with_force_and_nothing_foreign_is(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write_shards(split_graphs(labelled(), 3), folder)
    with pytest.raises(FileError, match="already exists"):
        write_shards(split_graphs(labelled(), 2), folder)
    write_shards(split_graphs(labelled(), 2), folder, force=True)
    assert sorted(f.name for f in folder.iterdir()) == [
        "part-00000.saen",
        "part-00001.saen",
        INDEX,
    ]
    (folder / "thesis.tex").write_text("mine")
    with pytest.raises(FileError, match=r"thesis.tex, which would be lost"):
        write_shards(split_graphs(labelled(), 2), folder, force=True)
    assert (folder / "thesis.tex").exists()


@pytest.mark.parametrize("place", ["s3://bucket/part.saen", "../part.saen", "/part.saen"])
def test_an_index_names_files_of_its_folder_only(tmp_path: Path, place: str) -> None:
    write_shards([generate_threads(3, seed=1)], tmp_path / "shards")
    index = tmp_path / "shards" / "shards.json"
    document = read_json(index)
    document["shards"][0]["file"] = place
    write_json(index, document, sealed=True)
    with pytest.raises(FileError, match=r"shards.json: damaged: .* is not in this folder"):
        read_shards(tmp_path / "shards")


def test_a_damaged_or_missing_shard_is_named(tmp_path: Path) -> None:
    shards = write_shards(split_graphs(labelled(), 2), tmp_path / "s")
    file = shards.files[1]
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(FileError, match=r"part-00001.saen: damaged"):
        read_shards(tmp_path / "s").read(1)
    file.unlink()
    with pytest.raises(FileError, match=r"part-00001.saen: no such file, but shards.json"):
        load_dataset(tmp_path / "s")


def test_parts_with_other_columns_are_refused(tmp_path: Path) -> None:
    plain = Graphs.from_edge_lists([[(0, 1)]])
    with pytest.raises(InputError, match="has no"):
        write_shards([labelled(), plain], tmp_path / "s")
    assert not (tmp_path / "s" / INDEX).exists()


def test_a_folder_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="convert with shards=N"):
        read_shards(tmp_path)


def documents() -> Documents:
    bite = [("dogs", 1, "nsubj"), ("bite", None, "root"), ("men", 1, "obj")]
    sleep = [("men", 1, "nsubj"), ("sleep", None, "root")]
    return Documents.from_sentences(
        [[bite, sleep], [sleep], [bite], [sleep, sleep]],
        targets=["long", "short", "short", "long"],
        ids=["a", "b", "c", "d"],
        name="corpus",
    )


def nested() -> NestedData:
    """The shards of single examples differ in roles and labels, and one has numbers."""
    examples = [{"word": ["dog", "cat"]}, {"size": [1.5]}, {"word": ["cat"]}, {}]
    return NestedData(examples, [0, 1, 1, 0], levels=("labels", "notes"), ids=["p", "q", "r", "s"])


@pytest.mark.parametrize("make", [labelled, documents, nested])
def test_shards_of_any_kind_are_the_same_however_the_parts_were_cut(
    tmp_path: Path, make: Callable[[], Graphs | Documents | NestedData]
) -> None:
    data = make()
    direct = write_shards(split_graphs(data, 3), tmp_path / "direct")
    streamed = write_shards([data[:1], data[1:3], data[3:]], tmp_path / "streamed", 3)
    names = sorted(file.name for file in (tmp_path / "direct").iterdir())
    assert names == sorted(file.name for file in (tmp_path / "streamed").iterdir())
    if not isinstance(data, NestedData):  # whose slices keep the vocabulary of all
        assert streamed.shards == direct.shards
    for folder, shards in (("direct", direct), ("streamed", streamed)):
        back = load_data(tmp_path / folder, shards.kind)
        assert back == data
        assert back.ids.tolist() == data.ids.tolist() == shards.ids().tolist()
        assert shards.targets().tolist() == data.targets.tolist()
        assert data_kind(tmp_path / folder) == data_kind(shards.files[0]) == shards.kind
        parts = list(stream_data(tmp_path / folder, shards.kind))
        assert [len(part) for part in parts] == [shard.graphs for shard in shards.shards]


def test_shards_of_another_kind_are_refused(tmp_path: Path) -> None:
    write_shards([documents()], tmp_path / "s")
    with pytest.raises(FileError, match="contains a Documents, not Graphs"):
        load_dataset(tmp_path / "s")
    with pytest.raises(FileError, match="contains documents, not nested"):
        list(stream_data(tmp_path / "s", "nested"))
    with pytest.raises(InputError, match="part 1 is Documents, not Graphs"):
        write_shards([labelled(), documents()], tmp_path / "mixed")


def test_shards_leave_nothing_if_the_input_ends_with_an_error(tmp_path: Path) -> None:
    def broken() -> Iterator[Graphs]:
        yield labelled()
        raise FileError("damaged", path=tmp_path)

    with pytest.raises(FileError, match="damaged"):
        write_shards(broken(), tmp_path / "s", 2)
    assert not (tmp_path / "s").exists()
    for n in (0, 5):
        with pytest.raises(InputError, match="number of shards"):
            write_shards([labelled()], tmp_path / "s", n)
