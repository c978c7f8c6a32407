"""Training steps recorded as CUDA graphs: hundreds of small kernels launch as one."""

from __future__ import annotations

from collections.abc import Callable

import torch


class Recorder:
    """Runs numbered steps: eagerly the first time, recorded the second, replayed from then on.

    A training step of a small network spends its time launching kernels; a replay launches them all
    at once. A step must work on tensors at fixed addresses, keep no others, and not synchronise
    with the device. Steps run one after another, so their recordings share memory.
    """

    def __init__(self) -> None:
        self.warmed_up: set[int] = set()
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def step(self, number: int, run: Callable[[], None]) -> None:
        """Run the step of that number."""
        if number not in self.warmed_up:
            self.warmed_up.add(number)  # whatever is built on first use is built before recording
            run()
            return
        if number not in self.graphs:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool):
                run()
            self.graphs[number] = graph
        self.graphs[number].replay()
