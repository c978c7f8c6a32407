"""The candidates that a blend tries by default: a table of rules over facts of the training data.

The facts are the kind of data, which labels, attributes and directions there are, and how much of
it there is; never a dataset's name, and never the targets' values.

Part counts come first: linear models over a few vocabularies of parts take seconds, and averaged
they are as good as anything else on most data. Networks follow where they pay: where nodes or edges
have real-valued attributes, which counts can only read in bins; on sparse graphs without labels
(trees, threads), whose parts hardly repeat; on dense graphs and on labelled ones that are not like
molecules, where they take seconds and lower the log loss; and on documents and nested data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from saen._util.arrays import Ints
from saen.data.molecules import has_atoms
from saen.decompositions import Decomposition
from saen.decompositions.node_labels import ATTRIBUTE_BINS
from saen.learning.decomposing import Decompositions
from saen.learning.features import RDKIT
from saen.learning.models.base import Candidate, Learner
from saen.learning.models.counts import CountsArguments, CountsLearner
from saen.learning.models.networks import NetworkArguments, NetworkLearner

BUDGETS = ("quick", "normal", "thorough")
DENSE = 4
"""Neighbours per node, on average, from which on graphs without labels are told apart by their
triangles and exact degrees. In sparser ones, such as trees, degrees of hubs are nearly unique."""
RING_NEIGHBOURS, RING_DEGREE = 3, 16
"""Neighbours per node, on average and at most, up to which graphs with labels have rings that tell
their nodes apart, as molecules do: where there are more links, all nodes are in triangles."""
PAIR_DISTANCE = 6
"""Up to which pairs of nodes of such graphs are counted: about the width of three rings."""
FEW = 2000
"""Graphs below which pairs are counted and networks train along paths, with attributes."""
MAX_FOREST_EXAMPLES = 5_000
"""Examples above which forests are not tried: they would take minutes there."""
MAX_DESCRIBED = 20_000
"""Molecules above which descriptors are not tried: they take some milliseconds each."""
MANY = 8000
"""Graphs from which on two networks share one inner split, where fewer have one for each of three:
the average of two is better than one that is trained for twice as long."""
MAX_LINKS = 100_000_000
"""Nodes and neighbours of all graphs above which networks are not tried."""


@dataclass(frozen=True)
class Facts:
    """What the rules look at: sums over the training graphs, and which columns these have.

    `n` examples with `nodes` and `links` (neighbours of all nodes) together, at most `max_degree`
    neighbours of one node; `atoms`: whether node labels tell more than elements; `descriptors`:
    whether RDKit can describe the graphs; `numbers`: whether real numbers are learned.
    """

    n: int
    nodes: int
    links: int
    max_degree: int
    labelled: bool
    atoms: bool
    descriptors: bool
    attributes: bool
    edge_attributes: bool
    numbers: bool

    @property
    def few(self) -> bool:
        """Whether there are few graphs."""
        return self.n < FEW

    @property
    def networks(self) -> int:
        """Networks per inner fold."""
        return 1 if self.n < MANY else 2

    @property
    def weighted(self) -> bool:
        """Whether nodes or edges have real-valued attributes."""
        return self.attributes or self.edge_attributes

    @property
    def dense(self) -> bool:
        """Whether nodes have many neighbours."""
        return self.links >= DENSE * self.nodes

    @property
    def ringed(self) -> bool:
        """Whether labels and rings tell nodes apart: most nodes have a chain's neighbours."""
        sparse = self.links < RING_NEIGHBOURS * self.nodes
        return self.labelled and sparse and self.max_degree <= RING_DEGREE

    @property
    def own(self) -> str:
        """The labels of nodes that are their own, of atoms the element, or else a coarse degree."""
        return "element" if self.atoms else "node" if self.labelled else "log-degree:2"

    @property
    def scaled(self) -> str:
        """The labels that the second vocabulary has."""
        if self.ringed:
            return f"{self.own},rings,log-degree:1"
        if self.labelled:
            return self.own
        return "degree,triangles" if self.dense else "log-degree:2,hub"


@dataclass(frozen=True)
class Rule:
    """A row of the table: a candidate, when it is tried, with which arguments, and why."""

    name: str
    learner: Callable[..., Learner]
    when: Callable[[Facts], bool]
    arguments: Callable[[Facts], dict[str, Any]]
    why: str
    budget: str = "normal"


def _counts(device: str, **arguments: Any) -> Learner:
    return CountsLearner(CountsArguments(**arguments))


def _networks(device: str, **arguments: Any) -> Learner:
    return NetworkLearner(NetworkArguments(**arguments, device=device))


def _neighbourhoods(labels: str, **others: Any) -> dict[str, Any]:
    return {"decomposition": "neighbourhoods", "node_labels": labels, **others}


def _pairs(facts: Facts, **others: Any) -> dict[str, Any]:
    pairs = f"pairs(max_distance={PAIR_DISTANCE})"
    return {"decomposition": pairs, "node_labels": facts.scaled, **others}


def _other_norm(facts: Facts) -> str | None:
    """Numbers are learned from plain counts by default, classes from rows of length 1."""
    return "l2" if facts.numbers else None


RULES = (
    Rule(
        "part counts",
        _counts,
        lambda f: True,
        lambda f: _neighbourhoods(f.own, norm=None if f.numbers else "l2"),
        "neighbourhoods of up to five steps, counted: the Weisfeiler-Lehman features",
        "quick",
    ),
    Rule(
        "part counts (rings)",
        _counts,
        lambda f: f.ringed,
        lambda f: _neighbourhoods(f.scaled, norm=None if f.numbers else "l2"),
        "in molecules, rings tell atoms of one element apart",
        "quick",
    ),
    Rule(
        "part counts (triangles)",
        _counts,
        lambda f: not f.labelled and f.dense,
        lambda f: _neighbourhoods(f.scaled, norm=None if f.numbers else "l2"),
        "in dense graphs without labels, exact degrees and triangles do",
        "quick",
    ),
    Rule(
        "part counts (hubs)",
        _counts,
        lambda f: not f.labelled and not f.dense,
        lambda f: _neighbourhoods("log-degree:1,hub", norm=None if f.numbers else "l2"),
        "in sparse graphs without labels, the distance to the hub does",
        "quick",
    ),
    Rule(
        "part counts (sizes)",
        _counts,
        lambda f: True,
        lambda f: _neighbourhoods(f.scaled, norm=_other_norm(f)),
        "rows of length 1 hide how large a graph is, plain counts show it: the other one of both",
        "quick",
    ),
    Rule(
        "part counts (pairs)",
        _counts,
        lambda f: f.ringed and f.few and not f.weighted,
        lambda f: _pairs(f, norm=None if f.numbers else "l2"),
        "of few molecules, two atoms and their distance occur more often than whole neighbourhoods",
        "quick",
    ),
    Rule(
        "part counts (pairs, sizes)",
        _counts,
        lambda f: f.ringed and f.few and not f.weighted and not f.descriptors,
        lambda f: _pairs(f, norm=_other_norm(f)),
        "as above",
        "quick",
    ),
    Rule(
        "part counts (atoms)",
        _counts,
        lambda f: f.atoms,
        lambda f: _neighbourhoods("node", norm=None if f.numbers else "l2"),
        "atoms with charge, hydrogens, aromaticity and stereochemistry, where these matter",
        "quick",
    ),
    Rule(
        "part counts (descriptors)",
        _counts,
        lambda f: f.descriptors and not f.weighted,
        lambda f: _neighbourhoods(f.scaled, norm=None if f.numbers else "l2", features="rdkit"),
        "descriptors of whole molecules say what parts alone do not, such as surfaces",
    ),
    Rule(
        "part counts (atoms, descriptors)",
        _counts,
        lambda f: f.descriptors and not f.weighted,
        lambda f: _neighbourhoods("node", norm=None if f.numbers else "l2", features="rdkit"),
        "both",
    ),
    Rule(
        "part counts (descriptors, forest)",
        _counts,
        lambda f: f.descriptors and not f.weighted and f.n <= MAX_FOREST_EXAMPLES,
        lambda f: _neighbourhoods("node", model="forest", features="rdkit"),
        "descriptors have thresholds",
    ),
    Rule(
        "part counts (forest)",
        _counts,
        lambda f: f.labelled and not f.ringed and f.n <= MAX_FOREST_EXAMPLES,
        lambda f: _neighbourhoods("node", model="forest"),
        "in large graphs with few labels, such as proteins, shares of parts have thresholds",
    ),
    Rule(
        "part counts (attribute bins)",
        _counts,
        lambda f: f.attributes,
        lambda f: _neighbourhoods(f"node,{ATTRIBUTE_BINS}" if f.labelled else ATTRIBUTE_BINS),
        "real-valued attributes as labels",
        "quick",
    ),
    Rule(
        "part counts (edge bins)",
        _counts,
        lambda f: f.edge_attributes,
        lambda f: (
            _neighbourhoods("node" if f.labelled else "log-degree:1")
            | {"decomposition": "neighbourhoods(edges=bins)"}
        ),
        "real-valued attributes of edges as roles",
        "quick",
    ),
    Rule(
        "ego networks (attributes)",
        _networks,
        lambda f: f.attributes and f.nodes + f.links <= MAX_LINKS,
        lambda f: {"decomposition": "ego", "node_labels": f"{f.own},attributes", "epochs": 80},
        "networks read real-valued attributes as they are",
    ),
    Rule(
        "neighbourhood networks (attributes)",
        _networks,
        lambda f: f.attributes and f.few,
        lambda f: {
            "decomposition": "neighbourhoods(depth=2)",
            "node_labels": f"{f.own},attributes",
            "epochs": 40,
        },
        "the same, along paths",
    ),
    Rule(
        "edge networks (attributes)",
        _networks,
        lambda f: f.edge_attributes and not f.attributes and f.nodes + f.links <= MAX_LINKS,
        lambda f: {
            "decomposition": "edges",
            "node_labels": ("node" if f.labelled else "log-degree:1") + ",attributes",
        },
        "networks read real-valued attributes of edges as they are",
    ),
    Rule(
        "neighbourhood networks (hubs)",
        _networks,
        lambda f: (
            not f.labelled and not f.dense and not f.attributes and f.nodes + f.links <= MAX_LINKS
        ),
        lambda f: {
            "decomposition": "neighbourhoods(depth=3)",
            "node_labels": f.scaled,
            "epochs": 40,
            "n_models": f.networks,
        },
        "in trees without labels parts hardly repeat: networks see how similar they are",
    ),
    Rule(
        "ego networks",
        _networks,
        lambda f: (
            (f.dense or f.labelled)
            and not f.ringed
            and not f.weighted
            and f.nodes + f.links <= MAX_LINKS
        ),
        lambda f: {
            "decomposition": "ego",
            "node_labels": f.own if f.labelled else "log-degree:4",
            "epochs": 30 if f.few else 80,
            "n_models": f.networks,
        },
        "where graphs are dense or large, networks take seconds and lower the log loss",
    ),
    Rule(
        "neighbourhood networks",
        _networks,
        lambda f: not f.attributes and f.nodes + f.links <= MAX_LINKS,
        lambda f: {
            "decomposition": f"neighbourhoods(depth={2 if f.few and f.numbers else 4})",
            "node_labels": f"{f.own},rings" if f.ringed else f.own,
            "epochs": 30 if f.few else 40,
        },
        "another kind of model for the average, rarely worth its time",
        "thorough",
    ),
)
"""In the order in which candidates are tried; at most eight apply in budget `normal`."""


def facts_of(data: Decompositions, train: Ints, *, numbers: bool) -> Facts | None:
    """The facts of some training graphs; None where the data are not graphs."""
    graphs = data.graphs
    if graphs is None:
        return None
    known, rows = data.facts(train)
    atoms = has_atoms(graphs)
    described = RDKIT in graphs.feature_names  # all candidates read descriptors
    return Facts(
        n=len(rows),
        nodes=int(known.nodes[rows].sum()),
        links=int(known.links[rows].sum()),
        max_degree=int(known.max_degree[rows].max(initial=0)),
        labelled=graphs.node_labels is not None,
        atoms=atoms,
        descriptors=atoms
        and not described
        and len(rows) <= MAX_DESCRIBED
        and find_spec("rdkit") is not None,
        attributes=graphs.node_attributes is not None,
        edge_attributes=graphs.edge_attributes is not None,
        numbers=numbers,
    )


def default_candidates(
    data: Decompositions,
    train: Ints,
    *,
    decomposition: str | Decomposition = "auto",
    numbers: bool = False,
    budget: str = "normal",
    device: str = "auto",
) -> list[Candidate]:
    """What is tried for these training examples; all with one `decomposition`, if it is given.

    >>> import numpy as np
    >>> import saen
    >>> threads = Decompositions(saen.generate_threads(40, seed=1))
    >>> listed = default_candidates(threads, np.arange(40), budget="quick")
    >>> [each.title for each in listed]
    ['part counts', 'part counts (hubs)', 'part counts (sizes)']
    """
    facts = facts_of(data, train, numbers=numbers)
    if facts is None or decomposition != "auto":
        own = {} if decomposition == "auto" else {"decomposition": decomposition}
        norm = {"norm": None if numbers else "l2"}
        counts = Candidate({"candidate": "part counts"}, _counts(device, **own, **norm))
        networks = Candidate({"candidate": "networks"}, _networks(device, **own))
        return [counts] if budget == "quick" else [counts, networks]
    affordable = BUDGETS[: BUDGETS.index(budget) + 1]
    return [
        Candidate({"candidate": rule.name}, rule.learner(device, **rule.arguments(facts)))
        for rule in RULES
        if rule.budget in affordable and rule.when(facts)
    ]
