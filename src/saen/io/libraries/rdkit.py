"""Molecules, from and to RDKit and from SMILES: atoms as nodes, bonds as edges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Floats, segment_ids
from saen._util.progress import bar
from saen.data.graphs import Graphs
from saen.data.molecules import without_stereo
from saen.errors import InputError, MissingExtraError
from saen.io.libraries.plain_graphs import check_both_directions, plain_graphs

AtomLabels = Literal["smiles", "element"]

MAX_SHOWN = 200
"""Characters of a SMILES that a message repeats."""

_GEOMETRY = {"STEREOE": "/E", "STEREOTRANS": "/E", "STEREOZ": "/Z", "STEREOCIS": "/Z"}

_LARGE_MOLECULE = 1000  # atoms
_SMILES_LOOKED_AT = 20  # values of a column that may be one of molecules
_MOLECULES_PER_UPDATE = 64  # of the progress bar


def from_rdkit(
    molecules: Iterable[Any],
    *,
    atom_labels: AtomLabels = "smiles",
    targets: ArrayLike | None = None,
) -> Graphs:
    """Build graphs from RDKit molecules, which are not modified: one node per atom.

    Edge labels are bond types, such as `SINGLE`, `DOUBLE` and `AROMATIC`. Hydrogens are nodes only
    if the molecule has them as atoms. Isotopes and coordinates are ignored.

    Parameters
    ----------
    molecules : Iterable[Any]
        The molecules.
    atom_labels : AtomLabels, default='smiles'
        The node labels: the atom in `smiles`, with aromaticity, charge and the hydrogens of unusual
        valences (`c`, `[nH]`, `[N+]`), stereocentres (`C@R`) and the geometry of double bonds
        (`C/Z`); or the `element` alone. Models choose what they read of the former: the node labels
        `element` are the symbols, `node` all of it.
    targets : ArrayLike | None, default=None
        One target per molecule.

    Raises
    ------
    InputError
        For anything else; the message names the molecule.
    MissingExtraError
        If RDKit is not installed.

    Examples
    --------
    >>> from rdkit import Chem
    >>> graphs = from_rdkit([Chem.MolFromSmiles("CC(=O)O")], targets=["acid"])
    >>> graphs
    Graphs(1 graph, 4 nodes, 3 edges, undirected; 1 class, 2 node labels, edge labels)
    >>> graphs.node_labels.tolist()
    ['C', 'C', 'O', 'O']
    """
    chem = import_rdkit().Chem
    if isinstance(molecules, chem.Mol):
        raise InputError("expected a list of molecules, found a single one: pass [molecule]")
    if atom_labels not in ("smiles", "element"):
        raise InputError(f'atom_labels must be "smiles" or "element", not {atom_labels!r}')
    plain = atom_labels == "element"
    # Names are made once, and atoms taken by number: both are slow in RDKit's Python.
    types = {value: str(value) for value in chem.BondType.values.values()}
    stereo = {value: _GEOMETRY.get(str(value)) for value in chem.BondStereo.values.values()}
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
        for atom in map(molecule.GetAtomWithIdx, range(sizes[-1])):
            labels.append(atom.GetSymbol() if plain else _label(atom))
        for bond in _bonds(molecule):
            ends = start + bond.GetBeginAtomIdx(), start + bond.GetEndAtomIdx()
            pairs.append(ends)
            bonds.append(types[bond.GetBondType()])
            geometry = None if plain else stereo[bond.GetStereo()]
            if geometry is not None:
                for end in ends:
                    labels[end] += geometry
    return Graphs.from_edges(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(sizes, dtype=np.int64),
        node_labels=np.array(labels, dtype=np.str_),
        edge_labels=np.array(bonds, dtype=np.str_),
        targets=targets,
    )


def from_smiles(
    smiles: Iterable[str], targets: ArrayLike | None = None, *, atom_labels: AtomLabels = "smiles"
) -> Graphs:
    """Build graphs from SMILES, one string per molecule; see `from_rdkit`.

    Parameters
    ----------
    smiles : Iterable[str]
        One SMILES string per molecule.
    targets : ArrayLike | None, default=None
        One target per molecule.
    atom_labels : AtomLabels, default='smiles'
        The node labels; see `from_rdkit`.

    Raises
    ------
    InputError
        With position, text and reason for an invalid string.
    MissingExtraError
        If RDKit is not installed.

    Examples
    --------
    >>> from_smiles(["CCO", "c1ccccc1"]).edge_labels.tolist()[:6]
    ['SINGLE', 'SINGLE', 'SINGLE', 'SINGLE', 'AROMATIC', 'AROMATIC']
    >>> from_smiles(["CCO", "C=O=C"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    saen.errors.InputError: SMILES 1, 'C=O=C': invalid SMILES: Explicit valence ...
    """
    rdkit = import_rdkit()
    if isinstance(smiles, str):
        raise InputError(f"expected a list of SMILES, found a single one: pass [{smiles!r}]")
    with rdkit.rdBase.BlockLogs():  # RDKit prints the reasons to stderr
        molecules = [read_smiles(rdkit.Chem, number, text) for number, text in enumerate(smiles)]
    return from_rdkit(molecules, atom_labels=atom_labels, targets=targets)


def to_rdkit(graphs: Graphs) -> list[Any]:
    """Convert each graph to a sanitised RDKit molecule, with atoms in the order of the nodes.

    Reads the labels that `from_rdkit` writes: symbols of elements or atoms in SMILES, and bond
    types. `smiles` labels restore every molecule except for stereochemistry, isotopes and the
    direction of dative bonds (from the smaller to the larger index). `element` labels restore those
    without charges, radicals and hydrogens on aromatic atoms; these are lost, hydrogens fill the
    valence (`[O-]` becomes `OH`), and an invalid result raises an error. Attributes and targets are
    not converted.

    Parameters
    ----------
    graphs : Graphs
        Graphs with the labels that `from_rdkit` writes.

    Raises
    ------
    InputError
        If it is not a molecule; the message names the graph.
    MissingExtraError
        If RDKit is not installed.

    Examples
    --------
    >>> from rdkit import Chem
    >>> [nitromethane] = to_rdkit(from_smiles(["C[N+](=O)[O-]"], atom_labels="smiles"))
    >>> Chem.MolToSmiles(nitromethane)
    'C[N+](=O)[O-]'
    """
    rdkit = import_rdkit()
    _check_molecules(graphs)
    with rdkit.rdBase.BlockLogs():
        return list(_molecules(graphs))


def _molecules(graphs: Graphs) -> Iterator[Any]:
    """A molecule for every graph; `InputError` for the first that is none."""
    chem = import_rdkit().Chem
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
                "(from_rdkit(…, atom_labels='smiles') keeps charges and hydrogens)"
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
    rdkit = import_rdkit()
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

    Parameters
    ----------
    smiles : Iterable[str]
        One SMILES string per molecule.

    Raises
    ------
    InputError
        For SMILES that RDKit cannot read.
    MissingExtraError
        Without RDKit.

    Examples
    --------
    >>> murcko_scaffolds(["CCO", "Cc1ccccc1", "Oc1ccccc1"]).tolist()
    ['', 'c1ccccc1', 'c1ccccc1']
    """
    rdkit = import_rdkit()
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    with rdkit.rdBase.BlockLogs():
        molecules = [read_smiles(rdkit.Chem, number, text) for number, text in enumerate(smiles)]
    scaffolds = [MurckoScaffoldSmiles(mol=each) for each in molecules]  # type: ignore[no-untyped-call]
    return np.array(scaffolds, dtype=np.str_)


def looks_like_smiles(texts: Iterable[str]) -> bool:
    """Whether the first texts are molecules; never without RDKit.

    >>> looks_like_smiles(["CCO", "c1ccccc1"]), looks_like_smiles(["12.5", "I", "O"])
    (True, False)
    """
    some = [text.strip() for text in islice(texts, _SMILES_LOOKED_AT) if text.strip()]
    try:
        rdkit = import_rdkit()
    except MissingExtraError:
        return False
    with rdkit.rdBase.BlockLogs():
        read = [text for text in some if rdkit.Chem.MolFromSmiles(text) is not None]
    return 2 * len(read) > len(some) and any(len(text) > 2 for text in read)


def canonical_smiles(smiles: Iterable[str], *, stereo: bool = True) -> NDArray[np.str_]:
    """The canonical SMILES of every molecule, shape (n,), perhaps without stereochemistry.

    >>> canonical_smiles(["OC", "CO", "C[C@H](N)O"], stereo=False).tolist()
    ['CO', 'CO', 'CC(N)O']
    """
    rdkit = import_rdkit()
    with rdkit.rdBase.BlockLogs():
        molecules = [read_smiles(rdkit.Chem, number, text) for number, text in enumerate(smiles)]
    texts = [rdkit.Chem.MolToSmiles(each, isomericSmiles=stereo) for each in molecules]
    return np.array(texts, dtype=np.str_)


def read_smiles(chem: ModuleType, number: int, text: Any) -> Any:
    """The molecule of a SMILES, which is number `number`; `InputError` if it is invalid."""
    if not isinstance(text, str):
        raise InputError(f"SMILES {number}: expected a string, found {text!r}")
    foreign = next((letter for letter in text if not letter.isascii()), None)
    reason = f"no SMILES has {foreign!r}" if foreign else "syntax error"
    try:
        molecule = chem.MolFromSmiles(text)
        if molecule is not None:
            return molecule
        with import_rdkit().rdBase.CaptureErrorLog() as log:
            raw = chem.MolFromSmiles(text, sanitize=False)
        if raw is None and foreign is None:  # else RDKit may cut its message within a letter
            reason = _syntax_error(log.messages)
        elif raw is not None and (problems := chem.DetectChemistryProblems(raw)):
            reason = problems[0].Message()
    except UnicodeEncodeError:  # half a letter
        pass
    except RuntimeError as error:  # such as an element that there is not, [#999]
        reason = str(error).partition("\tViolation")[0].removeprefix("Pre-condition Violation")
    shown = f"{text[:MAX_SHOWN]}…" if len(text) > MAX_SHOWN else text
    raise InputError(f"SMILES {number}, {shown!r}: invalid SMILES: {' '.join(reason.split())}")


def _syntax_error(log: str) -> str:
    """What RDKit says first of a text that is no SMILES, and where.

    >>> _syntax_error("[12:00:00] SMILES Parse Error: unclosed ring for input: 'C1CC'")
    'unclosed ring'
    """
    reason = re.search(r"SMILES Parse Error: (.+?)(?: while parsing| for input|:|$)", log)
    place = re.search(r"around position (\d+)", log)
    words = "syntax error" if reason is None else reason[1]
    return words if place is None else f"{words} around position {place[1]}"


def _bonds(molecule: Any) -> Iterable[Any]:
    """All bonds in order; RDKit looks for each by its number from the first on."""
    if molecule.GetNumAtoms() <= _LARGE_MOLECULE:
        return map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
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


def _label(atom: Any) -> str:
    """An atom as SMILES write it, and its chirality."""
    label: str = atom.GetSmarts(isomericSmiles=False)
    return f"{label}@{atom.GetProp('_CIPCode')}" if atom.HasProp("_CIPCode") else label


def _atom(chem: ModuleType, label: str) -> Any:
    """The atom that a label stands for, if any."""
    label = without_stereo(label)
    try:
        # Elements that SMILES writes in brackets have atoms by their symbol.
        return chem.AtomFromSmiles(label) or chem.Atom(label)
    except RuntimeError:
        return None


def import_rdkit() -> ModuleType:
    """The package rdkit; `MissingExtraError` if it is not installed."""
    try:
        import rdkit.Chem
        import rdkit.rdBase
    except ImportError:
        raise MissingExtraError("rdkit", extra="chem") from None
    return rdkit
