"""Molecules as chemists draw them, by RDKit, with contributions on atoms and bonds."""

from __future__ import annotations

from typing import Any

import numpy as np

from saen._util.arrays import Floats, segment_ids
from saen.data.graphs import Graphs
from saen.report.palette import contribution_colours

SIZE, SMALL_SIZE = (480, 400), (280, 220)  # pixels
MAX_ATOMS = 200


def draw_molecule(
    graph: Graphs,
    atom_values: Floats,
    bond_values: Floats,
    *,
    png: bool = False,
    small: bool = False,
) -> bytes | None:
    """An SVG or PNG file of a molecule coloured by values between -1 and 1.

    A `small` one has no numbers beside its atoms. None where the graph is not a molecule (atoms as
    node labels, types of bonds as edge labels), where it is too large to be legible, or without
    RDKit.

    >>> import saen
    >>> acid = saen.from_smiles(["CC(=O)O"])
    >>> draw_molecule(acid, np.array([0, 0.5, -1, 0]), np.zeros(3))[:5]
    b'<?xml'
    """
    molecule = _molecule(graph)
    if molecule is None:
        return None
    from rdkit.Chem.Draw import rdMolDraw2D

    drawer = (rdMolDraw2D.MolDraw2DCairo if png else rdMolDraw2D.MolDraw2DSVG)(
        *(SMALL_SIZE if small else SIZE)
    )
    options: Any = drawer.drawOptions()
    options.useBWAtomPalette()
    options.addAtomIndices = not small
    atoms, bonds = _colours(atom_values), _colours(bond_values)
    rdMolDraw2D.PrepareAndDrawMolecule(
        drawer,
        molecule,
        highlightAtoms=list(atoms),
        highlightAtomColors=atoms,
        highlightBonds=list(bonds),
        highlightBondColors=bonds,
        kekulize=False,
    )
    drawer.FinishDrawing()
    drawn = drawer.GetDrawingText()
    return drawn if isinstance(drawn, bytes) else drawn.encode()


def _colours(values: Floats) -> dict[int, tuple[float, ...]]:
    """RGB of every value that is not zero."""
    shown = np.flatnonzero(values)
    colours = contribution_colours(values[shown])[:, :3].tolist()
    return {number: tuple(c) for number, c in zip(shown.tolist(), colours, strict=True)}


def _molecule(graph: Graphs) -> Any:
    """The graph as an RDKit molecule, with places for its atoms; None where it is none."""
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
    kinds = [str(kind) for kind in graph.edge_labels[once].ravel().tolist()]
    atoms = [_atom(Chem, str(label)) for label in graph.node_labels.tolist()]
    if not atoms or None in atoms or len(kinds) != graph.n_edges or not set(kinds) <= set(names):
        return None
    molecule = Chem.RWMol()
    for atom in atoms:
        molecule.AddAtom(atom)
    for (one, other), kind in zip(graph.edges().tolist(), kinds, strict=True):
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
