"""Datasets compressed by name: in parts where the file can be read in parts, and as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from saen import Graphs, generate_threads, load
from saen.decompositions import make_decomposition
from saen.errors import FileError
from saen.io.formats import jsonl
from saen.io.options import ReadOptions
from saen.io.writing import write_data
from saen.jobs.compress import CompressionReport, compress_dataset
from tests.cli.commandline import invoke
from tests.properties.strategies import DrawnGraphs, graph_collections


@contextmanager
def parts_of(n_bytes: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saen._util.atomic._flush", lambda path: None)
        patch.setattr(jsonl, "_BLOCK_BYTES", n_bytes)
        patch.setattr(jsonl, "PART_BYTES", n_bytes)
        yield


def compressed(file: Path, spec: str, n_bytes: int) -> tuple[bytes, CompressionReport]:
    out = file.with_suffix(f".{n_bytes}.saen")
    with parts_of(n_bytes):
        report = compress_dataset(str(file), make_decomposition(spec), out, force=True)
    return out.read_bytes(), report


@settings(max_examples=25)
@given(
    graph_collections(),
    st.sampled_from(["ego(edges=auto)", "neighbourhoods(edges=auto)", "nodes"]),
    st.integers(1, 200),
)
def test_compressing_in_parts_gives_the_bytes_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, drawn: DrawnGraphs, spec: str, n_bytes: int
) -> None:
    graphs = drawn.graphs
    assume(len(graphs))
    file = tmp_path_factory.getbasetemp() / "drawn.jsonl"
    with parts_of(n_bytes):
        write_data(graphs.with_targets(np.arange(len(graphs)) % 2), file, force=True)
    whole, expected = compressed(file, spec, 1 << 20)
    parts, report = compressed(file, spec, n_bytes)
    assert parts == whole
    assert report.decomposition == expected.decomposition
    assert (report.name, report.ceiling) == (expected.name, expected.ceiling)


def test_parts_share_the_kinds_of_edges_that_only_some_of_them_have(tmp_path: Path) -> None:
    graphs = Graphs.from_edge_lists(
        [[(0, 1), (1, 2)], [(0, 1)], [(0, 1)]],
        node_labels=list("CNOCCXC"),
        edge_labels=["single", "double", "triple", "single"],
    )
    write_data(graphs, tmp_path / "bonds.jsonl")
    whole, expected = compressed(tmp_path / "bonds.jsonl", "ego(edges=roles)", 1 << 20)
    parts, report = compressed(tmp_path / "bonds.jsonl", "ego(edges=roles)", 1)
    assert parts == whole
    assert report.decomposition == expected.decomposition
    assert len(report.decomposition.kinds) == 3


def test_bad_graphs_of_parts_that_are_read_twice_are_reported_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    good = '{"nodes": 2, "edges": [[0, 1]], "directed": true}\n'
    file.write_text(good + '{"nodes": 1, "edges": [[0, 5]], "directed": true}\n' + good)
    errors: list[FileError] = []
    reading = ReadOptions(skip_bad=True, report=errors.append)
    with parts_of(1):
        report = compress_dataset(str(file), make_decomposition("ego(edges=auto)"), None, reading)
    assert len(report.compressed) == 2
    assert [error.line for error in errors] == [2]


def test_compressing_prints_the_throughput(tmp_path: Path) -> None:
    threads = generate_threads(60, average_nodes=6, seed=1)
    write_data(threads, tmp_path / "threads.jsonl")
    with parts_of(500):
        shown = invoke("compress", tmp_path / "threads.jsonl", "-o", tmp_path / "out.saen").stdout
    assert "graphs per second" in shown
    assert len(load(tmp_path / "out.saen")) == 60


def test_several_targets_have_no_ceiling(tmp_path: Path) -> None:
    graphs = generate_threads(4, seed=1).with_targets([["a", "x"], ["b", "x"]] * 2)
    write_data(graphs, tmp_path / "g.saen")
    assert compress_dataset(str(tmp_path / "g.saen"), make_decomposition("nodes")).ceiling is None
