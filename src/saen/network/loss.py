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

    - `loss`: `binary` (logistic loss, one output per target), `classes` (cross-entropy) or
      `squares` (squared error);
    - `targets`: class codes (G,), or (G, t) for t targets of two classes each, -1 where unknown; or
      real values (G, k), or (G, M, k) if each model has its own, NaN where unknown;
    - `weights` (G, M): how much each example counts in the training of each model, 0 for not at
      all. Normalization statistics are weighted by it too: a weight of 2 equals two copies;
    - `validation` (G, M): the same for the examples that validation is measured on;
    - `class_weights` (C,) or (C, M): extra factor of each class in the loss; 2t factors for t
      targets, those of all first classes before those of all second ones;
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

        Parameters
        ----------
        targets : ArrayLike
            Class codes 0 … C - 1, (G,); or (G, t): 0, 1, or -1 for an unknown one.
        weights : ArrayLike | None, default=None
            Weights of examples, (G, M). None: every example counts once in each of `n_models`.
        n_models : int, default=1
            The number of models, if `weights` does not give it.
        n_classes : int | None, default=None
            C. None: one more than the largest code.
        validation : Floats | None, default=None
            Weights of examples in the validation loss, (G, M).
        class_weights : Floats | None, default=None
            Factors of the losses of classes, (C,).

        Raises
        ------
        InputError
            For targets that are not class codes.

        Examples
        --------
        >>> task = Task.classification([0, 1, 2, 1], n_models=5)
        >>> task.loss, task.n_outputs, task.weights.shape
        ('classes', 3, (4, 5))
        """
        codes = np.asarray(targets)
        several = codes.ndim == 2
        if (
            codes.ndim not in (1, 2)
            or codes.dtype.kind not in "iu"
            or codes.min(initial=0) < -several
        ):
            raise InputError("targets must be class codes of shape (G,): integers ≥ 0")
        known = int(codes.max(initial=0)) + 1 if n_classes is None else n_classes
        if several:
            known = max(known, 2)
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

        Parameters
        ----------
        targets : ArrayLike
            Real values, (G,) or (G, k), NaN where unknown.
        weights : ArrayLike | None, default=None
            Weights of examples, (G, M). None: every example counts once in each of `n_models`.
        n_models : int, default=1
            The number of models, if `weights` does not give it.
        validation : Floats | None, default=None
            Weights of examples in the validation loss, (G, M).

        Examples
        --------
        >>> Task.regression([0.5, -1.0, 2.0]).n_outputs
        1
        """
        values = np.asarray(targets, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        return cls("squares", values, _weights(weights, len(values), n_models), validation)

    @property
    def n_outputs(self) -> int:
        """Units of the network's last layer."""
        if self.loss == "classes":
            return self.n_classes
        return int(self.targets.shape[-1]) if self.targets.ndim > 1 else 1

    def check(self, n_examples: int, n_models: int) -> None:
        """Raise `InputError` unless targets and weights fit this many examples and models.

        Parameters
        ----------
        n_examples : int
            The number of examples.
        n_models : int
            The number of models.
        """
        if self.weights.shape != (n_examples, n_models):
            raise InputError(
                f"weights must have shape ({n_examples}, {n_models}), not {self.weights.shape}"
            )
        if len(self.targets) != n_examples:
            raise InputError(f"{n_examples} examples, but {len(self.targets)} targets")
        if not np.isfinite(self.weights).all() or (self.weights < 0).any():
            raise InputError("weights must be finite and not negative")
        if self.loss == "squares":
            if self.targets.ndim not in (2, 3) or np.isinf(self.targets).any():
                raise InputError("targets of a regression must be finite numbers of shape (G, k)")
        elif self.targets.dtype.kind not in "iu" or not (
            self.targets.min(initial=0) >= 1 - self.targets.ndim
            and self.targets.max(initial=0) < max(self.n_classes, 1)
        ):
            raise InputError(f"targets must be class codes from 0 to {self.n_classes - 1}")

    def histograms(self, examples: Ints, row_of: Ints, n_rows: int, weights: Floats) -> Array:
        """Targets of unique rows as weighted histograms, (n_rows, M, C), over some examples.

        For t targets of two classes the first t columns count the first classes and the others the
        second ones. For squared errors (n_rows, M, 1 + 2k): the summed squared deviations of the
        targets from their weighted means, the total weight of each target, and its mean. Unknown
        targets count nowhere.

        Parameters
        ----------
        examples : Ints
            Indices of examples.
        row_of : Ints
            The unique row of each of them.
        n_rows : int
            The number of unique rows.
        weights : Floats
            Their weights, (examples, M).
        """
        w = weights
        if self.loss == "squares":
            y = self.targets[examples]
            y = y[:, None] if y.ndim == 2 else y
            known = np.isfinite(y)
            y, counted = np.where(known, y, 0.0), w[..., None] * known
            k = y.shape[-1]
            out = np.zeros((n_rows, w.shape[1], 1 + 2 * k))
            np.add.at(out[..., 1 : 1 + k], row_of, counted)
            np.add.at(out[..., 1 + k :], row_of, counted * y)
            out[..., 1 + k :] /= np.maximum(out[..., 1 : 1 + k], np.finfo(np.float64).tiny)
            deviations = (counted * (y - out[row_of, :, 1 + k :]) ** 2).sum(axis=-1)
            np.add.at(out[..., 0], row_of, deviations)
            return out
        codes = self.targets[examples]
        codes = codes[:, None] if codes.ndim == 1 else codes
        n_targets = codes.shape[1]
        example, target = np.nonzero(codes >= 0)
        column = codes[example, target] * n_targets + target
        n_columns = self.n_classes * n_targets
        flat = np.zeros((n_rows * n_columns, w.shape[1]))
        np.add.at(flat, row_of[example] * n_columns + column, w[example])
        histogram = flat.reshape(n_rows, n_columns, w.shape[1])
        if self.class_weights is not None:
            histogram *= self.class_weights.reshape(n_columns, -1)
        return np.ascontiguousarray(histogram.transpose(0, 2, 1))

    def constant_losses(self) -> Floats:
        """The least mean loss on its training examples of a model with constant outputs, (M,)."""
        n = len(self.targets)
        totals = self.histograms(np.arange(n), np.zeros(n, np.int64), 1, self.weights)[0]
        tiny = np.finfo(np.float64).tiny
        if self.loss == "squares":
            weight = totals[:, 1 : 1 + self.n_outputs].mean(axis=1)
            result: Floats = totals[:, 0] / np.maximum(weight, tiny)
            return result
        counts = totals.reshape(len(totals), self.n_classes, -1)  # models, classes, targets
        sums = counts.sum(axis=1, keepdims=True)
        shares = counts / np.maximum(sums, tiny)
        losses = -(counts * np.log(np.maximum(shares, tiny))).sum(axis=(1, 2))
        entropy: Floats = losses / np.maximum(sums.sum(axis=(1, 2)), tiny)
        return entropy

    def losses(self, outputs: Tensor, histograms: Tensor) -> tuple[Tensor, Tensor]:
        """Summed loss and total weight of each model, (M,) both.

        Parameters
        ----------
        outputs : Tensor
            Outputs of the networks, (n_rows, M, n_outputs).
        histograms : Tensor
            What `histograms` gives.
        """
        if self.loss == "squares":
            weight, mean = histograms[..., 1:].chunk(2, dim=-1)
            errors = weight * (outputs - mean).square()
            return (errors.sum(-1) + histograms[..., 0]).sum(0), weight.mean(-1).sum(0)
        if self.loss == "binary":
            (first, second), softplus = histograms.chunk(2, dim=-1), torch.nn.functional.softplus
            losses = first * softplus(outputs) + second * softplus(-outputs)
            return losses.sum((0, 2)), histograms.sum((0, 2))
        losses = -histograms * torch.log_softmax(outputs, dim=-1)
        return losses.sum((0, 2)), histograms.sum((0, 2))

    def correct(self, outputs: Tensor, histograms: Tensor) -> Tensor:
        """Weight of the correctly classified examples of each model, (M,); 0 in regression.

        Parameters
        ----------
        outputs : Tensor
            Outputs of the networks, (n_rows, M, n_outputs).
        histograms : Tensor
            What `histograms` gives.
        """
        if self.loss == "squares":
            return torch.zeros(outputs.shape[1], dtype=outputs.dtype, device=outputs.device)
        if self.loss == "binary":
            first, second = histograms.chunk(2, dim=-1)
            return torch.where(outputs > 0, second, first).sum((0, 2))
        predicted = outputs.argmax(-1, keepdim=True)
        return histograms.gather(-1, predicted).sum((0, 2))


def _weights(weights: ArrayLike | None, n_examples: int, n_models: int) -> Floats:
    if weights is None:
        return np.ones((n_examples, n_models))
    return np.asarray(weights, dtype=np.float64)
