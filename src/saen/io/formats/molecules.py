"""Files of molecules: tables with a column of SMILES, `.smi` files and SDF."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from saen._util.arrays import Array, Ints
from saen._util.lazy import pd
from saen._util.progress import bar
from saen._util.strings import plural
from saen.data.collection import n_targets
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.formats.format import Format
from saen.io.libraries.rdkit import from_rdkit, import_rdkit, looks_like_smiles, read_smiles
from saen.io.options import ReadOptions
from saen.io.parsing.records import BadGraphs, with_targets
from saen.io.parsing.tables import (
    SUFFIXES,
    Table,
    Targets,
    column_name,
    column_names,
    find_column,
    read_table,
    table_parts,
)
from saen.io.parsing.text_files import read_text

SMILES = "smiles"
"""The column of a table that makes it a table of molecules."""
MOLECULES_PER_PART = 20_000
"""Rows of a table that a stream reads at a time."""

_BLOCK = "\n"  # stands for the blocks of an SDF among its columns, whose names have no line ends
_MOLECULES_PER_UPDATE = 64  # of the progress bar


def read_molecule_table(table: Table, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    """Read molecules from a table with a column `smiles` and an optional column `target`.

    `options` name other columns. Ids are those of a column `id` or `name`, else the SMILES as
    written. All other columns become `extra`, and so do the SMILES where they are not the ids.

    >>> file = getfixture("tmp_path") / "acids.csv"
    >>> _ = file.write_text("smiles,target\\nCC(=O)O,acid\\nCCO,alcohol\\n")
    >>> read_molecule_table(read_table(file), ReadOptions(), BadGraphs(skip=False, report=print))
    Graphs(acids: 2 graphs, 7 nodes, 5 edges, undirected; 2 classes, 2 node labels, edge labels)
    """
    column = find_column(table, options.smiles, options.usual("smiles", (SMILES,))) or SMILES
    texts = [text.strip() for text in table.texts(column)]

    def read(row: int) -> Any:
        if not texts[row]:
            raise InputError(f"column {table.written(column)!r} is empty")
        try:
            return read_smiles(chem, row, texts[row])
        except InputError as error:
            advice = "" if options.skip_bad else " (skip_bad=True leaves such molecules out)"
            raise InputError(str(error).removeprefix(f"SMILES {row}, ") + advice) from None

    chem = import_rdkit().Chem
    return _read_rows(table, column, read, options, bad_graph)


def read_smiles_file(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    """Read molecules from a `.smi` file: SMILES and perhaps a name, or name and SMILES.

    >>> file = getfixture("tmp_path") / "acids.smi"
    >>> _ = file.write_text("CC(=O)O acetic acid\\nOC=O formic acid\\n")
    >>> read_smiles_file(file, ReadOptions(), BadGraphs(False, print)).ids.tolist()
    ['acetic acid', 'formic acid']
    """
    rows = [line.split(maxsplit=1) for line in read_text(path).splitlines() if line.strip()]
    if rows and SMILES in map(str.casefold, rows[0]):
        del rows[0]
    if looks_like_smiles(row[-1] for row in rows) and not looks_like_smiles(row[0] for row in rows):
        rows = [row[::-1] for row in rows]
    if not rows:
        raise FileError("no molecules", path=path)
    columns = {SMILES: [row[0] for row in rows], "id": [row[-1].strip() for row in rows]}
    return read_molecule_table(_MoleculeTable(path, columns), options, bad_graph)


def read_sdf(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    """Read molecules from an SDF.

    Its titles are the ids where all molecules have one; its data fields are columns, and so are its
    molecules as SMILES.
    """
    rdkit = import_rdkit()
    data = read_text(path).encode()  # RDKit would fail at text that is not UTF-8
    with rdkit.rdBase.BlockLogs():
        supplier = rdkit.Chem.ForwardSDMolSupplier(io.BytesIO(data), sanitize=False, removeHs=False)
        raw = list(supplier)
    if not raw:
        raise FileError("no molecules", path=path)
    titles = ["" if each is None else each.GetProp("_Name").strip() for each in raw]
    fields = [{} if each is None else each.GetPropsAsDict(autoConvertStrings=False) for each in raw]
    spelling = {column_name(name): name for own in fields for name in own}
    named = [{column_name(k): str(v) for k, v in own.items()} for own in fields]
    columns = {name: [own.get(name, "") for own in named] for name in spelling}
    if all(title for title, each in zip(titles, raw, strict=True) if each is not None):
        columns.setdefault("id", titles)
    columns[_BLOCK] = [""] * len(raw)

    def read(row: int) -> Any:
        if raw[row] is None:
            raise InputError("invalid molecule block")
        try:
            problems = rdkit.Chem.DetectChemistryProblems(raw[row])
            if not problems:
                return rdkit.Chem.RemoveHs(raw[row])
            reason = problems[0].Message()
        except (RuntimeError, ValueError) as error:  # of a block that makes no sense
            reason = str(error).partition("\tViolation")[0].removeprefix("Pre-condition Violation")
        raise InputError(f"invalid molecule: {' '.join(reason.split())}")

    return _read_rows(_MoleculeTable(path, columns, spelling), _BLOCK, read, options, bad_graph)


class _MoleculeTable(Table):
    """Columns of text about the molecules of a file that is not a table."""

    def __init__(
        self, path: Path, columns: dict[str, list[str]], spelling: dict[str, str] | None = None
    ) -> None:
        self.path = path
        self.n_bytes = path.stat().st_size
        self.broken = []
        self.frame = pd.DataFrame(columns, dtype=str)
        self.spelling = spelling or {}

    def texts(self, column: str) -> pd.Series[str]:
        return self.frame[column]

    def array(self, column: str) -> Array:
        numbers = self.numbers(column)
        return numbers if np.isfinite(numbers).all() else super().array(column)

    def place(self, row: int) -> str:
        return f"molecule {row + 1}"


def _read_rows(
    table: Table,
    source: str,
    read: Callable[[int], Any],
    options: ReadOptions,
    bad_graph: BadGraphs,
) -> Graphs:
    """The molecules of a table, which `read` reads by row from the column `source`."""
    records, broken = table.records()
    for (_, error), record in zip(table.broken, broken.tolist(), strict=True):
        error.record = record
        bad_graph(error)
    about = Targets.of(table, options, source)
    if table.path.suffix in SUFFIXES:
        about.notify(options, molecules=table.written(source) if options.smiles is None else None)
    rows, molecules = [], []
    places = _Rows(table, np.arange(len(table)), records)
    with (
        import_rdkit().rdBase.BlockLogs(),  # RDKit prints the reasons to stderr
        bar("reading molecules", len(table), options.progress) as update,
    ):
        for row in range(len(table)):
            if row % _MOLECULES_PER_UPDATE == 0:
                update(row)
            try:
                molecules.append(read(row))
                rows.append(row)
            except InputError as error:
                bad_graph(places.graph_error(row, str(error)))
    molecules = _fragments(molecules, table.path.name, options)
    read_rows = np.array(rows, dtype=np.int64)
    own = about.id or source
    ids = read_rows if own == _BLOCK else table.labels(own, read_rows)
    written = source if about.id and source != _BLOCK else None  # SMILES that are not the ids
    others = about.others(read_rows, also=written)
    if source == _BLOCK and SMILES not in map(column_name, others):
        chem = import_rdkit().Chem
        others[SMILES] = np.array([chem.MolToSmiles(each) for each in molecules], dtype=np.str_)
    graphs = from_rdkit(
        molecules, atom_labels="element" if options.choice("atom_labels") == "element" else "smiles"
    )
    read_graphs = with_targets(
        replace(graphs, name=table.path.stem).with_ids(ids).with_extra(others),
        about.values(read_rows),
        _Rows(table, read_rows, records[read_rows]),
        bad_graph,
    )
    several = n_targets(read_graphs.targets) == len(about.names) > 1
    return read_graphs.with_targets(read_graphs.targets, about.names) if several else read_graphs


def _fragments(molecules: list[Any], file: str, options: ReadOptions) -> list[Any]:
    """The molecules as they are, or the largest fragment of each; says how many have several."""
    rdkit = import_rdkit()
    pieces = [len(rdkit.Chem.GetMolFrags(each)) for each in molecules]
    several = [number for number, count in enumerate(pieces) if count > 1]
    largest = options.keeps_largest()
    if several and options.notify is not None:
        n = plural(len(several), "molecule")
        what = "the largest is read" if largest else "kept whole (largest_fragment=True keeps one)"
        options.notify(f"{file}: {n} of several fragments, such as salts and mixtures: {what}")
    if largest:
        for number in several:
            fragments = rdkit.Chem.GetMolFrags(molecules[number], asMols=True)
            molecules[number] = max(fragments, key=lambda each: each.GetNumHeavyAtoms())
    return molecules


@dataclass(frozen=True)
class _Rows:
    """The row of every molecule in its table, and its record: broken rows are counted, too."""

    table: Table
    rows: Ints
    records: Ints

    @property
    def target_file(self) -> Path:
        return self.table.path

    def graph(self, graph: int) -> str:
        return self.table.place(int(self.rows[graph]))

    def graph_error(self, graph: int, message: str) -> FileError:
        error = self.table.error(int(self.rows[graph]), message)
        error.record = int(self.records[graph])
        return error


def _has_molecules(path: Path, options: ReadOptions) -> bool:
    """Whether a table has a column of molecules, by its header."""
    if options.smiles is not None:
        return True
    usual = map(column_name, options.usual("smiles", (SMILES,)))
    return not {*usual}.isdisjoint(column_names(path))


def _read(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    return read_molecule_table(read_table(path), options, bad_graph)


def _stream(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Iterator[Graphs]:
    for table in table_parts(path, MOLECULES_PER_PART):
        yield read_molecule_table(table, options, bad_graph)
        options = replace(options, notify=None)  # say once what was found


_CHEMISTRY = ("atom_labels", "largest_fragment")
MOLECULES = Format(
    "molecules",
    "tables of molecules",
    SUFFIXES,
    "graphs",
    ("target", "id", "smiles", *_CHEMISTRY),
    _read,
    _stream,
    looks=_has_molecules,
)
SMILES_FILES = Format("smi", "SMILES files", (".smi",), "graphs", _CHEMISTRY, read_smiles_file)
SDF = Format("sdf", "SDF", (".sdf",), "graphs", ("target", "id", *_CHEMISTRY), read_sdf)
