"""Graphs as RDKit molecules, and parts of them as fragments in SMILES."""

from __future__ import annotations

from typing import Any

from saen._util.arrays import Ints, segment_ids
from saen.data.graphs import Graphs
from saen.data.molecules import without_stereo

MAX_ATOMS = 200


def as_molecule(graph: Graphs) -> Any:
    """One graph as an RDKit molecule, as it is: not sanitised, so that every atom keeps its number.

    None where it is none (elements or SMILES atoms as node labels, types of bonds as edge labels),
    where it has more than 200 atoms, or without RDKit.

    >>> import saen
    >>> as_molecule(saen.from_smiles(["CC(=O)O"])).GetNumAtoms()
    4
    """
    if graph.node_labels is None or graph.edge_labels is None or graph.directed:
        return None
    if graph.n_nodes > MAX_ATOMS:
        return None
    if graph.node_labels.ndim > 1 or graph.node_labels.dtype.kind not in "UO":
        return None
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem import rdDepictor
    except ImportError:
        return None
    names = Chem.BondType.names
    once = segment_ids(graph.indptr) <= graph.indices  # of an edge in both directions
    kinds = [str(kind).upper() for kind in graph.edge_labels[once].ravel().tolist()]
    with rdBase.BlockLogs():
        atoms = [_atom(Chem, without_stereo(str(label))) for label in graph.node_labels.tolist()]
    if not atoms or None in atoms or len(kinds) != graph.n_edges or not set(kinds) <= set(names):
        return None
    molecule = Chem.RWMol()
    for atom in atoms:
        molecule.AddAtom(atom)
    for (one, other), kind in zip(graph.edges().tolist(), kinds, strict=True):
        if one == other:
            return None
        molecule.AddBond(one, other, names[kind])
    for bond in molecule.GetBonds():
        if bond.GetBondType() == Chem.BondType.AROMATIC:
            bond.SetIsAromatic(True)
            bond.GetBeginAtom().SetIsAromatic(True)
            bond.GetEndAtom().SetIsAromatic(True)
    with rdBase.BlockLogs():
        molecule.UpdatePropertyCache(strict=False)
        rdDepictor.Compute2DCoords(molecule)
    return molecule


def fragment_smiles(molecule: Any, atoms: Ints) -> str:
    """Some atoms of a molecule and the bonds between them, with `*` where the molecule goes on.

    Nothing for a single atom, which stands for itself wherever it is bound.

    >>> import numpy as np
    >>> import saen
    >>> ester = as_molecule(saen.from_smiles(["CC(=O)OC"]))
    >>> fragment_smiles(ester, np.array([1, 2, 3])), fragment_smiles(ester, np.array([3]))
    ('*OC(*)=O', '')
    """
    from rdkit import Chem, rdBase

    if len(atoms) == 1:
        return ""
    fragment, place = Chem.RWMol(), dict[int, int]()
    for atom in atoms.tolist():
        place[atom] = fragment.AddAtom(molecule.GetAtomWithIdx(atom))
    for bond in molecule.GetBonds():
        ends = [bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()]
        if not place.keys() & set(ends):
            continue
        one, other = (
            place[end] if end in place else fragment.AddAtom(Chem.Atom(0)) for end in ends
        )
        fragment.AddBond(one, other, bond.GetBondType())
        if bond.GetIsAromatic():
            for each in (one, other):
                fragment.GetAtomWithIdx(each).SetIsAromatic(True)
            fragment.GetBondBetweenAtoms(one, other).SetIsAromatic(True)
    with rdBase.BlockLogs():
        fragment.UpdatePropertyCache(strict=False)
        return str(Chem.MolToSmiles(fragment))


def _atom(chem: Any, label: str) -> Any:
    """An atom by its symbol, or as SMILES writes it; None for anything else."""
    if not 1 <= len(label) <= 12:
        return None
    if label.isalpha() and label[0].isupper():
        table = chem.GetPeriodicTable()
        symbols = {table.GetElementSymbol(number) for number in range(1, 119)}
        return chem.Atom(label) if label in symbols else None
    parsed = chem.MolFromSmiles(label, sanitize=False)
    return None if parsed is None or parsed.GetNumAtoms() != 1 else parsed.GetAtomWithIdx(0)
