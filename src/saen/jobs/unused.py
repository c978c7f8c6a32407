"""What the data hold and a model does not read."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from saen._util.strings import plural, some_of
from saen.data.collection import Dataset
from saen.data.graphs import Graphs
from saen.decompositions import Decomposition, Edges
from saen.decompositions.graph_base import GraphDecomposition
from saen.decompositions.node_labels import ATTRIBUTE_BINS, ELEMENT
from saen.io.formats.molecules import SMILES

if TYPE_CHECKING:
    from saen.learning.models.base import Learner


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
    lines = []
    for candidate in learner.candidates(whole, every):
        decomposition = candidate.learner.spec.resolve(whole, every).resolved(data)
        vectors = candidate.learner.vectors
        exact = _exact_vectors(decomposition) if vectors == ATTRIBUTE_BINS else []
        if data.feature_names and not candidate.learner.reads_features:
            exact.append("features are not used: networks do not read them (use --preset counts)")
        lines.append([*exact, *says(decomposition, vectors=vectors)])
    first, *others = lines
    unused = [line for line in first if all(line in each for each in others)]
    return [*unused, *_missing_features(data)]


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


WITH_ROLES = ("ego", "neighbourhoods", "paths")
"""Decompositions of graphs that have the parameter `edges`."""
