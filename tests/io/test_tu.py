from __future__ import annotations

import random
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saen import FileError, Graphs, InputError, load_dataset
from saen.io.formats import tu
from saen.io.formats.tu import read_tu, write_tu
from saen.io.parsing import archive
from saen.io.sources.catalog import catalog
from saen.io.sources.local import locate
from tests.properties.plain import PlainGraphs, numbers, plain_graphs

# A triangle, an edge and a node on its own.
TOY = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n",
    "graph_labels": "-1\n1\n1\n",
}


def write(folder: Path, parts: dict[str, str | bytes], name: str = "toy") -> Path:
    folder.mkdir(exist_ok=True)
    for part, text in parts.items():
        content = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}_{part}.txt").write_bytes(content)
    return folder


def error_of(folder: Path, parts: dict[str, Any]) -> FileError:
    with pytest.raises(FileError) as caught:
        read_tu(write(folder, TOY | parts))
    return caught.value


# -- what is read ------------------------------------------------------------------------------


def test_tu_a_plain_dataset_is_read_with_its_own_class_values(tmp_path: Path) -> None:
    graphs = read_tu(write(tmp_path, TOY))
    assert graphs == Graphs.from_edge_lists(
        [[(0, 1), (1, 2), (0, 2)], [(0, 1)], []], sizes=[3, 2, 1], targets=[-1, 1, 1]
    )
    assert graphs.name == "toy"
    assert graphs.targets is not None
    assert graphs.targets.dtype == np.int64


def test_tu_labels_and_attributes_of_one_and_several_columns(tmp_path: Path) -> None:
    columns = {
        "A": "1, 2\n2, 1\n4,5\n",
        "node_labels": "0\n1\n2\n0\n1\n2\n",
        "node_attributes": "0.5, 1\n" * 6,
        "edge_labels": "7, 1\n8, 1\n9, 2\n",
        "edge_attributes": " 0.25\n-1e-3\n4\n",
    }
    graphs = read_tu(write(tmp_path, TOY | columns))
    assert graphs.node_labels is not None
    assert graphs.node_labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert graphs.node_attributes is not None
    assert graphs.node_attributes.shape == (6, 2)
    # The entries are 1 → 2, 2 → 1, 4 → 5 and 5 → 4, which was not listed.
    assert graphs.edge_labels is not None
    assert graphs.edge_labels.tolist() == [[7, 1], [8, 1], [9, 2], [9, 2]]
    assert graphs.edge_attributes is not None
    assert graphs.edge_attributes.tolist() == [[0.25], [-0.001], [4.0], [4.0]]


def test_tu_an_edge_listed_from_one_end_is_an_edge(tmp_path: Path) -> None:
    one_end = read_tu(write(tmp_path / "one", TOY | {"A": "1, 2\n3, 2\n1, 3\n5, 4\n"}))
    assert one_end == read_tu(write(tmp_path / "both", TOY))


def test_tu_directed_graphs_keep_the_direction(tmp_path: Path) -> None:
    graphs = read_tu(write(tmp_path, TOY | {"A": "2, 1\n4, 5\n5, 4\n"}), directed=True)
    assert graphs.directed
    assert graphs.edges().tolist() == [[1, 0], [3, 4], [4, 3]]


def test_tu_self_loops_and_isolated_nodes_are_kept(tmp_path: Path) -> None:
    graphs = read_tu(write(tmp_path, TOY | {"A": "1, 1\n1, 2\n2, 1\n"}))
    assert (graphs.n_loops, graphs.n_edges, graphs.n_isolated) == (1, 2, 4)


def test_tu_nodes_of_an_unsorted_indicator_are_grouped_in_their_order(tmp_path: Path) -> None:
    parts = {
        "A": "1, 3\n2, 5\n",
        "graph_indicator": "2\n1\n2\n3\n1\n",
        "node_labels": "10\n20\n30\n40\n50\n",
    }
    graphs = read_tu(write(tmp_path, TOY | parts))
    assert graphs.sizes.tolist() == [2, 2, 1]
    assert graphs.node_labels is not None
    assert graphs.node_labels.tolist() == [20, 50, 10, 30, 40]
    assert graphs.edges().tolist() == [[0, 1], [2, 3]]


def test_tu_graphs_without_nodes_and_datasets_without_anything(tmp_path: Path) -> None:
    gap = read_tu(write(tmp_path / "gap", TOY | {"A": "", "graph_indicator": "1\n3\n"}))
    assert gap.sizes.tolist() == [1, 0, 1]
    unlabelled = read_tu(write(tmp_path / "unlabelled", {"A": "", "graph_indicator": "4\n"}))
    assert unlabelled.sizes.tolist() == [0, 0, 0, 1]
    nothing = dict.fromkeys([*TOY, "node_labels", "node_attributes", "edge_labels"], "")
    empty = read_tu(write(tmp_path / "nothing", nothing))
    assert len(empty) == 0
    assert len(empty.targets) == 0  # type: ignore[arg-type]


def test_tu_without_graph_labels_there_are_no_targets(tmp_path: Path) -> None:
    parts = {key: TOY[key] for key in ("A", "graph_indicator")}
    graphs = read_tu(write(tmp_path, parts))
    assert graphs.targets is None
    assert len(graphs) == 3


def test_tu_graph_attributes_become_targets_where_asked_or_alone(tmp_path: Path) -> None:
    both = write(tmp_path / "both", TOY | {"graph_attributes": "0.5\n1.5\n-2\n"})
    assert read_tu(both).targets.tolist() == [-1, 1, 1]  # type: ignore[union-attr]
    assert read_tu(both, target="labels") == read_tu(both)
    attributes = read_tu(both, target="attributes").targets
    assert attributes is not None
    assert attributes.tolist() == [0.5, 1.5, -2.0]
    alone = {key: TOY[key] for key in ("A", "graph_indicator")}
    several = write(tmp_path / "several", alone | {"graph_attributes": "1, 2\n3, 4\n5, 6\n"})
    assert read_tu(several).targets.tolist() == [[1, 2], [3, 4], [5, 6]]  # type: ignore[union-attr]
    with pytest.raises(FileError, match="no graph labels to use as targets"):
        read_tu(several, target="labels")
    with pytest.raises(InputError, match="'labels' or 'attributes', not 'size'"):
        read_tu(several, target="size")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "disguise",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.rstrip(b"\n"),
        lambda text: text + b"\n\n  \n\r\n",
        lambda text: text.replace(b", ", b","),
        lambda text: text.replace(b", ", b"  ,\t ").replace(b"\n", b" \n"),
    ],
    ids=["byte-order mark", "CRLF", "no last newline", "blank end", "no spaces", "many spaces"],
)
def test_tu_harmless_oddities_are_read_right(
    tmp_path: Path, disguise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = write(tmp_path / "odd", {part: disguise(text.encode()) for part, text in TOY.items()})
    plain = read_tu(write(tmp_path / "plain", TOY))
    assert read_tu(odd) == plain
    monkeypatch.setattr(tu, "_arrow", lambda: None)
    assert read_tu(odd) == plain


def test_tu_reals_are_read_to_the_last_bit(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=6) * 10.0 ** np.arange(-150, 150, 50)
    text = "\n".join(map(repr, values.tolist()))
    graphs = read_tu(write(tmp_path, TOY | {"node_attributes": text}))
    assert graphs.node_attributes is not None
    assert graphs.node_attributes[:, 0].tolist() == values.tolist()


def test_tu_large_labels_are_read_exactly(tmp_path: Path) -> None:
    graphs = read_tu(write(tmp_path, TOY | {"graph_labels": f"{2**63 - 1}\n{-(2**63)}\n0\n"}))
    assert graphs.targets is not None
    assert graphs.targets.tolist() == [2**63 - 1, -(2**63), 0]


def test_tu_repeated_lines_are_one_edge_if_they_agree(tmp_path: Path) -> None:
    repeated = write(tmp_path / "plain", TOY | {"A": TOY["A"] + "1, 2\n"})
    assert read_tu(repeated).n_edges == 4
    labels = {"A": "1, 2\n2, 1\n1, 2\n", "edge_labels": "7\n7\n7\n"}
    assert read_tu(write(tmp_path / "agree", TOY | labels)).n_edges == 1
    error = error_of(tmp_path / "differ", labels | {"edge_labels": "7\n7\n8\n"})
    assert error.line == 3
    assert "repeats the edge of line 1 with a different label" in str(error)
    assert (
        read_tu(write(tmp_path / "ends", TOY | labels | {"edge_labels": "7\n8\n7\n"})).n_edges == 1
    )


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "text", "line", "words"),
    [
        ("A", "1, 2\n2, x\n", 2, "'x' is not an integer"),
        ("A", "1, 2\n2, 1.0\n", 2, "'1.0' is not an integer"),
        ("A", "1, 2\n2, 1e0\n", 2, "'1e0' is not an integer"),
        ("A", "1, 2\n2, 1_0\n", 2, "'1_0' is not an integer"),
        ("A", "1, 2\n2, 0x1\n", 2, "'0x1' is not an integer"),
        ("A", "1, 2\n2, \n", 2, "'' is not an integer"),
        ("A", "1, 2\n1 2\n", 2, "1 column, expected 2"),
        ("A", "1, 2\n2, 3, 1\n", 2, "3 columns, expected 2"),
        ("A", "1, 2,\n2, 3,\n", 1, "3 columns, expected 2"),
        ("A", "1\n", 1, "1 column, expected 2"),
        ("A", "1, 2\n\n2, 3\n", 2, "an empty line"),
        ("A", "\n1, 2\n", 1, "an empty line"),
        ("A", b"1, 2\n2, 3\xff\n", 2, r"is not an integer"),
        ("A", b"1, 2\n2, 3\x004\n", 2, r"is not an integer"),
        ("A", b"1, 2\r2, 3\n", 1, "3 columns, expected 2"),
        ("A", '1, 2\n"2", 3\n', 2, "is not an integer"),
        ("A", "1, 2\n2, 99999999999999999999\n", 2, "does not fit into 64 bits"),
        ("A", "1, 2\n2, 9223372036854775808\n", 2, "does not fit into 64 bits"),
        ("A", "1, 2\n2, " + "9" * 5000 + "\n", 2, "does not fit into 64 bits"),
        ("A", "1, 2\n0, 1\n", 2, "node 0, but nodes are numbered from 1"),
        ("A", "1, 2\n-3, 1\n", 2, "node -3, but nodes are numbered from 1"),
        ("A", "1, 2\n1, 7\n", 2, "node 7, but toy_graph_indicator.txt has 6 lines"),
        ("A", "1, 2\n3, 4\n", 2, "node 3 is in graph 1, node 4 in graph 2"),
        ("graph_indicator", "1\n1\n1\n2\n2\n4\n", 6, "graph 4, but toy_graph_labels.txt has 3"),
        ("graph_indicator", "0\n1\n1\n2\n2\n3\n", 1, "graph 0, but graphs are numbered from 1"),
        ("graph_indicator", "1, 1\n", 1, "2 columns, expected 1"),
        ("graph_labels", "1\n-1\n0.5\n", 3, "'0.5' is not an integer"),
        ("node_labels", "1\n2\n3, 4\n", 3, "2 columns, expected 1"),
        ("node_attributes", "1\n2\nnan\n", 3, "is not a finite number"),
        ("node_attributes", "1\n2\n-inf\n", 3, "is not a finite number"),
        ("node_attributes", "1, 2\n1,\n", 2, "'' is not a finite number"),
        ("node_attributes", "1\n2\n1e999\n", 3, "a number is too large"),
        ("node_attributes", "1\n2\nred\n", 3, "'red' is not a finite number"),
    ],
)
def test_tu_bad_text_is_reported_with_file_and_line(
    tmp_path: Path,
    part: str,
    text: str | bytes,
    line: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for arrow in (tu._arrow, lambda: None):
        monkeypatch.setattr(tu, "_arrow", arrow)
        error = error_of(tmp_path, {part: text})
        assert words in str(error)
        assert error.line == line
        assert error.path == tmp_path / f"toy_{part}.txt"


def test_tu_the_line_is_right_far_into_a_file_of_many_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tu, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(archive, "_PLAIN_STEP", 100)
    lines = ["1, 2", "2, 3"] * 1000
    for row, text in ((1500, "1, two"), (900, ""), (1999, "1, 4"), (0, "7, 1")):
        changed = [*lines[:row], text, *lines[row + 1 :]]
        assert error_of(tmp_path, {"A": "\n".join([*changed, "2, 3", ""])}).line == row + 1


def test_tu_the_first_of_two_bad_lines_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tu, "CHUNK_BYTES", 100)
    monkeypatch.setattr(archive, "_PLAIN_STEP", 50)
    lines = ["1, 2"] * 500
    lines[200] = lines[90] = "?"
    assert error_of(tmp_path, {"A": "\n".join(lines)}).line == 91


def test_tu_a_file_that_is_one_endless_line_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tu, "CHUNK_BYTES", 1000)
    error = error_of(tmp_path, {"A": "1" * 20_000})
    assert "a line has more than 1,000 bytes" in str(error)


@pytest.mark.parametrize(
    ("part", "rows", "other", "expected"),
    [
        ("node_labels", 5, "toy_graph_indicator.txt", 6),
        ("node_attributes", 7, "toy_graph_indicator.txt", 6),
        ("edge_labels", 7, "toy_A.txt", 8),
        ("edge_attributes", 9, "toy_A.txt", 8),
    ],
)
def test_tu_files_of_different_lengths_are_both_named(
    tmp_path: Path, part: str, rows: int, other: str, expected: int
) -> None:
    message = str(error_of(tmp_path, {part: "1\n" * rows}))
    assert f"toy_{part}.txt: {rows} lines, but {other} has {expected} lines" in message


def test_tu_an_absurd_graph_number_does_not_ask_for_absurd_memory(tmp_path: Path) -> None:
    parts = {"A": "1, 2\n", "graph_indicator": "1\n1\n99999999999\n"}
    with pytest.raises(FileError, match=r"line 3: graph 99999999999, but .* only 3 nodes"):
        read_tu(write(tmp_path, parts))


def test_tu_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"toy_graph_indicator\.txt is missing"):
        read_tu(write(tmp_path / "a", {"A": TOY["A"]}))
    with pytest.raises(FileError, match=r"toy_A\.txt is missing"):
        read_tu(write(tmp_path / "b", {"graph_indicator": "1\n"}))
    with pytest.raises(FileError, match=r"no file named \*_A\.txt"):
        read_tu(write(tmp_path / "c", {"readme": "hello"}))
    with pytest.raises(FileError, match=rf"did you mean {tmp_path / 'a'}\?"):
        read_tu(tmp_path)


def test_tu_two_datasets_in_one_folder_are_ambiguous(tmp_path: Path) -> None:
    write(tmp_path, TOY)
    write(tmp_path, TOY, name="other")
    with pytest.raises(FileError, match="more than one dataset: other, toy"):
        read_tu(tmp_path)


def test_tu_errors_inside_a_zip_name_zip_and_member(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "toy.zip", "w") as target:
        for part, text in (TOY | {"A": "1, 2\n1, x\n"}).items():
            target.writestr(f"toy/toy_{part}.txt", text)
    with pytest.raises(FileError, match=r"toy\.zip/toy/toy_A\.txt, line 2: 'x' is not"):
        read_tu(tmp_path / "toy.zip")


# -- the law -----------------------------------------------------------------------------------


@given(plain_graphs(min_size=1, text=numbers), st.randoms(use_true_random=False))
def test_tu_what_is_written_is_read_back_equal_in_any_manner_and_chunks(
    tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs, rng: random.Random
) -> None:
    folder, graphs = tmp_path_factory.mktemp("tu"), plain.graphs()
    write_tu(graphs, folder, "toy")
    newline = rng.choice([b"\n", b"\r\n"])
    for file in folder.iterdir():
        text = file.read_bytes().rstrip().replace(b",", rng.choice([b",", b", "]))
        text = rng.choice([b"", b"\xef\xbb\xbf"]) + text.replace(b"\n", newline)
        file.write_bytes(text + newline * rng.choice([0, 1, 3]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tu, "CHUNK_BYTES", rng.choice([400, 2**22]))
        patch.setattr(archive, "_PLAIN_STEP", rng.choice([7, 2**14]))
        patch.setattr(tu, "_arrow", rng.choice([tu._arrow, lambda: None]))
        assert read_tu(folder, directed=plain.directed) == graphs


@given(st.binary(max_size=60))
@settings(deadline=None, max_examples=150)
def test_tu_any_bytes_are_read_or_refused_but_never_a_crash(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for part in ("A", "node_labels", "node_attributes"):
            path = write(Path(folder), TOY | {part: content})
            try:
                graphs = read_tu(path)
            except FileError:
                continue
            assert graphs.n_nodes == 6


# -- the real datasets -------------------------------------------------------------------------

# graphs, average nodes, average edges, average maximum degree (loops twice), class sizes
STATISTICS = {
    "COLLAB": (5000, 74.495, 2457.783, 73.618, [2600, 775, 1625]),
    "IMDB-BINARY": (1000, 19.773, 96.531, 18.773, [500, 500]),
    "IMDB-MULTI": (1500, 13.001, 65.935, 12.001, [500, 500, 500]),
    "REDDIT-BINARY": (2000, 429.627, 497.754, 217.347, [1000, 1000]),
    "MUTAG": (188, 17.931, 19.793, 3.005, [63, 125]),
    "PTC": (344, 25.558, 25.962, 3.733, [192, 152]),
    "PTC_MR": (344, 14.288, 14.692, 3.177, [192, 152]),
    "NCI1": (4110, 29.865, 32.300, 3.336, [2053, 2057]),
    "PROTEINS": (1113, 39.058, 72.816, 5.794, [663, 450]),
    "DD": (1178, 284.317, 715.659, 9.509, [691, 487]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STATISTICS)
def test_tu_the_statistics_of_the_real_datasets_are_those_of_the_paper(name: str) -> None:
    path = locate(name)
    if path is None:
        pytest.skip(f"{name} is not in $SAEN_DATA")
    graphs = read_tu(path)
    n_graphs, nodes, edges, degree, classes = STATISTICS[name]
    summary = graphs.summary()
    assert summary["graphs"] == n_graphs
    assert summary["average_nodes"] == pytest.approx(nodes, abs=0.0006)
    assert summary["average_edges"] == pytest.approx(edges, abs=0.0006)
    assert summary["average_max_degree"] == pytest.approx(degree, abs=0.0006)
    assert list(summary["classes"].values()) == classes
    entry = catalog()[name]
    assert (len(graphs), len(classes)) == (entry.graphs, entry.classes)
    if entry.paper is not None:
        assert entry.paper.graphs == n_graphs
        assert entry.paper.average_nodes == pytest.approx(nodes, abs=0.01)
        assert entry.paper.average_max_degree == pytest.approx(degree, abs=0.01)
    assert (graphs.node_labels is not None) == (entry.node_labels == "node")


def test_tu_labels_are_what_a_readme_says_that_their_codes_are(tmp_path):
    files = {
        "x_A.txt": "1, 2\n2, 3\n",
        "x_graph_indicator.txt": "1\n1\n1\n",
        "x_node_labels.txt": "0\n1\n0\n",
        "x_edge_labels.txt": "0\n7\n",
        "README.txt": "Node labels were converted by this map:\n\nComponent 0:\n\t0\tC\n\t1\tO\n"
        "Edge labels:\n  0  single\n\n1 of these lines is no code\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    graphs = read_tu(tmp_path)
    assert graphs.node_labels.tolist() == ["C", "O", "C"]
    assert set(graphs.edge_labels.tolist()) == {0, 7}  # 7 is not listed: all stay codes
    (tmp_path / "README.txt").write_bytes(b"\xff" * 99)
    assert read_tu(tmp_path).node_labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize("text", ["-1\nx\n1\n", "-1\n", "", "1,2\n3\n4,5\n", None])
def test_wrong_targets_do_not_matter_where_graphs_are_predicted(
    tmp_path: Path, text: str | None
) -> None:
    folder = write(tmp_path / "toy", TOY if text is None else TOY | {"graph_labels": text})
    if text is None:
        next(folder.glob("*_graph_labels.txt")).unlink()
        graphs = load_dataset(folder, partial_targets=True, target="labels")
    else:
        graphs = load_dataset(folder, partial_targets=True)
        with pytest.raises(FileError):  # and there is no copy without targets in the cache
            load_dataset(folder)
    assert graphs.targets is None
    whole = read_tu(write(tmp_path / "whole", TOY))
    assert graphs.with_ids(whole.ids) == whole.with_targets(None)[: len(graphs)]
