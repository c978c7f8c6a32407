"""Graphs that are molecules: nodes labelled by atoms as SMILES write them, edges by bond types.

A rich label is an atom with its charge, hydrogens and aromaticity (`c`, `[nH]`, `[N+]`), followed
by `@R` or `@S` where it is a stereocentre, and by `/E` or `/Z` on a double bond with a geometry.
"""

from __future__ import annotations

import re

import numpy as np

from saen._util.arrays import Array
from saen.data.duplicates import identical_examples
from saen.data.graphs import Graphs

_SYMBOLS = """* H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga
Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb
Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es
Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"""
ELEMENTS = frozenset(re.findall(r"\S+", _SYMBOLS))
BONDS = frozenset(("SINGLE", "DOUBLE", "TRIPLE", "QUADRUPLE", "AROMATIC", "DATIVE", "ZERO"))
_ATOM = re.compile(r"\[?\d*([A-Z][a-z]?|[a-z][a-z]?|\*)")
_STEREO = re.compile(r"(@[RS])?(/[EZ])?$")


def without_stereo(label: str) -> str:
    """The label of an atom without its stereochemistry.

    >>> without_stereo("[nH]"), without_stereo("[NH+]@R"), without_stereo("C/Z")
    ('[nH]', '[NH+]', 'C')
    """
    return _STEREO.sub("", label)


def element(label: str) -> str | None:
    """The symbol of the element of an atom, None for a label that is no atom.

    >>> [element(label) for label in ("c", "[nH]", "[13CH3-]", "Cl", "C@S", "[se]", "x1")]
    ['C', 'N', 'C', 'Cl', 'C', 'Se', None]
    """
    found = _ATOM.match(label)
    symbol = found[1].capitalize() if found else ""
    if symbol not in ELEMENTS and symbol[:1] in ELEMENTS and label.startswith("["):
        symbol = symbol[:1]
    known = without_stereo(label).lower() == symbol.lower() or label.startswith("[")
    return symbol if known and symbol in ELEMENTS else None


def elements(labels: Array) -> Array | None:
    """The elements of atoms, (N,); None for labels that are not all atoms."""
    if labels.ndim != 1 or labels.dtype.kind != "U":
        return None
    values, places = np.unique(labels, return_inverse=True)
    symbols = [element(label) for label in values.tolist()]
    return None if None in symbols else np.array(symbols, dtype=np.str_)[places]


def stereoisomers(graphs: Graphs) -> int:
    """How many molecules differ from another one in stereochemistry alone, as labels tell it."""
    if not has_atoms(graphs):
        return 0
    labels = graphs.node_labels
    assert labels is not None
    values, places = np.unique(labels, return_inverse=True)
    plain = np.array([without_stereo(label) for label in values.tolist()], dtype=np.str_)
    if np.array_equal(plain, values):
        return 0
    flat = identical_examples(graphs.with_columns(node_labels=plain[places]))
    _, group, sizes = np.unique(flat, return_inverse=True, return_counts=True)
    pairs = np.unique(np.stack([group, identical_examples(graphs)], axis=1), axis=0)
    kinds = np.bincount(pairs[:, 0], minlength=len(sizes))
    return int(sizes[kinds > 1].sum())


def has_atoms(graphs: Graphs) -> bool:
    """Whether nodes are atoms of molecules, and labels say more of them than the element.

    >>> bond = {"edge_labels": ["AROMATIC"]}
    >>> [has_atoms(Graphs.from_edge_lists([[(0, 1)]], node_labels=list(atoms), **bond))
    ...  for atoms in ("cn", "CN")]
    [True, False]
    """
    labels, bonds = graphs.node_labels, graphs.edge_labels
    if labels is None or bonds is None or labels.dtype.kind != "U" or bonds.dtype.kind != "U":
        return False
    if not {*np.unique(bonds).tolist()} <= BONDS:
        return False
    symbols = elements(labels)
    return symbols is not None and not np.array_equal(symbols, labels)
