"""The Weisfeiler-Lehman subtree kernel with a support vector machine, which the paper quotes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import SVC

from saen._util.arrays import Floats, Ints
from saen._util.seeds import derive_seed
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.learning.estimators import PartCounts
from saen.learning.metrics import corrected_interval
from saen.learning.splits import make_splits

DEPTHS = (1, 2, 3, 4, 5)
COSTS = (1.0, 10.0, 100.0)


def evaluate_kernel(
    graphs: Graphs, *, repeats: int = 3, folds: int = 10, seed: int = 0
) -> dict[str, Any]:
    """Accuracy of the kernel in cross-validation, and what was chosen for every repeat and fold.

    Depth and C are chosen on an inner split of each training part; the machine is then trained
    again on all of it.

    >>> import saen
    >>> threads = saen.generate_threads(40, average_nodes=20)
    >>> found = evaluate_kernel(threads, repeats=2, folds=2)
    >>> len(found["accuracy"]["per_repeat"]), len(found["chosen"])
    (2, 4)
    """
    if graphs.targets is None:
        raise InputError(f"{graphs.name or 'the collection'} has no classes to predict")
    _, targets = np.unique(graphs.targets, return_inverse=True)
    grams = {depth: gram_matrix(graphs, depth) for depth in DEPTHS}
    scores = np.empty((repeats, folds))
    chosen = []
    for repeat, parts in enumerate(make_splits(targets, repeats, folds, seed)):
        for fold, (train, test) in enumerate(parts):
            depth, cost = _choose(grams, targets, train, (seed, repeat, fold))
            scores[repeat, fold] = _score(grams[depth], targets, train, test, cost)
            chosen.append({"depth": depth, "C": cost})
    per_repeat = scores.mean(axis=1)
    return {
        "accuracy": {
            "mean": float(per_repeat.mean()),
            "per_repeat": per_repeat.tolist(),
            "interval": corrected_interval(scores.ravel(), 1 / (folds - 1), (0.0, 1.0)),
        },
        "chosen": chosen,
        "protocol": {"repeats": repeats, "folds": folds, "selection": "nested"},
        "seed": seed,
    }


def _choose(
    grams: dict[int, Floats], targets: Ints, train: Ints, place: tuple[int, int, int]
) -> tuple[int, float]:
    """Depth and C that do best on an inner split of a training part."""
    state = derive_seed(place, "inner split") % 2**31
    splitter = StratifiedShuffleSplit(1, test_size=0.1, random_state=state)
    fit, check = (train[part] for part in next(splitter.split(train, targets[train])))
    choices = product(grams, COSTS)
    return max(choices, key=lambda c: _score(grams[c[0]], targets, fit, check, c[1]))


def gram_matrix(graphs: Graphs, depth: int) -> Floats:
    """Cosines of the counts of Weisfeiler-Lehman colours after 0 … depth rounds, (G, G).

    Nodes without labels begin with their degrees.

    >>> path, star = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]
    >>> labels = ["C"] * 8
    >>> both = Graphs.from_edge_lists([path, star], node_labels=labels)
    >>> gram_matrix(both, depth=1).round(3).tolist()  # 4 · 4 + 2 · 3 of 4² + 2² + 2², 4² + 3² + 1²
    [[1.0, 0.881], [0.881, 1.0]]
    """
    labels = "degree" if graphs.node_labels is None else "node"
    unit = PartCounts(
        f"neighbourhoods(depth={depth}, edges=none)", node_labels=labels, encoding="counts"
    ).fit_transform(graphs)
    gram: Floats = (unit @ unit.T).toarray()
    return gram


def _score(gram: Floats, targets: Ints, train: Ints, test: Ints, cost: float) -> float:
    machine = SVC(C=cost, kernel="precomputed", cache_size=1000)
    machine.fit(gram[np.ix_(train, train)], targets[train])
    return float(machine.score(gram[np.ix_(test, train)], targets[test]))
