"""`Architecture`: the shape of a network, and of its parameters. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from saen._util.arrays import Array
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError

NORMALIZATIONS = ("batch", "none")
EPSILON = 1e-5
"""Added to the variances that normalization divides by."""
MAX_LAG = 1e-5
"""Standard deviations of aggregates, relative to their mean, up to which they count as constant in
training: their running mean lags behind the weights, and divided by next to nothing that lag would
be all that is seen."""
MAX_ROUNDING = 8
"""The same of bottom vectors, which do not move: in units of the last place."""
MAX_UNITS = 10_000
"""Of a layer: the weights between two such layers take 400 MB."""


def max_constant_deviation(level: int, epsilon: float) -> float:
    """Standard deviations, relative to the mean, of what was the same in all training examples.

    Outside of training it counts as its mean. `epsilon` is that of the floating-point numbers.
    """
    return MAX_LAG if level else MAX_ROUNDING * epsilon


@dataclass(frozen=True)
class Architecture:
    """The shape of a network.

    - `labels`: size of the bottom vocabulary (0 without labels);
    - `vectors`: width of the bottom vectors (0 without);
    - `roles`: the number of roles n(1), …, n(L) of every relation;
    - `layers`: layer sizes of every level, bottom first, the output layer included;
    - `negative_slope`: slope below zero of the Leaky ReLU after every layer but the last of the top
      level;
    - `normalization`: `batch` normalises the aggregates of every level above the bottom (and the
      bottom vectors) by the mean and variance over the training objects; `none` does not;
    - `dropout`: share of units dropped after each hidden layer above the bottom;
    - `output_activation`: the Leaky ReLU follows the last layer of the top level as well.

    Raises `InputError` for sizes, normalizations or dropout rates that are out of range.

    >>> Architecture(labels=3, vectors=0, roles=(2,), layers=((8,), (8, 1))).normalization
    'none'
    """

    labels: int
    vectors: int
    roles: tuple[int, ...]
    layers: tuple[tuple[int, ...], ...]
    negative_slope: float = 0.01
    normalization: str = "none"
    dropout: float = 0.0
    output_activation: bool = False

    def __post_init__(self) -> None:
        if len(self.layers) != len(self.roles) + 1 or not all(self.layers):
            raise InputError(
                f"{len(self.roles) + 1} levels need as many non-empty lists of layer sizes, "
                f"found {self.layers}"
            )
        if not all(1 <= size <= MAX_UNITS for sizes in self.layers for size in sizes):
            raise InputError(f"layer sizes must be 1 … {MAX_UNITS:,}: {self.layers}")
        if self.normalization not in NORMALIZATIONS:
            raise InputError(
                f"normalization is one of {', '.join(NORMALIZATIONS)}, not {self.normalization!r}"
            )
        if not abs(self.negative_slope) <= np.finfo(np.float32).max:
            raise InputError(f"negative_slope must be a finite number, not {self.negative_slope}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, not {self.dropout}")

    @classmethod
    def over(
        cls, hierarchy: Hierarchy, layers: Sequence[Sequence[int]], **options: Any
    ) -> Architecture:
        """The architecture for hierarchies like this one, with these layer sizes.

        Parameters
        ----------
        hierarchy : Hierarchy
            A hierarchy with the labels, attributes and roles of the data.
        layers : Sequence[Sequence[int]]
            Layer sizes per level, bottom first.
        **options : Any
            The other fields of `Architecture`.

        Examples
        --------
        >>> from saen import Graphs
        >>> from saen.decompositions import Ego
        >>> path = Ego().decompose(Graphs.from_edge_lists([[(0, 1), (1, 2)]]))
        >>> Architecture.over(path, layers=[[4], [4], [2]], dropout=0.1).roles
        (2, 2)
        """
        attributes = hierarchy.attributes
        return cls(
            labels=0 if attributes.vocabulary is None else len(attributes.vocabulary),
            vectors=0 if attributes.vectors is None else attributes.vectors.shape[1],
            roles=tuple(relation.n_roles for relation in hierarchy.relations),
            layers=tuple(tuple(int(size) for size in sizes) for sizes in layers),
            **options,
        )

    @property
    def width(self) -> int:
        """Units of the widest layer."""
        return max(size for sizes in self.layers for size in sizes)

    def check_fits(self, hierarchy: Hierarchy) -> None:
        """Raise `InputError` if the vocabulary size, vector width or number of roles differ."""
        there = Architecture.over(hierarchy, [[1]] * (hierarchy.depth + 1))
        for what in ("labels", "vectors", "roles"):
            expected, actual = getattr(self, what), getattr(there, what)
            if expected != actual:
                raise InputError(
                    f"this network was built for {what} {expected}, the hierarchy has {actual}"
                )


def models_last(key: str) -> bool:
    """Whether a parameter or buffer has the axis of models second, not first."""
    return key.endswith(("norm.mean", "norm.variance", ".seen"))


def take_model(state: Mapping[str, Array], model: int) -> dict[str, Array]:
    """The parameters of one of several networks."""
    one = slice(model, model + 1)
    return {key: a[:, one] if models_last(key) else a[one] for key, a in state.items()}


def join_models(states: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """The parameters of several networks of one architecture, side by side."""
    return {
        key: np.concatenate([state[key] for state in states], axis=int(models_last(key)))
        for key in states[0]
    }


def check_state(architecture: Architecture, state: Mapping[str, Array]) -> None:
    """Raise `InputError` unless names, shapes and types of parameters are those of `SAEN`."""
    bias = state.get("levels.0.bias")
    if bias is None or bias.ndim != 2:
        raise InputError("the parameters of the bottom level are missing")
    if bias.dtype not in (np.float32, np.float64):
        raise InputError(f"parameters are float32 or float64, not {bias.dtype}")
    expected = _state_shapes(architecture, len(bias))
    types = {"started": np.bool_, "seen": np.bool_, "entries": np.int64}
    if {key: array.shape for key, array in state.items()} != expected or any(
        array.dtype != types.get(key.rpartition(".")[2], bias.dtype) for key, array in state.items()
    ):
        raise InputError("the parameters do not have the shapes of the architecture")
    entries = state["levels.0.entries"]
    if entries.size and not 0 <= entries.min() <= entries.max() <= architecture.labels + 1:
        raise InputError("the entries of labels lie outside of the table")


def _state_shapes(architecture: Architecture, n_models: int) -> dict[str, tuple[int, ...]]:
    """The shapes of all parameters and buffers of M networks, by their names in `SAEN`."""
    labels, vectors, layers = architecture.labels, architecture.vectors, architecture.layers
    size = layers[0][0]
    shapes: dict[str, tuple[int, ...]] = {"levels.0.entries": (n_models, labels + 1)}
    if labels:
        shapes["levels.0.table"] = (n_models, labels + 1, size)
    if vectors:
        shapes["levels.0.map"] = (n_models, vectors, size)
    aggregates = [(1, vectors)]
    for level, n_roles in enumerate(architecture.roles, start=1):
        below = layers[level - 1][-1]
        aggregates.append((n_roles, below))
        shapes[f"levels.{level}.weight"] = (n_models, n_roles * below, layers[level][0])
        shapes[f"levels.{level}.seen"] = (n_roles, n_models)
    for level, ((n_roles, below), sizes) in enumerate(zip(aggregates, layers, strict=True)):
        key = f"levels.{level}"
        shapes[f"{key}.bias"] = (n_models, sizes[0])
        shapes[f"{key}.norm.mean"] = shapes[f"{key}.norm.variance"] = (n_roles, n_models, below)
        shapes[f"{key}.norm.started"] = shapes[f"{key}.layers.offsets"] = (n_models,)
        for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
            shapes[f"{key}.layers.weights.{layer}"] = (n_models, inputs, outputs)
            shapes[f"{key}.layers.biases.{layer}"] = (n_models, outputs)
    return shapes
