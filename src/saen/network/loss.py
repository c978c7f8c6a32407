"""`Task`: what to learn, with the targets of collapsed structures as histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saen._util.arrays import Array, Ints

Loss = Literal["binary", "classes", "squares"]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Task:
    """What to learn, for G structures and M models.

    - `targets`: class codes (G,) or real values (G, k);
    - `weights` (G, M): how much each structure counts in the training of each model, 0 for not at
      all; statistics weigh by it too, so a weight of 2 is the same as two copies;
    - `validation` (G, M): the same for the part that early stopping looks at;
    - `class_weights` (C,) or (C, M): extra factor of each class in the loss.
    """

    loss: Loss
    targets: Array
    weights: Floats
    validation: Floats | None = None
    class_weights: Floats | None = None
    n_classes: int = 0

    @property
    def n_outputs(self) -> int:
        """Units of the last layer."""
        if self.loss == "binary":
            return 1
        return self.n_classes if self.loss == "classes" else int(self.targets.shape[1])

    def rows(self, graphs: Ints, row_of: Ints, n_rows: int, weights: Floats) -> Array:
        """Targets of collapsed rows as histograms, (n_rows, M, C), from the chosen structures.

        For squared errors (n_rows, M, 2 + k): total weight, the squared deviations of the targets
        from their weighted mean, summed, and that mean.
        """
        w = weights[graphs]
        if self.loss == "squares":
            y = self.targets[graphs]
            out = np.zeros((n_rows, w.shape[1], 2 + y.shape[1]))
            np.add.at(out[..., 0], row_of, w)
            np.add.at(out[..., 2:], row_of, w[..., None] * y[:, None])
            out[..., 2:] /= np.maximum(out[..., :1], np.finfo(np.float64).tiny)
            deviations = ((y[:, None] - out[row_of, :, 2:]) ** 2).sum(axis=-1)
            np.add.at(out[..., 1], row_of, w * deviations)
            return out
        codes = self.targets[graphs]
        flat = np.zeros((n_rows * self.n_classes, w.shape[1]))
        np.add.at(flat, row_of * self.n_classes + codes, w)
        histogram = flat.reshape(n_rows, self.n_classes, w.shape[1])
        if self.class_weights is not None:
            histogram *= self.class_weights.reshape(self.n_classes, -1)
        return np.ascontiguousarray(histogram.transpose(0, 2, 1))

    def losses(self, outputs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Summed loss and total weight of each model, (M,) both."""
        if self.loss == "squares":
            error = (outputs - rows[..., 2:]).square().sum(-1)
            return (rows[..., 0] * error + rows[..., 1]).sum(0), rows[..., 0].sum(0)
        if self.loss == "binary":
            z, softplus = outputs[..., 0], torch.nn.functional.softplus
            losses = rows[..., 0] * softplus(z) + rows[..., 1] * softplus(-z)
            return losses.sum(0), rows.sum((0, 2))
        losses = -rows * torch.log_softmax(outputs, dim=-1)
        return losses.sum((0, 2)), rows.sum((0, 2))

    def correct(self, outputs: Tensor, rows: Tensor) -> Tensor:
        """Weight of the rightly classified structures of each model, (M,); 0 in regression."""
        if self.loss == "squares":
            return torch.zeros(outputs.shape[1], dtype=outputs.dtype, device=outputs.device)
        binary = self.loss == "binary"
        guess = (outputs > 0).long() if binary else outputs.argmax(-1, keepdim=True)
        return rows.gather(-1, guess).sum((0, 2))
