"""Molecules as a table with a column of SMILES."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from saen._util.progress import bar
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.problems import BadGraphs
from saen.io.rdkit import from_smiles
from saen.io.records import labelled
from saen.io.tables import Table, label_values

COLUMN = "smiles"

_TICK = 64  # molecules between two steps of the progress bar


def read_smiles(table: Table, found: BadGraphs, progress: bool | None = None) -> Graphs:
    """Read molecules from the column `smiles`, with labels where there is a column `label`.

    >>> from saen.io.tables import read_table
    >>> file = getfixture("tmp_path") / "acids.csv"
    >>> _ = file.write_text("smiles,label\\nCC(=O)O,acid\\nCCO,alcohol\\n")
    >>> read_smiles(read_table(file), BadGraphs(skip=False, report=print))
    Graphs(acids: 2 graphs, 7 nodes, 5 edges, undirected; 2 classes, 2 node labels, edge labels)
    """
    for _, error in table.broken:
        found(error)
    texts = [text.strip() for text in table.texts(COLUMN)]
    labels = label_values(table.texts("label").tolist()) if "label" in table.columns else None
    with bar("reading molecules", len(texts), progress) as update:

        def counted() -> Iterator[str]:
            for row, text in enumerate(texts):
                if row % _TICK == 0:
                    update(row)
                if not text:
                    raise InputError("an empty molecule, of which the row will be found")
                yield text

        rows = list(range(len(texts)))
        try:
            graphs = from_smiles(counted())
        except InputError:
            rows = [row for row in rows if _is_molecule(table, row, texts[row], found)]
            graphs = from_smiles([texts[row] for row in rows])
    return labelled(
        replace(graphs, name=table.path.stem),
        [None if labels is None else labels[row] for row in rows],
        _Rows(table, rows),
        found,
    )


def _is_molecule(table: Table, row: int, text: str, found: BadGraphs) -> bool:
    try:
        if not text:
            raise InputError(f"nothing in the column {COLUMN}")
        from_smiles([text])
    except InputError as error:
        found(table.error(row, str(error).removeprefix("SMILES 0, ")))
        return False
    return True


@dataclass(frozen=True)
class _Rows:
    """The row of every molecule."""

    table: Table
    rows: list[int]

    @property
    def labels(self) -> Path:
        return self.table.path

    def graph(self, graph: int) -> str:
        return self.table.place(self.rows[graph])

    def graph_error(self, graph: int, message: str) -> FileError:
        return self.table.error(self.rows[graph], message)
