"""How to train, on which examples, and how it went. Needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from saen._util.arrays import Floats, Ints
from saen.errors import InputError

CURVE_POINTS = 10
"""Of a learning curve on held-out examples, about."""


class DivergenceWarning(UserWarning):
    """The training loss of a model never fell below that of a constant prediction."""


class DivergenceError(InputError):
    """A loss or parameter became NaN or infinite in training; `advice` says what may help."""

    def __init__(self, where: str, advice: str) -> None:
        super().__init__(f"training diverged in {where}: {advice}")
        self.advice = advice


@dataclass(frozen=True)
class Settings:
    """How to train.

    - `epochs`: passes over the training examples;
    - `batch_size`: examples per step, None for all of them;
    - `learning_rate`: of Adam;
    - `schedule`: `constant`, or `cosine` from `learning_rate` to zero over the epochs;
    - `weight_decay`: decoupled from the gradient, on weights and not on biases;
    - `seed`: order of the batches and shared draws of dropout. Weights have their own seeds.

    Raises `InputError` for values out of range.

    >>> Settings(epochs=10, schedule="cosine").rate(5)
    0.005
    """

    epochs: int = 100
    batch_size: int | None = None
    learning_rate: float = 0.01
    schedule: str = "constant"
    weight_decay: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise InputError(f"epochs must not be negative: {self.epochs}")
        if self.batch_size is not None and self.batch_size < 1:
            raise InputError(f"batch_size must be at least 1: {self.batch_size}")
        if not self.learning_rate > 0 or self.weight_decay < 0:
            raise InputError("learning_rate must be positive and weight_decay not negative")
        if self.schedule not in ("constant", "cosine"):
            raise InputError(f"schedule is constant or cosine, not {self.schedule!r}")

    def n_batches(self, n: int) -> int:
        """Steps of an epoch over n training examples."""
        return 1 if self.batch_size is None else max(-(-n // self.batch_size), 1)

    def rate(self, epoch: float) -> float:
        """The learning rate after that many epochs."""
        if self.schedule == "constant":
            return self.learning_rate
        share = min(epoch / max(self.epochs, 1), 1.0)
        return self.learning_rate * 0.5 * (1.0 + float(np.cos(np.pi * share)))


@dataclass(frozen=True, eq=False)
class Run:
    """One network to train: its seed, the examples it learns from, and those it is asked about.

    - `seed`: decides the initial weights;
    - `train`: in how many batches each epoch visits them is `n_batches`;
    - `held_out`: on which its curves are measured; outputs are wanted for these, then for `test`.
    """

    seed: tuple[int, ...]
    train: Ints
    held_out: Ints
    test: Ints
    n_batches: int = 1

    @property
    def asked(self) -> Ints:
        """The examples whose outputs are wanted."""
        return np.concatenate([self.held_out, self.test])


@dataclass
class History:
    """Per epoch and model, (epochs, M): loss and accuracy in training and on validation.

    None stands for validations that were not measured, and for losses of models that have
    `diverged`, which are listed by number.
    """

    loss: list[list[float | None]] = field(default_factory=list)
    accuracy: list[list[float | None]] = field(default_factory=list)
    validation_loss: list[list[float | None]] = field(default_factory=list)
    validation_accuracy: list[list[float | None]] = field(default_factory=list)
    interrupted: bool = False
    diverged: list[int] = field(default_factory=list)


def curve_step(epochs: int) -> int:
    """Epochs between two points of a curve of held-out examples, which cost as much as training.

    >>> curve_step(80), curve_step(5)
    (8, 1)
    """
    return max(epochs // CURVE_POINTS, 1)


def as_rows(curve: Floats) -> list[list[float | None]]:
    """A curve (epochs, networks) with NaN where it was not measured, as `History` keeps it.

    >>> as_rows(np.array([[np.nan], [0.5]]))
    [[None], [0.5]]
    """
    return [[None if np.isnan(v) else v for v in row] for row in curve.tolist()]


def join_curves(curves: Sequence[Floats | list[list[float | None]]]) -> Floats:
    """Curves of several groups of networks, (epochs, networks) each, side by side.

    NaN follows the last epoch of a group; one without epochs, as of part counts, has no columns.

    >>> join_curves([[[1.0], [2.0]], [[3.0]], []])
    array([[ 1.,  3.],
           [ 2., nan]])
    """
    arrays = [np.asarray(each, dtype=np.float64) for each in curves if len(each)]
    longest = max(map(len, arrays), default=0)
    padded = [
        np.pad(each, ((0, longest - len(each)), (0, 0)), constant_values=np.nan) for each in arrays
    ]
    return np.concatenate(padded, axis=1) if padded else np.empty((0, 0))
