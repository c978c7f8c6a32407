"""What a kernel of a training step is counted as; on a GPU `make bench` runs the rest."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import torch
from scipy import sparse

from benchmarks import steps
from saen.network.sparse import SparseMatrix


def _event(name, *kernels, parent=None, sequence=-1):
    return SimpleNamespace(
        name=name,
        kernels=[SimpleNamespace(name=each, duration=2e6) for each in kernels],
        cpu_parent=parent,
        sequence_nr=sequence,
    )


def test_kernels_count_once_by_the_mark_around_them():
    dense, loss = (_event(steps.MARK + part) for part in ("dense layers", "loss"))
    backward = _event("autograd::engine: BaddbmmBackward", sequence=7)
    events = [
        _event("aten::baddbmm", "product", "copy", parent=dense, sequence=7),
        _event("aten::sum", "reduce", parent=loss),
        _event("aten::mul", "multiply", parent=backward),
        _event("aten::add", "add"),
    ]
    assert steps._by_part(events) == {
        "dense layers": 6.0,  # two kernels, and the product of its gradient
        "loss": 2.0,
        "rest": 2.0,  # outside of all marks
    }


def test_products_count_once_forwards_and_once_backwards():
    counts = sparse.csr_array(np.eye(2, 3))
    matrix = SparseMatrix.from_scipy(counts, torch.float32, torch.device("cpu"))
    x, work = torch.ones(3, 4, requires_grad=True), defaultdict(list)
    with steps._marked(work):
        torch.autograd.grad((matrix @ x).sum(), x)
    assert work["aggregation"] == [
        (4 * (12 + 8 + 2 * 2 + 2), 4 * 2 * 4, 2 * 2 * 4),
        (4 * (8 + 12 + 2 * 2 + 3), 4 * 2 * 4, 2 * 2 * 4),
    ]
