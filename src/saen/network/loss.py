"""`Task`: the targets and the loss, with the targets of identical examples as histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from saen._util.arrays import Array, Ints
from saen.errors import InputError

Loss = Literal["binary", "classes", "squares"]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Task:
    """What M models learn from G examples; `Task.classification` and `Task.regression` build one.

    - `loss`: `binary` (logistic loss of one output), `classes` (cross-entropy) or `squares`
      (squared error);
    - `targets`: class codes (G,); or real values (G, k), or (G, M, k) if each model has its own;
    - `weights` (G, M): how much each example counts in the training of each model, 0 for not at
      all. Normalisation statistics are weighted by it too: a weight of 2 equals two copies;
    - `validation` (G, M): the same for the examples that early stopping evaluates;
    - `class_weights` (C,) or (C, M): extra factor of each class in the loss;
    - `n_classes`: C, 0 for a regression.
    """

    loss: Loss
    targets: Array
    weights: Floats
    validation: Floats | None = None
    class_weights: Floats | None = None
    n_classes: int = 0

    @classmethod
    def classification(
        cls,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        n_models: int = 1,
        n_classes: int | None = None,
        validation: Floats | None = None,
        class_weights: Floats | None = None,
    ) -> Task:
        """Learn classes: one logistic output for two of them, else one output per class.

        - `targets` (G,): class codes 0 … C - 1;
        - `weights` (G, M): by default every example counts once in each of `n_models`;
        - `n_classes`: C, by default one more than the largest code.

        Raises `InputError` for targets that are not class codes.

        >>> task = Task.classification([0, 1, 2, 1], n_models=5)
        >>> task.loss, task.n_outputs, task.weights.shape
        ('classes', 3, (4, 5))
        """
        codes = np.asarray(targets)
        if codes.ndim != 1 or codes.dtype.kind not in "iu" or codes.min(initial=0) < 0:
            raise InputError("targets must be class codes of shape (G,): integers ≥ 0")
        known = int(codes.max(initial=0)) + 1 if n_classes is None else n_classes
        loss: Loss = "binary" if known == 2 else "classes"
        weighted = _weights(weights, len(codes), n_models)
        return cls(loss, codes, weighted, validation, class_weights, known)

    @classmethod
    def regression(
        cls,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        n_models: int = 1,
        validation: Floats | None = None,
    ) -> Task:
        """Learn real values by squared error, one output per column.

        - `targets` (G,) or (G, k): real values;
        - `weights` (G, M): by default every example counts once in each of `n_models`.

        >>> Task.regression([0.5, -1.0, 2.0]).n_outputs
        1
        """
        values = np.asarray(targets, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        return cls("squares", values, _weights(weights, len(values), n_models), validation)

    @property
    def n_outputs(self) -> int:
        """Units of the network's last layer."""
        if self.loss == "binary":
            return 1
        return self.n_classes if self.loss == "classes" else int(self.targets.shape[-1])

    def check(self, n_examples: int, n_models: int) -> None:
        """Raise `InputError` unless targets and weights fit this many examples and models."""
        if self.weights.shape != (n_examples, n_models):
            raise InputError(
                f"weights must have shape ({n_examples}, {n_models}), not {self.weights.shape}"
            )
        if len(self.targets) != n_examples:
            raise InputError(f"{n_examples} examples, but {len(self.targets)} targets")
        if not np.isfinite(self.weights).all() or (self.weights < 0).any():
            raise InputError("weights must be finite and not negative")
        if self.loss == "squares":
            if self.targets.ndim not in (2, 3) or not np.isfinite(self.targets).all():
                raise InputError("targets of a regression must be finite numbers of shape (G, k)")
        elif self.targets.dtype.kind not in "iu" or not (
            self.targets.min(initial=0) >= 0
            and self.targets.max(initial=0) < max(self.n_classes, 1)
        ):
            raise InputError(f"targets must be class codes from 0 to {self.n_classes - 1}")

    def histograms(self, examples: Ints, row_of: Ints, n_rows: int, weights: Floats) -> Array:
        """Targets of unique rows as weighted histograms, (n_rows, M, C), over some examples.

        `row_of` gives the row of each of the `examples`. For squared errors (n_rows, M, 2 + k): the
        total weight, the summed squared deviations of the targets from their weighted mean, and
        that mean.
        """
        w = weights[examples]
        if self.loss == "squares":
            y = self.targets[examples]
            y = y[:, None] if y.ndim == 2 else y
            out = np.zeros((n_rows, w.shape[1], 2 + y.shape[-1]))
            np.add.at(out[..., 0], row_of, w)
            np.add.at(out[..., 2:], row_of, w[..., None] * y)
            out[..., 2:] /= np.maximum(out[..., :1], np.finfo(np.float64).tiny)
            deviations = ((y - out[row_of, :, 2:]) ** 2).sum(axis=-1)
            np.add.at(out[..., 1], row_of, w * deviations)
            return out
        codes = self.targets[examples]
        flat = np.zeros((n_rows * self.n_classes, w.shape[1]))
        np.add.at(flat, row_of * self.n_classes + codes, w)
        histogram = flat.reshape(n_rows, self.n_classes, w.shape[1])
        if self.class_weights is not None:
            histogram *= self.class_weights.reshape(self.n_classes, -1)
        return np.ascontiguousarray(histogram.transpose(0, 2, 1))

    def constant_losses(self) -> Floats:
        """The least mean loss on its training examples of a model with constant outputs, (M,)."""
        n = len(self.targets)
        totals = self.histograms(np.arange(n), np.zeros(n, np.int64), 1, self.weights)[0]
        tiny = np.finfo(np.float64).tiny
        if self.loss == "squares":
            result: Floats = totals[:, 1] / np.maximum(totals[:, 0], tiny)
            return result
        shares = totals / np.maximum(totals.sum(axis=1, keepdims=True), tiny)
        entropy: Floats = -(shares * np.log(np.maximum(shares, tiny))).sum(axis=1)
        return entropy

    def losses(self, outputs: Tensor, histograms: Tensor) -> tuple[Tensor, Tensor]:
        """Summed loss and total weight of each model, (M,) both."""
        if self.loss == "squares":
            weight, deviations, mean = histograms[..., 0], histograms[..., 1], histograms[..., 2:]
            error = (outputs - mean).square().sum(-1)
            return (weight * error + deviations).sum(0), weight.sum(0)
        if self.loss == "binary":
            z, softplus = outputs[..., 0], torch.nn.functional.softplus
            losses = histograms[..., 0] * softplus(z) + histograms[..., 1] * softplus(-z)
            return losses.sum(0), histograms.sum((0, 2))
        losses = -histograms * torch.log_softmax(outputs, dim=-1)
        return losses.sum((0, 2)), histograms.sum((0, 2))

    def correct(self, outputs: Tensor, histograms: Tensor) -> Tensor:
        """Weight of the correctly classified examples of each model, (M,); 0 in regression."""
        if self.loss == "squares":
            return torch.zeros(outputs.shape[1], dtype=outputs.dtype, device=outputs.device)
        binary = self.loss == "binary"
        predicted = (outputs > 0).long() if binary else outputs.argmax(-1, keepdim=True)
        return histograms.gather(-1, predicted).sum((0, 2))


def _weights(weights: ArrayLike | None, n_examples: int, n_models: int) -> Floats:
    if weights is None:
        return np.ones((n_examples, n_models))
    return np.asarray(weights, dtype=np.float64)
