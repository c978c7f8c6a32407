"""Generated datasets of online threads: graphs like those of social networks, in classes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Floats, offsets, segment_ids
from saen.data.graphs import Graphs
from saen.errors import InputError

# The habits of a class: how often a new user answers the original poster, one of a few early
# hubs, a popular user, the latest user, any user; how often a user does what the previous one did;
# how often a second answer goes to a hub. The two named classes have similar numbers of edges and
# leaves and similar maximum degrees: the degrees of neighbours separate them better.
_POSTER, _HUBS, _POPULAR, _LATEST, _ANYBODY = range(5)
_SAME_AGAIN, _SECOND_TO_HUB = 5, 6
_NAMED_HABITS = np.array(
    [
        [0.40, 0.06, 0.12, 0.34, 0.08, 0.85, 0.05],  # discussion: one large hub, long chains
        [0.22, 0.34, 0.06, 0.24, 0.14, 0.05, 0.95],  # questions: several hubs, short exchanges
    ]
)
MAX_CLASSES = 20

# The smaller these are, the more the graphs of one class differ, and the lower the accuracy of
# the best classifier.
_CONCENTRATION_OF_ANSWERS = 20.0
_CONCENTRATION_OF_RATES = 12.0

MIN_NODES = 3
_SPREAD_OF_SIZES = 0.8
_EXTRA_THREADS = 1.5
_SECOND_ANSWERS = 0.15

Nodes = NDArray[np.int64]


def generate_threads(
    n_graphs: int = 300,
    *,
    n_classes: int = 2,
    average_nodes: float = 60,
    seed: int = 0,
    name: str = "threads",
) -> Graphs:
    """Generate reply graphs of online threads, in balanced classes.

    A node is a user; an edge joins two users of whom one answered the other. Users join one
    after another and answer the original poster, one of a few hubs, a popular user (by degree),
    the latest user, or any user; some answer a second time, a few start a new thread. The classes
    differ in how often each happens, and every graph draws its own habits around those of its
    class, so that classes overlap. Sizes are log-normal around `average_nodes` and independent of
    the class. The graphs are undirected, without loops and without node labels: all information
    is in the degrees.

    Two classes are named `"discussion"` (one hub, long chains) and `"questions"` (several hubs,
    short exchanges); more, up to 20, are named `"community 0"`, `"community 1"` … A community has
    the same habits for every seed and every number of classes. The same arguments give the same
    graphs.

    Parameters
    ----------
    n_graphs : int, default=300
        The number of graphs.
    n_classes : int, default=2
        The number of classes, up to 20.
    average_nodes : float, default=60
        The number of nodes around which sizes are distributed.
    seed : int, default=0
        Random seed.
    name : str, default='threads'
        The name of the dataset.

    Raises
    ------
    InputError
        For invalid arguments.

    Examples
    --------
    >>> threads = generate_threads(40, average_nodes=25, seed=7)
    >>> threads.summary()["classes"]
    {'discussion': 20, 'questions': 20}
    >>> threads == generate_threads(40, average_nodes=25, seed=7)
    True
    """
    n_graphs = _integer("n_graphs", n_graphs, lowest=0)
    n_classes = _integer("n_classes", n_classes, lowest=2, highest=MAX_CLASSES)
    seed = _integer("seed", seed, lowest=0)
    if not isinstance(average_nodes, Real) or not 4 <= average_nodes < np.inf:
        raise InputError(f"average_nodes must be a finite number ≥ 4, not {average_nodes!r}")
    random = np.random.Generator(np.random.PCG64(seed))

    classes = random.permutation(np.arange(n_graphs) % n_classes)
    habits = _habits(n_classes)[classes]
    users = _Users.drawn(random, n_graphs, average_nodes)
    first = _first_answers(random, users, habits)
    source, target = _second_answers(random, users, habits, first)
    child = np.flatnonzero(first != np.arange(len(first)))
    edges = np.column_stack(
        [np.concatenate([child, source]), np.concatenate([first[child], target])]
    )
    return Graphs.from_edges(
        edges,
        users.sizes,
        duplicates="merge",
        targets=_class_names(n_classes)[classes],
        name=name,
    )


@dataclass(frozen=True)
class _Users:
    """The nodes of all graphs, in the order in which they join."""

    sizes: NDArray[np.int64]  # users of each graph
    hubs: NDArray[np.int64]  # how many of the first users of each graph are hubs
    graph: NDArray[np.int64]  # the graph of each user
    position: NDArray[np.int64]  # the number of earlier users of the same graph

    @staticmethod
    def drawn(random: np.random.Generator, n_graphs: int, average: float) -> _Users:
        weights = np.exp(_SPREAD_OF_SIZES * random.standard_normal(n_graphs))
        scale = n_graphs * (average - MIN_NODES) / max(float(weights.sum()), 1e-300)
        sizes = MIN_NODES + np.rint(scale * weights).astype(np.int64)
        starts = offsets(sizes)
        graph = segment_ids(starts)
        position = np.arange(starts[-1]) - starts[graph]
        return _Users(sizes, random.integers(2, 8, size=n_graphs), graph, position)

    def earlier(self, random: np.random.Generator, who: Nodes, *, hubs: bool = False) -> Nodes:
        """For each of `who` a random earlier user (or hub); the first user for the first."""
        before = self.position[who]
        choices = np.minimum(before, self.hubs[self.graph[who]]) if hubs else before
        return who - before + (random.random(len(who)) * choices).astype(np.int64)


def _class_names(n_classes: int) -> NDArray[np.str_]:
    if n_classes == 2:
        return np.array(["discussion", "questions"])
    return np.array([f"community {number}" for number in range(n_classes)])


def _habits(n_classes: int) -> Floats:
    """The habits of each class, shape (classes, 7); the first five are shares of one."""
    if n_classes == 2:
        return _NAMED_HABITS
    # Multiples of the powers of a generalised golden ratio are evenly spread for any number of
    # classes, so that a class does not depend on how many others there are.
    ratio = 1.0969815577985598  # ratio ** 8 == ratio + 1
    numbers = np.arange(1, n_classes + 1)[:, None]
    spread = (0.5 + numbers * ratio ** -np.arange(1.0, 8.0)) % 1.0
    shares = 0.3 - np.log1p(-spread[:, :5])
    shares /= shares.sum(axis=1, keepdims=True)
    rates = 0.2 + 0.6 * spread[:, 5:]
    return np.column_stack([shares, rates])


def _first_answers(random: np.random.Generator, users: _Users, habits: Floats) -> Nodes:
    """The earlier node that each node answers, or itself if it starts a thread."""
    kind = _kinds_of_answers(random, users, habits)
    everyone = np.arange(len(kind))
    # About _EXTRA_THREADS more threads in a large graph, fewer in a small one.
    rate = random.standard_exponential(len(users.sizes)) * _EXTRA_THREADS / (users.sizes + 50)
    starts = (random.random(len(kind)) < rate[users.graph]) | (users.position == 0)
    # The next user answers the one who starts a thread, so that few nodes are isolated.
    kind[1:][starts[:-1]] = _LATEST

    answered = users.earlier(random, everyone)
    np.copyto(answered, everyone - users.position, where=kind == _POSTER)
    np.copyto(answered, users.earlier(random, everyone, hubs=True), where=kind == _HUBS)
    np.copyto(answered, everyone - 1, where=kind == _LATEST)
    np.copyto(answered, everyone, where=starts)
    # A popular user is either end of a random first answer: a node drawn in proportion to its
    # degree. The other end is known only once all answers are.
    other_end = (kind == _POPULAR) & ~starts & (random.random(len(kind)) < 0.5)
    return _follow(answered, other_end)


def _kinds_of_answers(
    random: np.random.Generator, users: _Users, habits: Floats
) -> NDArray[np.int8]:
    weights = random.standard_gamma(_CONCENTRATION_OF_ANSWERS * habits[:, :5])
    bounds = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    draw = random.random(len(users.graph))
    kind = np.zeros(len(draw), dtype=np.int8)
    for bound in bounds.T[:-1]:
        kind += draw > bound[users.graph]
    same = random.random(len(kind)) < _around(random, habits[:, _SAME_AGAIN])[users.graph]
    same &= users.position > 0
    chose_last = np.maximum.accumulate(np.where(same, 0, np.arange(len(kind))))
    return kind[chose_last]


def _follow(answered: Nodes, copies: NDArray[np.bool_]) -> Nodes:
    """Let each of `copies` answer the same node as the one that it would answer itself.

    That one may be a copy as well: all chains are followed at once, in steps that double.
    """
    model = np.where(copies, answered, np.arange(len(answered)))
    while copies[model].any():
        model = model[model]
    return answered[model]


def _second_answers(
    random: np.random.Generator, users: _Users, habits: Floats, first: Nodes
) -> tuple[Nodes, Nodes]:
    """Sources and targets of more edges: to a hub, or to the node answered by the answered one."""
    share = random.standard_gamma(2.0, len(users.sizes)) * (_SECOND_ANSWERS / 2)
    source = np.flatnonzero(random.random(len(first)) < np.minimum(share, 0.6)[users.graph])
    to_hub = (
        random.random(len(source))
        < (_around(random, habits[:, _SECOND_TO_HUB])[users.graph[source]])
    )
    above = first[first[source]]
    above = np.where(above == first[source], users.earlier(random, source), above)
    target = np.where(to_hub, users.earlier(random, source, hubs=True), above)
    proper = source != target
    return source[proper], target[proper]


def _around(random: np.random.Generator, rates: Floats) -> Floats:
    """A rate for each graph, drawn around that of its class."""
    return random.beta(_CONCENTRATION_OF_RATES * rates, _CONCENTRATION_OF_RATES * (1 - rates))


def _integer(what: str, value: Any, *, lowest: int, highest: int | None = None) -> int:
    bounds = f"≥ {lowest}" if highest is None else f"from {lowest} to {highest}"
    try:
        number = index(value)
    except TypeError:
        number = lowest - 1
    if number < lowest or (highest is not None and number > highest):
        raise InputError(f"{what} must be an integer {bounds}, not {value!r}")
    return number
