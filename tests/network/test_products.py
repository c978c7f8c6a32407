"""Sparse products by the kernel for small ones, on a GPU or in Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from saen.network import fused, products
from saen.network.sparse import SparseMatrix


def _matrix(lengths, n_columns, device):
    """Rows of so many random entries."""
    rng = np.random.default_rng(0)
    columns = [np.sort(rng.choice(n_columns, size, replace=False)) for size in lengths]
    starts = np.r_[0, np.cumsum(lengths)]
    values = rng.integers(1, 4, starts[-1]).astype(np.float64)
    counts = sparse.csr_array((values, np.concatenate(columns), starts), (len(lengths), n_columns))
    return counts, SparseMatrix.from_scipy(counts, torch.float32, device)


@pytest.mark.parametrize("width", [7, 12])  # addresses that are multiples of 1 and 4 numbers
def test_small_products_and_their_gradients_with_rows_of_any_length(
    kernel_device, width, monkeypatch
):
    for limit, value in {"MAX_WHOLE": 5, "MIN_PIECE": 4, "UNROLL": 2, "COLUMNS": 8}.items():
        monkeypatch.setattr(products, limit, value)
    counts, matrix = _matrix([0, 17, 1, 4, 5, 0, 20], 20, kernel_device)
    numbers = np.random.default_rng(1).normal(size=(20, width))
    x = torch.from_numpy(numbers).to(kernel_device, torch.float32).requires_grad_()
    monkeypatch.setattr(torch.Tensor, "__matmul__", None)  # nothing is left to cuSPARSE
    product = matrix @ x
    (gradient,) = torch.autograd.grad(product.square().sum(), x)
    expected = counts @ numbers
    for found, wanted in ((product, expected), (gradient, counts.T @ (2 * expected))):
        found = found.detach().cpu().numpy()
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() < 1e-6 * np.abs(wanted).max()
    pieces, of_pieces = matrix.rows._sums
    assert of_pieces.targets.tolist() == [1, 4, 6]  # the rows that were cut
    lengths = pieces.stops - pieces.starts
    assert lengths.tolist() == [4] * 11 + [1] * 3 + [0] * 2


def test_large_products_are_left_to_the_libraries(kernel_device, monkeypatch):
    _, matrix = _matrix([2, 3], 4, kernel_device)
    x = torch.ones(4, 5, device=kernel_device)
    assert matrix.rows.can_multiply(x)
    assert not matrix.rows.can_multiply(x.double())
    assert not matrix.rows.can_multiply(x[:, :0])
    for owner, limit in ((products, "MAX_TABLE"), (products, "MAX_GATHERED")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, limit, 19)
            assert not matrix.rows.can_multiply(x)
    monkeypatch.setattr(fused, "FUSES_PRODUCTS", False)
    assert not matrix.rows.can_multiply(x)
