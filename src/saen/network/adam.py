"""Adam for many models at once."""

from __future__ import annotations

import torch
from torch import Tensor

from saen.network.model import SAEN


class Adam:
    """Adam for M models side by side; a model that is not active in a step does not move.

    Moments are kept as (M, P) for the P parameters of one model, steps are counted per model.
    """

    betas = (0.9, 0.999)
    epsilon = 1e-8

    def __init__(self, network: SAEN, weight_decay: float = 0.0) -> None:
        self.parameters = list(network.parameters())
        sizes = [parameter[0].numel() for parameter in self.parameters]
        self.sizes = sizes
        first = self.parameters[0]
        shape = (network.n_models, sum(sizes))
        self.mean = torch.zeros(shape, dtype=first.dtype, device=first.device)
        self.square = torch.zeros_like(self.mean)
        self.steps = torch.zeros(network.n_models, dtype=torch.float64, device=first.device)
        decays = [
            torch.full((size,), weight_decay if parameter.ndim == 3 else 0.0, dtype=first.dtype)
            for size, parameter in zip(sizes, self.parameters, strict=True)
        ]
        self.decay = torch.cat(decays).to(first.device) if weight_decay else None

    @torch.no_grad()
    def step(self, gradients: tuple[Tensor, ...], rate: Tensor, active: Tensor) -> None:
        """One step, of a `rate` without axes, of the active models, (M,) Boolean."""
        n_models = len(self.steps)
        gradient = torch.cat([g.reshape(n_models, -1) for g in gradients], dim=1)
        moving = active.to(gradient.dtype)[:, None]
        self.steps += active
        self.mean.lerp_(gradient, (1 - self.betas[0]) * moving)
        self.square.lerp_(gradient.square_(), (1 - self.betas[1]) * moving)
        taken = self.steps.clamp_min(1.0)[:, None]
        size = (rate / (1 - self.betas[0] ** taken)).to(gradient.dtype) * moving
        spread = (1 - self.betas[1] ** taken).sqrt().to(gradient.dtype)
        change = size * self.mean / (self.square.sqrt() / spread + self.epsilon)
        if self.decay is not None:
            current = torch.cat([p.reshape(n_models, -1) for p in self.parameters], dim=1)
            change += current * (self.decay * rate) * moving
        parts = torch.split(change, self.sizes, dim=1)
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.sub_(part.view_as(parameter))

    def state(self) -> dict[str, Tensor]:
        """Tensors that a checkpoint keeps; `restore` takes them back."""
        return {"adam.mean": self.mean, "adam.square": self.square, "adam.steps": self.steps}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a `state`."""
        for key, tensor in self.state().items():
            tensor.copy_(state[key])
