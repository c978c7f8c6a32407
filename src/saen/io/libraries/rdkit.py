"""Molecules, from and to RDKit and from SMILES: atoms as nodes, bonds as edges."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, Floats, Ints, segment_ids
from saen._util.lazy import LazyModule
from saen._util.progress import bar
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError, MissingExtraError
from saen.io.libraries.plain_graphs import check_both_directions, plain_graphs
from saen.io.options import ReadOptions
from saen.io.parsing.records import BadGraphs, with_targets
from saen.io.parsing.tables import SUFFIXES, Table, Targets, column_name, find_column
from saen.io.parsing.text_files import read_text

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")

Atoms = Literal["symbol", "smiles"]

SMILES = "smiles"
"""The column of a table that makes it a table of molecules."""
MOLECULE_SUFFIXES = (".smi", ".sdf")

MAX_SHOWN = 200
"""Characters of a SMILES that a message repeats."""

_BLOCK = "\n"  # stands for the blocks of an SDF among its columns, whose names have no line ends

_LARGE_MOLECULE = 1000  # atoms
_MOLECULES_PER_UPDATE = 64  # of the progress bar


def from_rdkit(
    molecules: Iterable[Any], *, atoms: Atoms = "symbol", targets: ArrayLike | None = None
) -> Graphs:
    """Build graphs from RDKit molecules, which are not modified: one node per atom.

    `atoms` chooses the node labels: the `symbol` of the element, or the atom in `smiles`, which
    also tells aromatic atoms, charges and the hydrogens of unusual valences (`c`, `[nH]`, `[N+]`).
    Edge labels are bond types, such as `SINGLE`, `DOUBLE` and `AROMATIC`. Hydrogens are nodes only
    if the molecule has them as atoms. Stereochemistry, isotopes and coordinates are ignored.
    `targets` has one value per molecule.

    Raises `InputError`, naming the molecule, for anything else, and `MissingExtraError` if RDKit
    is not installed.

    >>> from rdkit import Chem
    >>> graphs = from_rdkit([Chem.MolFromSmiles("CC(=O)O")], targets=["acid"])
    >>> graphs
    Graphs(1 graph, 4 nodes, 3 edges, undirected; 1 class, 2 node labels, edge labels)
    >>> graphs.node_labels.tolist()
    ['C', 'C', 'O', 'O']
    """
    chem = _rdkit().Chem
    if isinstance(molecules, chem.Mol):
        raise InputError("expected a list of molecules, found a single one: pass [molecule]")
    if atoms not in ("symbol", "smiles"):
        raise InputError(f'atoms must be "symbol" or "smiles", not {atoms!r}')
    plain = atoms == "symbol"
    sizes: list[int] = []
    labels: list[str] = []
    pairs: list[tuple[int, int]] = []
    bonds: list[str] = []
    for number, molecule in enumerate(molecules):
        if not isinstance(molecule, chem.Mol):
            hint = " (RDKit returns None for invalid molecules)" if molecule is None else ""
            raise InputError(
                f"molecule {number}: expected an RDKit molecule, "
                f"found {type(molecule).__name__}{hint}"
            )
        start = len(labels)
        sizes.append(molecule.GetNumAtoms())
        for atom in molecule.GetAtoms():
            labels.append(atom.GetSymbol() if plain else atom.GetSmarts(isomericSmiles=False))
        for bond in _bonds(molecule):
            pairs.append((start + bond.GetBeginAtomIdx(), start + bond.GetEndAtomIdx()))
            bonds.append(str(bond.GetBondType()))
    return Graphs.from_edges(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(sizes, dtype=np.int64),
        node_labels=np.array(labels, dtype=np.str_),
        edge_labels=np.array(bonds, dtype=np.str_),
        targets=targets,
    )


def from_smiles(
    smiles: Iterable[str], targets: ArrayLike | None = None, *, atoms: Atoms = "symbol"
) -> Graphs:
    """Build graphs from SMILES, one string per molecule; see `from_rdkit`.

    Raises `InputError` with position, text and reason for an invalid string, and
    `MissingExtraError` if RDKit is not installed.

    >>> from_smiles(["CCO", "c1ccccc1"]).edge_labels.tolist()[:6]
    ['SINGLE', 'SINGLE', 'SINGLE', 'SINGLE', 'AROMATIC', 'AROMATIC']
    >>> from_smiles(["CCO", "C=O=C"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    saen.errors.InputError: SMILES 1, 'C=O=C': invalid SMILES: Explicit valence ...
    """
    rdkit = _rdkit()
    if isinstance(smiles, str):
        raise InputError(f"expected a list of SMILES, found a single one: pass [{smiles!r}]")
    with rdkit.rdBase.BlockLogs():  # RDKit prints the reasons to stderr
        molecules = [_read(rdkit.Chem, number, text) for number, text in enumerate(smiles)]
    return from_rdkit(molecules, atoms=atoms, targets=targets)


def to_rdkit(graphs: Graphs) -> list[Any]:
    """Convert each graph to a sanitised RDKit molecule, with atoms in the order of the nodes.

    Reads the labels that `from_rdkit` writes: symbols of elements or atoms in SMILES, and bond
    types. `smiles` labels restore every molecule except for stereochemistry, isotopes and the
    direction of dative bonds (from the smaller to the larger index). `symbol` labels restore those
    without charges, radicals and hydrogens on aromatic atoms; these are lost, hydrogens fill the
    valence (`[O-]` becomes `OH`), and an invalid result is an error. Attributes and targets are
    not converted.

    Raises `InputError`, naming the graph, if it is not a molecule, and `MissingExtraError` if
    RDKit is not installed.

    >>> from rdkit import Chem
    >>> [nitromethane] = to_rdkit(from_smiles(["C[N+](=O)[O-]"], atoms="smiles"))
    >>> Chem.MolToSmiles(nitromethane)
    'C[N+](=O)[O-]'
    """
    rdkit = _rdkit()
    _check_molecules(graphs)
    with rdkit.rdBase.BlockLogs():
        return list(_molecules(graphs))


def _molecules(graphs: Graphs) -> Iterator[Any]:
    """A molecule for every graph; `InputError` for the first that is none."""
    chem = _rdkit().Chem
    types = chem.BondType.names
    labels = [] if graphs.node_labels is None else np.unique(graphs.node_labels).tolist()
    atoms = {label: _atom(chem, label) for label in labels}
    for number, graph in enumerate(plain_graphs(graphs)):
        symbols, bonds = graph.nodes.get("label", []), graph.edges.get("label", [])
        for node, label in enumerate(symbols):
            if atoms[label] is None:
                raise InputError(
                    f"graph {number}, node {node}: {label!r} is neither the symbol of an "
                    "element nor an atom in SMILES"
                )
        for bond in set(bonds) - set(types):
            raise InputError(
                f"{bond!r} is not a bond type of RDKit (such as SINGLE, DOUBLE or AROMATIC)"
            )
        molecule = chem.RWMol()
        for label in symbols:
            molecule.AddAtom(atoms[label])
        for (begin, end), bond in zip(graph.pairs, bonds, strict=True):
            molecule.AddBond(begin, end, types[bond])  # aromatic bonds make atoms aromatic
        try:
            chem.SanitizeMol(molecule)
        except chem.MolSanitizeException as error:
            raise InputError(
                f"graph {number} is not a molecule: {' '.join(str(error).split())} "
                "(from_rdkit(…, atoms='smiles') keeps charges and hydrogens)"
            ) from None
        yield molecule.GetMol()


_NO_DESCRIPTORS = ("Ipc", "SPS")
"""The first grows beyond all numbers, the second looks at stereochemistry."""


def descriptors(graphs: Graphs) -> tuple[tuple[str, ...], Floats]:
    """RDKit's 2D descriptors of molecules: their names, and numbers (n, k).

    What cannot be computed is NaN, such as all descriptors of a graph that is not a molecule.

    >>> names, values = descriptors(from_smiles(["CCO", "c1ccccc1"]))
    >>> round(float(values[0, names.index("MolWt")]), 1)
    46.1
    """
    rdkit = _rdkit()
    from rdkit.Chem import Descriptors

    _check_molecules(graphs)
    listed = [each for each in Descriptors.descList if each[0] not in _NO_DESCRIPTORS]
    values = np.full((len(graphs), len(listed)), np.nan)
    with rdkit.rdBase.BlockLogs(), bar("descriptors", len(graphs)) as update:
        for number in range(len(graphs)):
            with suppress(InputError):
                [molecule] = _molecules(graphs[number : number + 1])
                values[number] = [_descriptor(function, molecule) for _, function in listed]
            if number % _MOLECULES_PER_UPDATE == 0:
                update(number)
    return tuple(name for name, _ in listed), values


def _descriptor(function: Callable[[Any], float], molecule: Any) -> float:
    try:
        return float(function(molecule))
    except (ArithmeticError, ValueError, RuntimeError):
        return np.nan


def murcko_scaffolds(smiles: Iterable[str]) -> NDArray[np.str_]:
    """The Bemis-Murcko scaffold of every molecule as SMILES, shape (n,): its rings and linkers.

    Molecules without rings share the empty scaffold. As groups of a cross-validation, scaffolds
    keep molecules of one series on one side of a split.

    Raises `InputError` for SMILES that RDKit cannot read, and `MissingExtraError` without RDKit.

    >>> murcko_scaffolds(["CCO", "Cc1ccccc1", "Oc1ccccc1"]).tolist()
    ['', 'c1ccccc1', 'c1ccccc1']
    """
    rdkit = _rdkit()
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    with rdkit.rdBase.BlockLogs():
        molecules = [_read(rdkit.Chem, number, text) for number, text in enumerate(smiles)]
    scaffolds = [MurckoScaffoldSmiles(mol=each) for each in molecules]  # type: ignore[no-untyped-call]
    return np.array(scaffolds, dtype=np.str_)


def _read(chem: ModuleType, number: int, text: Any) -> Any:
    if not isinstance(text, str):
        raise InputError(f"SMILES {number}: expected a string, found {text!r}")
    reason = "syntax error"
    try:
        molecule = chem.MolFromSmiles(text)
        if molecule is not None:
            return molecule
        raw = chem.MolFromSmiles(text, sanitize=False)
        problems = [] if raw is None else chem.DetectChemistryProblems(raw)
        reason = problems[0].Message() if problems else reason
    except RuntimeError as error:  # such as an element that there is not, [#999]
        reason = str(error).partition("\tViolation")[0].removeprefix("Pre-condition Violation")
    shown = f"{text[:MAX_SHOWN]}…" if len(text) > MAX_SHOWN else text
    raise InputError(f"SMILES {number}, {shown!r}: invalid SMILES: {' '.join(reason.split())}")


def _bonds(molecule: Any) -> Iterable[Any]:
    """All bonds in order; RDKit looks for each by its number from the first on."""
    if molecule.GetNumAtoms() <= _LARGE_MOLECULE:
        return molecule.GetBonds()  # type: ignore[no-any-return]
    bonds = {bond.GetIdx(): bond for atom in molecule.GetAtoms() for bond in atom.GetBonds()}
    return [bonds[number] for number in range(len(bonds))]


def _check_molecules(graphs: Graphs) -> None:
    """Raise unless nodes and edges have labels that can be atoms and bonds."""
    for what, column, count in (
        ("node", graphs.node_labels, graphs.n_nodes),
        ("edge", graphs.edge_labels, graphs.n_edges),
    ):
        if count and (column is None or column.ndim != 1 or column.dtype.kind != "U"):
            expected = "elements" if what == "node" else "bond types"
            found = "none" if column is None else f"{column.dtype} of shape {column.shape}"
            raise InputError(f"molecules need {expected} as {what} labels, found {found}")
    if graphs.directed:
        raise InputError("molecules are undirected, but these graphs are directed")
    check_both_directions(graphs, "RDKit")
    rows = segment_ids(graphs.indptr)
    loops = np.flatnonzero(rows == graphs.indices)
    if len(loops):
        graph = int(segment_ids(graphs.node_offsets)[rows[loops[0]]])
        raise InputError(f"graph {graph} has a self-loop, which is not a bond")


def _atom(chem: ModuleType, label: str) -> Any:
    """The atom that a label stands for, if any."""
    try:
        # Elements that SMILES writes in brackets have atoms by their symbol.
        return chem.AtomFromSmiles(label) or chem.Atom(label)
    except RuntimeError:
        return None


def _rdkit() -> ModuleType:
    try:
        import rdkit.Chem
        import rdkit.rdBase
    except ImportError:
        raise MissingExtraError("rdkit", extra="chem") from None
    return rdkit


# -- files of molecules ------------------------------------------------------------------------


def read_smiles(table: Table, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    """Read molecules from a table with a column `smiles` and an optional column `target`.

    `options` name other columns. Ids are those of a column `id` or `name`, else the SMILES as
    written. All other columns become `extra`, and so do the SMILES where they are not the ids.

    >>> from saen.io.parsing.tables import read_table
    >>> file = getfixture("tmp_path") / "acids.csv"
    >>> _ = file.write_text("smiles,target\\nCC(=O)O,acid\\nCCO,alcohol\\n")
    >>> read_smiles(read_table(file), ReadOptions(), BadGraphs(skip=False, report=print))
    Graphs(acids: 2 graphs, 7 nodes, 5 edges, undirected; 2 classes, 2 node labels, edge labels)
    """
    column = find_column(table, options.smiles, (SMILES,)) or SMILES
    texts = [text.strip() for text in table.texts(column)]

    def read(row: int) -> Any:
        if not texts[row]:
            raise InputError(f"column {column!r} is empty")
        try:
            return _read(chem, row, texts[row])
        except InputError as error:
            raise InputError(str(error).removeprefix(f"SMILES {row}, ")) from None

    chem = _rdkit().Chem
    return _read_rows(table, column, read, options, bad_graph)


def read_molecule_file(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    """Read molecules from a `.smi` file (SMILES, then perhaps a name, on every line) or an SDF.

    The titles of an SDF are its ids where all molecules have one; its data fields are columns, and
    so are its molecules as SMILES.

    >>> file = getfixture("tmp_path") / "acids.smi"
    >>> _ = file.write_text("CC(=O)O acetic acid\\nOC=O formic acid\\n")
    >>> read_molecule_file(file, ReadOptions(), BadGraphs(False, print)).ids.tolist()
    ['acetic acid', 'formic acid']
    """
    if path.suffix == ".sdf":
        return _read_sdf(path, options, bad_graph)
    rows = [line.split(maxsplit=1) for line in read_text(path).splitlines() if line.strip()]
    if rows and rows[0][0].casefold() == SMILES:
        del rows[0]
    if not rows:
        raise FileError("no molecules", path=path)
    columns = {SMILES: [row[0] for row in rows], "id": [row[-1].strip() for row in rows]}
    return read_smiles(_MoleculeTable(path, columns), options, bad_graph)


def _read_sdf(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    rdkit = _rdkit()
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
        _rdkit().rdBase.BlockLogs(),  # RDKit prints the reasons to stderr
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
    read_rows = np.array(rows, dtype=np.int64)
    own = about.id or source
    ids = read_rows if own == _BLOCK else table.labels(own, read_rows)
    written = source if about.id and source != _BLOCK else None  # SMILES that are not the ids
    others = about.others(read_rows, also=written)
    if source == _BLOCK and SMILES not in map(column_name, others):
        chem = _rdkit().Chem
        others[SMILES] = np.array([chem.MolToSmiles(each) for each in molecules], dtype=np.str_)
    graphs = from_rdkit(molecules, atoms="smiles" if options.choice("chem") == "rich" else "symbol")
    return with_targets(
        replace(graphs, name=table.path.stem).with_ids(ids).with_extra(others),
        about.values(read_rows),
        _Rows(table, read_rows, records[read_rows]),
        bad_graph,
    )


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
