"""What is said of molecules before anything is learned from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saen._util.arrays import Array, Ints
from saen._util.strings import plural
from saen.data.collection import known_targets
from saen.data.molecules import stereoisomers
from saen.io.libraries.rdkit import canonical_smiles, murcko_scaffolds
from saen.io.options import ReadOptions
from saen.jobs.groups import MOLECULE, SCAFFOLD, smiles_of

MAX_LOOKED_AT = 20_000
"""More molecules are not looked at: it would take longer than reading them."""
MIN_REPEATED = 0.1
"""The share of molecules with a scaffold that others have, from which on that is said."""


def molecule_lines(
    source: str,
    data: Any,
    reading: ReadOptions,
    skipped: Sequence[int | None] = (),
    *,
    command: str = "",
) -> list[str]:
    """Repeated molecules with different targets, and repeated scaffolds, in one line each.

    Scaffolds are told of where a `command` is given that has no groups; nothing of other data.
    """
    if not 1 < len(data) <= MAX_LOOKED_AT:
        return []
    smiles = smiles_of(source, data, reading, skipped)
    if smiles is None:
        return []
    lines = _repeated(canonical_smiles(smiles.tolist()), data.targets)
    return [*lines, *(_scaffolds(smiles, command) if command else ())]


def _repeated(molecules: Array, targets: Array | None) -> list[str]:
    """Molecules that occur several times, with targets that differ."""
    _, group, sizes = np.unique(molecules, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(sizes[group] > 1)
    if not len(rows):
        return []
    different = _differing(group[rows], None if targets is None else targets[rows])
    others = f", {different:,} of them with different targets" if different else ""
    same = plural(int((sizes > 1).sum()), "molecule")
    return [
        f"{same} on several rows ({len(rows):,} in all){others} (--groups {MOLECULE} keeps the "
        "rows of one in one fold)"
    ]


def _differing(group: Ints, targets: Array | None) -> int:
    """How many groups have more than one value of a target."""
    found: set[int] = set()
    for column in [] if targets is None else targets.reshape(len(group), -1).T:
        known = known_targets(column)
        values = np.unique(column[known], return_inverse=True)[1]
        pairs = np.unique(np.stack([group[known], values], axis=1), axis=0)
        own, counts = np.unique(pairs[:, 0], return_counts=True)
        found.update(own[counts > 1].tolist())
    return len(found)


def _scaffolds(smiles: Array, command: str) -> list[str]:
    scaffolds = murcko_scaffolds(smiles.tolist())
    _, group, sizes = np.unique(scaffolds, return_inverse=True, return_counts=True)
    share = float(((sizes[group] > 1) & (scaffolds != "")).mean())
    if share < MIN_REPEATED:
        return []
    return [
        f"{100 * share:.0f} % of molecules share their scaffold with others: scores and intervals "
        f"are about more of the same chemistry (for new scaffolds: {command} --groups {SCAFFOLD})"
    ]


def stereo_lines(data: Any, labels: Sequence[str] = ()) -> list[str]:
    """One line where molecules look identical to models that read these node labels, if any."""
    if any("node" in [kind.strip() for kind in each.split(",")] for each in labels):
        return []
    n = stereoisomers(data)
    if not n:
        return []
    how = "which the model does not read" if labels else "which models may leave out"
    return [
        f"{plural(n, 'molecule')} differ from another one in stereochemistry alone, {how} "
        "(--node-labels node reads it)"
    ]
