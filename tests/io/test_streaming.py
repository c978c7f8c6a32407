"""Files that are read in parts: together the parts are the whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from saen import Graphs, generate_threads, load_dataset
from saen.errors import FileError
from saen.io.formats import edge_tables, molecules
from saen.io.loading import stream_data
from saen.io.options import ReadOptions
from saen.io.parsing import tables
from saen.io.writing import write_data

pytest.importorskip("pyarrow")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labelled graphs in three Parquet tables, of which parts have 50 edges and batches 7 rows."""
    monkeypatch.setattr(edge_tables, "ROWS_PER_PART", 50)
    monkeypatch.setattr(tables, "PARQUET_ROWS", 7)
    threads = generate_threads(40, average_nodes=8, seed=3)
    labels = np.array(list("CNO"))[np.arange(threads.n_nodes) % 3]
    graphs = Graphs.from_edges(
        threads.edges(),
        threads.sizes,
        node_labels=labels,
        targets=threads.targets,
        ids=[f"g{number}" for number in range(40)],
    )
    write_data(graphs, tmp_path / "edges.parquet")
    return tmp_path / "edges.parquet"


def rewrite(path: Path, change: object) -> None:
    change(pd.read_parquet(path)).to_parquet(path, index=False)  # type: ignore[operator]


def test_parquet_tables_of_edges_come_in_parts_that_are_the_whole(file: Path) -> None:
    whole, parts = load_dataset(file), [*stream_data(file)]
    assert len(parts) > 4
    assert Graphs.concatenate(parts) == whole
    assert [name for part in parts for name in part.ids] == whole.ids.tolist()


@pytest.mark.parametrize("missing", ["nodes", "targets"])
def test_parquet_tables_of_edges_stream_without_the_other_tables(file: Path, missing: str) -> None:
    file.with_name(f"{missing}.parquet").unlink()
    whole, parts = load_dataset(file), [*stream_data(file)]
    assert len(parts) > 4
    assert [graph for part in parts for graph in part.sizes] == whole.sizes.tolist()
    assert sum(len(part.edges()) for part in parts) == len(whole.edges())


def test_parquet_tables_with_graphs_that_are_not_together_are_read_at_once(file: Path) -> None:
    rewrite(file, lambda frame: frame.sample(frac=1, random_state=0))
    assert [*stream_data(file)] == [load_dataset(file)]


def test_graphs_without_edges_are_in_the_parts(file: Path) -> None:
    alone = ("g0", "g17", "g39")
    rewrite(file, lambda frame: frame[~frame["graph"].isin(alone)])
    parts = [*stream_data(file)]
    assert len(parts) > 4
    assert Graphs.concatenate(parts) == load_dataset(file)


def test_errors_in_parts_name_the_row_of_the_table(file: Path) -> None:
    row = len(pd.read_parquet(file)) - 1
    rewrite(file, lambda frame: frame.assign(source=[*frame["source"][:-1], 99]))
    with pytest.raises(FileError, match=f"row {row}: source '99' is not a node of this graph"):
        [*stream_data(file)]
    errors: list[FileError] = []
    parts = [*stream_data(file, "graphs", ReadOptions(skip_bad=True, report=errors.append))]
    assert sum(map(len, parts)) == 39
    assert len(errors) == 1


def test_a_damaged_parquet_file_is_refused_when_its_rows_are_read(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[10:200] = bytes(190)
    file.write_bytes(data)
    with pytest.raises(FileError, match="invalid Parquet"):
        [*stream_data(file)]


def test_parquet_tables_of_molecules_come_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rdkit")
    monkeypatch.setattr(molecules, "MOLECULES_PER_PART", 2)
    frame = pd.DataFrame({"SMILES": ["CC", "CO", "CCO", "bad(", "C"], "target": [1, 0, 1, 0, 0]})
    frame.to_parquet(tmp_path / "m.parquet")
    errors: list[FileError] = []
    options = ReadOptions(skip_bad=True, report=errors.append)
    parts = [*stream_data(tmp_path / "m.parquet", "graphs", options)]
    assert [part.ids.tolist() for part in parts] == [["CC", "CO"], ["CCO"], ["C"]]
    assert [part.targets.tolist() for part in parts] == [[1, 0], [1], [0]]  # type: ignore[union-attr]
    assert "row 3: " in str(errors[0])
