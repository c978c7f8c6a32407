from __future__ import annotations

import contextlib
import json
import mmap
import os
import pickle
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from saen import (
    Attributes,
    Compressed,
    FileError,
    Graphs,
    Hierarchy,
    Relation,
    Vocabulary,
    compress,
    load,
    merge,
    save,
)
from saen.decompositions import Ego
from saen.io.store import container
from saen.io.store.container import file_bytes, original_bytes
from tests.properties.strategies import collections, graph_collections, hierarchies
from tests.references.hierarchies import same_arrays
from tests.refusals import refuses


def round_trip(thing):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "thing.saen"
        size = save(thing, path)
        assert size == path.stat().st_size
        return load(path)


def file_of(thing) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(thing, Path(folder) / "thing.saen")
        return (Path(folder) / "thing.saen").read_bytes()


# -- there and back ----------------------------------------------------------------------------


def columns(n: int):
    """Labels, attributes and targets in every type that graphs take."""
    numbers = {
        np.int8: [-128, 0, 127],
        np.int16: [-1, 300],
        np.int32: [-1, 2**31 - 1],
        np.int64: [-(2**63), 0, 2**63 - 1],
        np.uint8: [0, 255],
        np.uint64: [0, 2**64 - 1],
        ">i8": [-1, 1, 2**40],
        np.str_: ["", "C", "π", "a longer one", "\ud800"],
    }
    return st.sampled_from(list(numbers)).flatmap(
        lambda dtype: st.lists(st.sampled_from(numbers[dtype]), min_size=n, max_size=n).map(
            lambda values: np.array(values, dtype=dtype)
        )
    )


def reals(n: int):
    return st.tuples(
        st.sampled_from([np.float16, np.float32, np.float64, ">f4"]), st.integers(0, 3)
    ).map(lambda case: np.linspace(-1, 1, n * case[1]).astype(case[0]).reshape(n, case[1]))


@st.composite
def full_graphs(draw):
    graphs = draw(graph_collections()).graphs
    optional = {
        "node_labels": columns(graphs.n_nodes),
        "node_attributes": reals(graphs.n_nodes),
        "edge_labels": columns(len(graphs.indices)).map(lambda c: np.column_stack([c, c])),
        "edge_attributes": reals(len(graphs.indices)),
        "targets": st.one_of(
            columns(len(graphs)),
            reals(len(graphs)),
            st.just(np.arange(len(graphs)) % 2 == 0),
        ),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional))))
    name = draw(st.sampled_from(["", "toy", 'a "quoted" \n π']))
    return graphs._with(name=name, **{key: draw(optional[key]) for key in sorted(chosen)})


@given(full_graphs())
def test_container_graphs_are_read_back(graphs):
    again = round_trip(graphs)
    assert again == graphs
    assert again.name == graphs.name
    for key in ("node_labels", "node_attributes", "edge_labels", "edge_attributes", "targets"):
        before, after = getattr(graphs, key), getattr(again, key)
        assert (before is None) == (after is None)
        if before is not None:
            assert before.tolist() == after.tolist()


def test_container_graphs_keep_columns_that_no_model_reads():
    extra = {"pIC50": [5.5, 6.0], "batch": ["α", ""], "n": [1, -2], "new": [True, False]}
    graphs = Graphs.from_edge_lists([[(0, 1)], []]).with_ids(["a", "b"]).with_extra(extra)
    again = round_trip(graphs)
    assert {name: column.tolist() for name, column in again.extra.items()} == extra
    assert again.ids.tolist() == ["a", "b"]


@given(hierarchies())
def test_hierarchies_are_read_back(hierarchy):
    again = round_trip(hierarchy)
    assert again == hierarchy
    assert again.names == hierarchy.names
    for before, after in zip(hierarchy.relations, again.relations, strict=True):
        assert before.parts.tolist() == after.parts.tolist()
        assert before.roles.tolist() == after.roles.tolist()
    vectors = hierarchy.attributes.vectors
    if vectors is not None:
        assert again.attributes.vectors.tobytes() == vectors.tobytes()


@given(hierarchies(), st.booleans())
def test_container_compressed_hierarchies_are_read_back(hierarchy, lower):
    compressed = compress(hierarchy)
    if not lower:
        compressed = compressed.top_only()
    again = round_trip(compressed)
    assert again == compressed
    for before, after in zip(compressed.keys, again.keys, strict=True):
        assert np.array_equal(before, after)


def test_container_a_loaded_collection_can_be_worked_with_and_written_over(tmp_path):
    path = tmp_path / "shards.saen"
    parts = [[[(0, 1)]], [[(0, 1), (1, 2)]], [[(0, 1)], [(0, 0)]]]
    whole = [Ego().decompose(Graphs.from_edge_lists(part)) for part in parts]
    save(compress(whole[0]), path)
    for part in whole[1:]:
        save(merge([load(path), compress(part)]), path)
    assert load(path) == compress(Hierarchy.concatenate(whole))


def test_container_more_labels_than_a_narrow_code_can_count():
    labels = Attributes(np.array([127, -1], np.int8), Vocabulary(range(300)))
    hierarchy = Hierarchy(labels, [Relation([0, 2], [0, 1], [0, 0], ("a",), np.int64(2))])
    assert round_trip(hierarchy) == hierarchy


def test_container_something_else_cannot_be_stored(tmp_path):
    with refuses("cannot save a list"):
        save([1, 2], tmp_path / "list.saen")
    assert not list(tmp_path.iterdir())


# -- the files ---------------------------------------------------------------------------------


@given(collections(min_size=2))
def test_container_equal_things_make_equal_files(parts):
    direct = compress(Hierarchy.concatenate(parts))
    merged = merge([compress(part) for part in parts])
    assert file_of(direct) == file_of(merged)
    assert file_of(parts[0]) == file_of(parts[0])


@given(hierarchies())
def test_container_files_are_those_that_safetensors_writes(hierarchy):
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours"), Path(folder, "theirs")
        save(hierarchy, ours)
        with safe_open(ours, framework="numpy") as opened:
            metadata = opened.metadata()
        save_file(load_file(ours), theirs, metadata=metadata)
        assert ours.read_bytes() == theirs.read_bytes()


@given(hierarchies())
def test_container_sizes_are_known_without_writing(hierarchy):
    assert file_bytes(hierarchy) == len(file_of(hierarchy))
    compressed = compress(hierarchy)
    assert file_bytes(compressed) == len(file_of(compressed.top_only()))
    if all(relation.counts is None for relation in hierarchy.relations):
        assert original_bytes(compressed) == len(file_of(hierarchy))


@pytest.mark.parametrize("n", [10, 127, 128, 129, 255, 256, 257, 32_768, 70_000])
@pytest.mark.parametrize("kind", ["codes", "float32", "float64"])
def test_container_sizes_are_right_whatever_the_width_of_the_integers(n, kind):
    rng = np.random.default_rng(n)
    if kind == "codes":
        attributes = Attributes(np.arange(n), Vocabulary(range(n)))
    else:
        attributes = Attributes(vectors=rng.normal(size=(n, 1)).astype(kind))
    indptr = np.arange(n + 1) * 2
    parts, roles = rng.integers(0, n, 2 * n), rng.integers(0, 2, 2 * n)
    relations = [Relation(indptr, parts, roles, ("root", "élément"), n)] * 2
    hierarchy = Hierarchy(attributes, relations, ("α", "β", "γ"))
    compressed = compress(hierarchy)
    assert original_bytes(compressed) == file_bytes(hierarchy) == len(file_of(hierarchy))
    assert file_bytes(compressed) == len(file_of(compressed.top_only()))


def test_container_sizes_are_right_when_numbers_of_one_width_meet():
    """The header is as long as its offsets, and these follow the container's order of types."""
    n = 70_000
    attributes = Attributes(vectors=np.zeros((n, 4), np.float32))
    relation = Relation(np.arange(n + 1), np.arange(n), np.zeros(n, int), ("a",), n)
    for length in range(1, 9):  # the header is padded to eight bytes
        hierarchy = Hierarchy(attributes, [relation], ("vectors", "x" * length))
        assert file_bytes(hierarchy) == len(file_of(hierarchy))


def test_container_integers_take_the_narrowest_type():
    n = 256
    labels = Attributes(np.zeros(n, np.int64), Vocabulary(range(255)))
    relation = Relation(np.arange(n + 1), np.arange(n), np.zeros(n, int), ("a",), n)
    wider = Relation(np.arange(n + 2), [*range(n), 0], np.zeros(n + 1, int), ("a",), n)
    small = file_bytes(Hierarchy(labels, [relation]))
    # 255 entries would fit one byte in indptr, 256 need two; parts below 256 need one.
    header = small - (n + 2 * (n + 1) + n + n)
    assert 0 < header < 2000
    assert abs(file_bytes(Hierarchy(labels, [wider])) - small - (2 + 1 + 1)) < 8


def test_container_what_is_loaded_is_a_window_on_the_file(tmp_path):
    def mapped(array: np.ndarray) -> bool:
        holder = array
        while isinstance(holder, np.ndarray):
            assert not holder.flags.writeable
            holder = holder.base
        return isinstance(holder.obj if isinstance(holder, memoryview) else holder, mmap.mmap)

    n = 70_000
    ring = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    graphs = Graphs.from_edges(ring, [n], node_attributes=np.ones((n, 2)))
    save(graphs, tmp_path / "ring.saen")
    loaded = load(tmp_path / "ring.saen")
    assert mapped(loaded.indices)
    assert mapped(loaded.node_attributes)
    hierarchy = Ego(node_labels="attributes").decompose(graphs)
    save(compress(hierarchy), tmp_path / "compressed.saen")
    compressed = load(tmp_path / "compressed.saen")
    assert mapped(compressed.top)
    save(hierarchy, tmp_path / "hierarchy.saen")
    loaded = load(tmp_path / "hierarchy.saen")
    assert mapped(loaded.attributes.vectors)
    for relation in loaded.relations:
        assert mapped(relation.indptr)
        assert mapped(relation.parts)
        assert mapped(relation.roles)


def test_container_the_user_s_umask_decides_who_may_read(tmp_path):
    before = os.umask(0o027)
    try:
        save(Graphs.from_edge_lists([[(0, 1)]]), tmp_path / "toy.saen")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "toy.saen").stat().st_mode) == 0o640


# -- what goes wrong ---------------------------------------------------------------------------


def things() -> dict[str, Graphs | Hierarchy | Compressed]:
    graphs = Graphs.from_edge_lists(
        [[(0, 1), (1, 2)], [(0, 0)], []],
        sizes=[3, 1, 1],
        node_labels=np.array(["C", "é", "C", "N", "C"]),
        targets=np.array([0, 1, -1]),
        name="toy",
    )
    hierarchy = Ego(node_labels="node,degree").decompose(graphs)
    return {"graphs": graphs, "hierarchy": hierarchy, "compressed": compress(hierarchy)}


def unchanged(one, other) -> bool:
    return (
        type(one) is type(other)
        and one == other
        and getattr(one, "name", 0) == getattr(other, "name", 0)
    )


@pytest.mark.parametrize("kind", ["graphs", "hierarchy", "compressed"])
def test_container_a_truncated_file_is_refused_at_every_length(kind, tmp_path):
    content = file_of(things()[kind])
    path = tmp_path / "cut.saen"
    for length in {0, 1, 7, 8, 9, *range(0, len(content), 7), len(content) - 1}:
        path.write_bytes(content[:length])
        with pytest.raises(FileError, match=r"cut\.saen: not a readable saen file"):
            load(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(FileError):
        load(path)


@pytest.mark.parametrize("kind", ["graphs", "hierarchy", "compressed"])
def test_container_a_flipped_bit_is_noticed_wherever_it_is(kind, tmp_path):
    thing = things()[kind]
    content = bytearray(file_of(thing))
    path = tmp_path / "flipped.saen"
    refused = 0
    for place in range(len(content)):
        content[place] ^= 1 << place % 8
        path.write_bytes(content)
        content[place] ^= 1 << place % 8
        try:
            # A bit that only writes the same JSON in another way does no harm.
            assert unchanged(load(path), thing)
        except FileError:
            refused += 1
    assert refused > 0.99 * len(content)


@given(st.data())
def test_container_damage_is_an_error_and_never_another_collection(data):
    thing = things()[data.draw(st.sampled_from(["graphs", "hierarchy", "compressed"]))]
    content = bytearray(file_of(thing))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(0, 3))
        content[place : place + length] = data.draw(st.binary(max_size=3))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.saen"
        path.write_bytes(content)
        with contextlib.suppress(FileError):
            assert unchanged(load(path), thing)


def test_container_a_damaged_array_or_document_is_named_as_such(tmp_path):
    path = tmp_path / "damaged.saen"
    content = file_of(things()["graphs"])
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with refuses(f"{path}: damaged: the checksum does not match", FileError):
        load(path)
    assert b"toy" in content
    path.write_bytes(content.replace(b"toy", b"joy"))
    with pytest.raises(FileError, match="damaged: the checksum does not match"):
        load(path)


def foreign(path: Path, metadata: dict[str, str] | None) -> FileError:
    save_file({"codes": np.zeros(3, np.uint8)}, path, metadata=metadata)
    with pytest.raises(FileError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")
    return error.value


def test_container_files_of_others_are_refused(tmp_path):
    path = tmp_path / "foreign.safetensors"
    message = f"{path}: a safetensors file, but not written by saen"
    assert str(foreign(path, None)) == message
    assert str(foreign(path, {"format": "pt"})) == message
    for text in ("", "[]", "{}", '{"version": "x"}', '{"version": null}', "[" * 100_000):
        assert "damaged: invalid metadata" in str(foreign(path, {"saen": text}))
    for content in (b"", b"PK\x03\x04 a zip", pickle.dumps({"a": 1}), b"\xff" * 100, b"{}" * 50):
        path.write_bytes(content)
        with pytest.raises(FileError, match="not a readable saen file"):
            load(path)


def test_container_a_newer_format_asks_for_a_newer_saen(tmp_path):
    path = tmp_path / "new.saen"
    newer = {"version": container.VERSION + 1, "something": "else"}
    assert str(foreign(path, {"saen": json.dumps(newer)})) == (
        f"{path}: format version {container.VERSION + 1}, but this saen reads up to "
        f"{container.VERSION}: upgrade saen"
    )


def test_container_types_that_saen_never_writes_are_refused(tmp_path):
    path = tmp_path / "half.safetensors"
    header = json.dumps({"version": 1, "kind": "hierarchy", "document": {}})
    save_file({"codes": np.zeros(3, np.float16)}, path, metadata={"saen": header})
    with pytest.raises(FileError, match="not a readable saen file"):
        load(path)


def test_container_a_missing_file_or_a_folder_is_no_collection(tmp_path):
    with refuses(f"{tmp_path / 'none.saen'}: no such file", FileError):
        load(tmp_path / "none.saen")
    with refuses(f"{tmp_path}: is a folder, not a file", FileError):
        load(str(tmp_path))


def test_container_other_things_in_the_same_container_are_not_collections(tmp_path):
    path = tmp_path / "recipe.saen"
    container.write(path, "recipe", {"layers": [1, {2: 3}], "scale": 0.1}, {"w": np.eye(2)})
    kind, document, arrays = container.read(path)
    assert (kind, document) == ("recipe", {"layers": [1, {"2": 3}], "scale": 0.1})
    assert same_arrays(np.asarray(arrays["w"]), np.eye(2))
    with refuses(f"{path}: contains a recipe, not data or a hierarchy", FileError):
        load(path)


HIERARCHY = {
    "names": ["a", "b"],
    "vocabulary": ["C"],
    "relations": [{"alphabet": ["x"], "n_parts": 1}],
}
TENSORS = {
    "codes": np.array([1], np.uint8),
    "1.indptr": np.array([0, 1], np.uint8),
    "1.parts": np.array([0], np.uint8),
    "1.roles": np.array([0], np.uint8),
}
GRAPHS = {"name": "", "directed": False}
ARRAYS = {
    "node_offsets": np.array([0, 2], np.uint8),
    "indptr": np.array([0, 1, 2], np.uint8),
    "indices": np.array([1, 0], np.uint8),
}


@pytest.mark.parametrize(
    ("kind", "document", "tensors"),
    [
        ("hierarchy", None, TENSORS),
        ("hierarchy", [], TENSORS),
        ("hierarchy", {}, TENSORS),
        ("hierarchy", {**HIERARCHY, "vocabulary": None}, TENSORS),
        ("hierarchy", {**HIERARCHY, "vocabulary": [1.5]}, TENSORS),
        ("hierarchy", {**HIERARCHY, "vocabulary": 7}, TENSORS),
        ("hierarchy", {**HIERARCHY, "names": ["a"]}, TENSORS),
        ("hierarchy", {**HIERARCHY, "relations": [{"alphabet": ["x"]}]}, TENSORS),
        ("hierarchy", {**HIERARCHY, "relations": [{"alphabet": ["x"], "n_parts": "many"}]},
         TENSORS),
        ("hierarchy", {**HIERARCHY, "relations": [{"alphabet": 5, "n_parts": 1}]}, TENSORS),
        ("hierarchy", HIERARCHY, {**TENSORS, "codes": np.array([9], np.uint8)}),
        ("hierarchy", HIERARCHY, {**TENSORS, "1.parts": np.array([9], np.uint8)}),
        ("hierarchy", HIERARCHY, {**TENSORS, "1.parts": np.array([0.0])}),
        ("hierarchy", HIERARCHY, {"codes": TENSORS["codes"]}),
        ("compressed", HIERARCHY, TENSORS),
        ("compressed", {**HIERARCHY, "objects": [1, 1], "entries": [0, 1]}, TENSORS),
        ("compressed", {**HIERARCHY, "objects": [1, 1], "entries": [0, 1]},
         {**TENSORS, "1.inverse": np.array([5], np.uint8)}),
        ("graphs", {}, ARRAYS),
        ("graphs", GRAPHS, {"indptr": ARRAYS["indptr"]}),
        ("graphs", GRAPHS, {**ARRAYS, "indices": np.array([1, 200], np.uint8)}),
        ("graphs", GRAPHS, {**ARRAYS, "indptr": np.array([0, 9, 2], np.uint8)}),
        ("graphs", GRAPHS, {**ARRAYS, "node_offsets": np.array([0, 3], np.uint8)}),
        ("graphs", GRAPHS, {**ARRAYS, "targets": np.array([0, 3], np.uint8)}),
        ("graphs", {**GRAPHS, "targets.values": ["a"]},
         {**ARRAYS, "targets": np.array([3], np.uint8)}),
    ],
)  # fmt: skip
def test_container_contents_that_do_not_fit_together_are_refused(kind, document, tensors, tmp_path):
    path = tmp_path / "wrong.saen"
    container.write(path, kind, document, tensors)
    with pytest.raises(FileError, match=r"damaged: (inconsistent content|invalid metadata)"):
        load(path)


def test_container_contents_that_fit_together_are_read(tmp_path):
    path = tmp_path / "right.saen"
    container.write(path, "hierarchy", HIERARCHY, TENSORS)
    assert load(path).sizes == (1, 1)
    container.write(path, "graphs", GRAPHS, ARRAYS)
    assert load(path) == Graphs.from_edge_lists([[(0, 1)]])


# -- writing -----------------------------------------------------------------------------------


def test_container_a_place_that_cannot_be_written_is_named(tmp_path):
    graphs = Graphs.from_edge_lists([[(0, 1)]])
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path, reason in [
        (tmp_path / "none" / "toy.saen", "No such file or directory"),
        (tmp_path / "file" / "toy.saen", "Not a directory"),
        (tmp_path / "folder", "Is a directory"),
    ]:
        with refuses(f"{path}: cannot be written ({reason})", FileError):
            save(graphs, path)
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["file", "folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_container_a_folder_without_permission_is_named(tmp_path):
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(FileError, match=r"cannot be written \(Permission denied\)"):
            save(Graphs.from_edge_lists([[(0, 1)]]), tmp_path / "toy.saen")
    finally:
        tmp_path.chmod(0o755)


# -- crafted files with a right checksum -------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("graphs", lambda d, t: t.update(indices=t["indices"].astype(np.uint64) + 2**32)),
        ("graphs", lambda d, t: t.update(indices=t["indices"].astype(np.float32))),
        ("graphs", lambda d, t: t.update(indices=np.full(len(t["indices"]), -1, np.int32))),
        ("graphs", lambda d, t: t.update(indptr=t["indptr"][:0])),
        ("graphs", lambda d, t: d.pop("name")),
        ("hierarchy", lambda d, t: t.update(codes=t["codes"].astype(np.uint64) + 2**32)),
        ("hierarchy", lambda d, t: d["relations"][0].update(n_parts=10**12)),
        ("hierarchy", lambda d, t: d["relations"][0].update(n_parts=float("inf"))),
        ("hierarchy", lambda d, t: d.update(names=7)),
        ("hierarchy", lambda d, t: d.update(vocabulary=float("nan"))),
        ("hierarchy", lambda d, t: d.update(relations={})),
        ("compressed", lambda d, t: d.update(objects=["x"] * 3)),
        ("compressed", lambda d, t: d.update(entries=[float("inf")] * 3)),
        ("compressed", lambda d, t: t.update({"2.inverse": np.full(2, -1, np.int32)})),
        ("compressed", lambda d, t: t.update({"2.inverse": np.zeros(2, np.float32)})),
        ("compressed", lambda d, t: t.update({"2.inverse": np.zeros((2, 1), np.uint8)})),
    ],
)
def test_container_crafted_contents_are_refused(tmp_path, kind, change):
    graphs = Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 1)]])
    hierarchy = Ego().decompose(graphs)
    thing = {"graphs": graphs, "hierarchy": hierarchy, "compressed": compress(hierarchy)}[kind]
    path = tmp_path / "thing.saen"
    save(thing, path)
    _, document, tensors = container.read(path)
    change(document, tensors)
    container.write(path, kind, document, tensors)
    with pytest.raises(FileError, match="damaged"):
        load(path)


def test_container_one_long_string_does_not_widen_all(tmp_path):
    path = tmp_path / "thing.saen"
    n = 100_000
    save(Graphs.from_edge_lists([[]], sizes=[n], node_labels=np.zeros(n, np.uint8)), path)
    _, document, tensors = container.read(path)
    document["node_labels.values"] = ["x" * 1_000_000]  # 400 GB as an array
    container.write(path, "graphs", document, tensors)
    with pytest.raises(FileError, match="far too long"):
        load(path)


@pytest.mark.parametrize(
    "change", [{"version": float("inf")}, {"version": "1"}, {"kind": 7}, {"document": []}, {}]
)
def test_container_metadata_of_the_wrong_type_is_refused(tmp_path, change):
    header = {"version": 1, "kind": "graphs", "document": {}} | change
    if not change:
        header = []
    assert "damaged" in str(foreign(tmp_path / "new.saen", {"saen": json.dumps(header)}))
