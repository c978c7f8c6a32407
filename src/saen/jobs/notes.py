"""What is said of data before anything is learned: what a model ignores, and of molecules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from saen._util.arrays import Array, Ints, segment_ids
from saen._util.strings import plural, some_of
from saen.data.collection import Dataset, known_targets
from saen.data.graphs import Graphs
from saen.data.molecules import stereoisomers
from saen.decompositions import Decomposition, Edges
from saen.decompositions.graph_base import GraphDecomposition
from saen.decompositions.node_labels import ATTRIBUTE_BINS, ELEMENT
from saen.io.formats.molecules import SMILES
from saen.io.libraries.rdkit import canonical_smiles, murcko_scaffolds
from saen.io.options import ReadOptions
from saen.jobs.groups import MOLECULE, SCAFFOLD, smiles_of

if TYPE_CHECKING:
    from saen.learning.models.base import Learner

WITH_ROLES = ("ego", "neighbourhoods", "paths")
"""Decompositions of graphs that have the parameter `edges`."""
MAX_LOOKED_AT = 20_000
"""More molecules are not looked at: it would take longer than reading them."""
MIN_NAMED = 3
"""Nodes per graph from which on labels that are all different look like names."""
MIN_REPEATED = 0.1
"""The share of molecules with a scaffold that others have, from which on that is said."""


def unused_information(
    data: Any,
    decomposition: Decomposition | None,
    *,
    read: Iterable[str] = (SMILES,),
    vectors: str = "attributes",
) -> list[str]:
    """One line for everything in the data that is ignored, with the option that would use it.

    Only saen's own decompositions of graphs are known well enough to say anything. `read` are
    columns that are used otherwise, such as those with molecules, targets or groups; `vectors` the
    label by which node attributes are best read.

    >>> from saen.decompositions import Ego
    >>> bond = Graphs.from_edge_lists([[(0, 1)]], node_labels=["C", "O"], edge_labels=["SINGLE"])
    >>> unused_information(bond, Ego().fit(bond))
    ['edge labels are not used (use them with --decomposition "ego(edges=roles)")']
    """
    lines = []
    if isinstance(data, Graphs) and isinstance(decomposition, GraphDecomposition):
        lines = [*_edges(data, decomposition), *_nodes(data, decomposition, vectors)]
    columns = (data.extra or {}) if isinstance(data, Dataset) else {}
    features = data.feature_names if isinstance(data, Dataset) else ()
    used = {name.casefold() for name in (*read, *features)}
    extra = [name for name in columns if name.casefold() not in used]
    if extra:
        lines.append(f"{plural(len(extra), 'column')} not used: {some_of(extra)}")
    return lines


def unused_by(learner: Learner, data: Any, *, read: Iterable[str] = (SMILES,)) -> list[str]:
    """What a model ignores of the data, in one line each; a blend, what no candidate reads.

    `read` as for `unused_information`.

    >>> from saen import Classifier, SAENClassifier
    >>> charged = {"node_labels": ["C", "O"], "node_attributes": [[0.0], [-1.0]]}
    >>> bond = Graphs.from_edge_lists([[(0, 1)]], **charged)
    >>> unused_by(SAENClassifier().learner(), bond), unused_by(Classifier().learner(), bond)
    (['node attributes are not used (use them with --node-labels node,attributes)'], [])
    """
    from saen.learning.decomposing import Decompositions  # imports scikit-learn

    says = partial(unused_information, data, read=tuple(read))
    if not isinstance(data, Graphs):
        return says(None)
    whole, every = Decompositions(data), np.arange(len(data))
    lines, missing = [], []
    for candidate in learner.candidates(whole, every):
        decomposition = candidate.learner.spec.resolve(whole, every).resolved(data)
        vectors = candidate.learner.vectors
        exact = _exact_vectors(decomposition) if vectors == ATTRIBUTE_BINS else []
        if candidate.learner.reads_features:
            missing = _missing_features(data)
        elif data.feature_names:
            exact.append("features are not used: networks do not read them (use --preset counts)")
        lines.append([*exact, *says(decomposition, vectors=vectors)])
    first, *others = lines
    unused = [line for line in first if all(line in each for each in others)]
    return [*unused, *missing]


def _missing_features(data: Dataset) -> list[str]:
    """One line about numbers that are not known, with the feature that lacks most."""
    values = data.features
    if values is None or not np.isnan(values).any():
        return []
    missing = np.isnan(values).sum(axis=0)
    most = int(missing.argmax())
    names = [name for name in data.feature_names if name in (data.extra or ())]
    others = int((missing > 0).sum()) - 1
    more = f", and some in {plural(others, 'other feature')}" if others else ""
    return [
        f"feature {names[most]!r}: {missing[most]:,} of {len(data):,} values are missing{more} "
        "(medians of the training data stand for them)"
    ]


def _exact_vectors(decomposition: Decomposition) -> list[str]:
    """What to say of parts that real numbers tell apart: the next graph hardly has the same."""
    labels = getattr(decomposition, "node_labels", "").split(",")
    if "attributes" not in [kind.strip() for kind in labels]:
        return []
    return [
        "parts with real-valued attributes hardly ever repeat, so that counts of them tell little "
        f"(put attributes into bins with --node-labels {ATTRIBUTE_BINS})"
    ]


def _edges(graphs: Graphs, decomposition: GraphDecomposition) -> list[str]:
    lines = []
    advice = (
        "ego(edges=roles)"
        if decomposition.name not in WITH_ROLES
        else (f"{decomposition.name}(edges=roles)")
    )
    with_roles = f'use them with --decomposition "{advice}"'
    plain = decomposition.edges == "none"
    if graphs.edge_labels is not None and plain:
        lines.append(f"edge labels are not used ({with_roles})")
    if graphs.directed and plain and decomposition.direction == "both":
        lines.append(f"edge directions are not used ({with_roles})")
    own = isinstance(decomposition, Edges) and "attributes" in decomposition.node_labels
    if graphs.edge_attributes is not None and decomposition.edges != "bins" and not own:
        with_bins = with_roles.replace("edges=roles", "edges=bins")
        lines.append(f"edge attributes are not used ({with_bins})")
    return lines


def _nodes(graphs: Graphs, decomposition: GraphDecomposition, vectors: str) -> list[str]:
    used = [kind.strip() for kind in decomposition.node_labels.split(",")]
    if ELEMENT in used and "node" not in used:
        return ["of atoms, the element alone is read (--node-labels node reads all that is known)"]
    read = {"attributes" if kind.startswith(ATTRIBUTE_BINS) else kind for kind in used}
    return [
        f"node {what} are not used (use them with --node-labels {','.join([*used, advised])})"
        for what, kind, advised, column in (
            ("labels", "node", "node", graphs.node_labels),
            ("attributes", "attributes", vectors, graphs.node_attributes),
        )
        if column is not None and kind not in read
    ]


def name_lines(data: Any, node_labels: str = "auto") -> list[str]:
    """One line where node labels look like names, if a model reads them.

    >>> pair = Graphs.from_edge_lists([[(0, 1), (1, 2)]] * 2, node_labels=[*"abcdef"])
    >>> name_lines(pair)[0][:57], name_lines(pair, "degree")
    ('no two nodes of a graph have the same labels, as if these', [])
    """
    if not isinstance(data, Graphs) or data.node_labels is None or len(data) < 2:
        return []
    if not {"auto", "node"} & {*node_labels.split(",")}:
        return []
    first = int(np.searchsorted(data.node_offsets, MAX_LOOKED_AT, side="right")) - 1
    some = data[: max(first, 1)]
    assert some.node_labels is not None
    columns = [segment_ids(some.node_offsets)]
    columns += [
        np.unique(each, return_inverse=True)[1] for each in np.atleast_2d(some.node_labels.T)
    ]
    different = len(np.unique(np.stack(columns, axis=1), axis=0))
    if different < some.n_nodes or some.n_nodes < MIN_NAMED * len(some):
        return []
    return [
        "no two nodes of a graph have the same labels, as if these were names, which tell a model "
        "nothing (node_label=… reads other columns, --node-labels degree none)"
    ]


# -- molecules ---------------------------------------------------------------------------------


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
