"""Steps recorded as CUDA graphs: hundreds of small kernels start as one."""

from __future__ import annotations

from collections.abc import Callable

import torch


class Recorder:
    """Runs steps by number: plainly the first time, recorded the second, replayed from then on.

    A step works on tensors that stay where they are, keeps no other tensor, and asks nothing of
    the device: a training step of a small network spends its time starting kernels, and replaying
    starts them all at once. Steps run one after another, so their recordings share memory.
    """

    def __init__(self) -> None:
        self.met: set[int] = set()
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def step(self, number: int, run: Callable[[], None]) -> None:
        """Run the step of that number."""
        if number not in self.met:
            self.met.add(number)  # what is built on first use is built before recording
            run()
            return
        if number not in self.graphs:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool):
                run()
            self.graphs[number] = graph
        self.graphs[number].replay()
