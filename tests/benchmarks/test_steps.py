"""What a kernel of a training step is counted as; on a GPU `make bench` runs the rest."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import sparse

from benchmarks import steps
from saen.network.sparse import SparseMatrix


def _event(name, device, *kernels, parent=None, sequence=-1):
    return SimpleNamespace(
        name=name,
        device_type=SimpleNamespace(name=device),
        kernels=[SimpleNamespace(name=each, duration=2e6) for each in kernels],
        time_range=SimpleNamespace(elapsed_us=lambda: 3e6),
        cpu_parent=parent,
        sequence_nr=sequence,
    )


def test_kernels_count_once_by_their_name_or_by_the_mark_around_them():
    dense, loss = (_event(steps.MARK + part, "CPU") for part in ("dense layers", "loss"))
    backward = _event("autograd::engine: LayerBackward", "CPU", sequence=7)
    events = [
        _event("_Layer", "CPU", "moments", "copy", parent=dense, sequence=7),
        _event("aten::sum", "CPU", "reduce", parent=loss),
        _event("aten::mul", "CPU", "multiply", parent=backward),
        *(_event(name, "CUDA") for name in ("moments", "copy", "reduce", "multiply", "adam")),
    ]
    assert steps._by_part(events) == {
        "dense layers": 4.0,  # the copy, and the product of its gradient
        "loss": 2.0,
        "moments": 3.0,
        "optimiser": 3.0,  # no operation of torch starts it
    }


def test_kernels_are_all_counted():
    pytest.importorskip("triton")
    from saen.network import kernels

    kind = type(kernels.layer)
    names = {name for name, value in vars(kernels).items() if isinstance(value, kind)}
    assert set(steps.OF_KERNEL) == {name for name in names if not name.startswith("_")}


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
