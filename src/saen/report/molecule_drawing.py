"""Molecules as chemists draw them, by RDKit, with contributions on atoms and bonds."""

from __future__ import annotations

from typing import Any

import numpy as np

from saen._util.arrays import Floats
from saen.report.palette import contribution_colours

SIZE, SMALL_SIZE = (560, 420), (280, 200)  # pixels, at most
BOND, SMALL_BOND = 45, 28  # pixels
STRENGTH = 0.65  # of the strongest colour: the symbols of atoms stay legible on it


def draw_molecule(
    molecule: Any,
    atom_values: Floats,
    bond_values: Floats,
    *,
    png: bool = False,
    small: bool = False,
    numbers: bool = True,
) -> bytes:
    """An SVG or PNG file of a molecule coloured by values between -1 and 1.

    There are `numbers` beside the atoms of one that is not `small`.

    >>> import saen
    >>> from saen.explanations.molecules import as_molecule
    >>> acid = as_molecule(saen.from_smiles(["CC(=O)O"]))
    >>> draw_molecule(acid, np.array([0, 0.5, -1, 0]), np.zeros(3))[:5]
    b'<?xml'
    """
    from rdkit.Chem.Draw import rdMolDraw2D

    places = molecule.GetConformer().GetPositions()[:, :2]
    bond = SMALL_BOND if small else BOND
    extent = np.ptp(places, axis=0) / 1.5 * bond + 2.5 * bond
    size = np.minimum(extent, SMALL_SIZE if small else SIZE).astype(int).tolist()
    drawer = (rdMolDraw2D.MolDraw2DCairo if png else rdMolDraw2D.MolDraw2DSVG)(*size)
    options: Any = drawer.drawOptions()
    options.useBWAtomPalette()
    options.addAtomIndices = numbers and not small
    options.fixedBondLength = bond  # less where the molecule would not fit
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
    colours = contribution_colours(STRENGTH * values[shown])[:, :3].tolist()
    return {number: tuple(c) for number, c in zip(shown.tolist(), colours, strict=True)}
