from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from saen.network.sparse import MAX_CACHED_ROWS, ROWS_PER_BLOCK, SparseMatrix
from tests.references.networks import DEVICES

CPU = torch.device("cpu")
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


@st.composite
def factors(draw):
    """A matrix of counts and a dense one that it can be multiplied with."""
    n, m, width = (draw(st.integers(0, 6)) for _ in range(3))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = generator.integers(-2, 4, (n, m)).clip(0).astype(np.float64)
    return counts, generator.standard_normal((m, width))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TOLERANCE)
@given(factors())
def test_sparse_products_and_both_derivatives_equal_those_of_dense_matrices(dtype, device, pair):
    counts, numbers = pair
    matrix = SparseMatrix.from_scipy(sparse.csr_array(counts), dtype, torch.device(device))
    results = []
    for factor in (matrix, torch.from_numpy(counts).to(device, dtype)):
        x = torch.from_numpy(numbers).to(device, dtype).requires_grad_()
        product = factor @ x
        (first,) = torch.autograd.grad(product.square().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        results.append((product, first, second))
    for ours, expected in zip(*results, strict=True):
        assert ours.shape == expected.shape
        scale = max(float(expected.detach().abs().max()) if expected.numel() else 0.0, 1.0)
        assert torch.allclose(ours, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_sparse_products_take_dense_factors_that_are_not_contiguous(dtype):
    counts = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    matrix = SparseMatrix.from_scipy(counts, dtype, CPU)
    numbers = torch.arange(12, dtype=dtype).view(4, 3).T
    expected = torch.tensor([[4.0, 13, 22, 31], [3, 12, 21, 30]], dtype=dtype)
    assert torch.equal(matrix @ numbers, expected)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_sparse_transposes_of_many_rows_are_split_into_blocks(dtype):
    generator = np.random.default_rng(0)
    n, m = MAX_CACHED_ROWS + 1, 3
    columns = [
        sparse.random_array((n, 1), density=density, rng=generator) for density in (0.3, 0.9, 0.5)
    ]
    counts = sparse.hstack(columns, format="csr")
    matrix = SparseMatrix.from_scipy(sparse.csr_array(counts), dtype, CPU)
    split = dtype == torch.float32
    assert matrix.T.n_blocks == (-(-n // ROWS_PER_BLOCK) if split else 1)
    if split:  # every block begins with the fullest row, and that with all rows that there are
        in_order = np.flatnonzero(np.diff(counts.indptr)[:ROWS_PER_BLOCK])
        assert matrix.T.csr.col_indices()[: len(in_order)].tolist() == in_order.tolist()
    numbers = generator.standard_normal((n, 4))
    expected = counts.T @ numbers
    product = matrix.T @ torch.from_numpy(numbers).to(dtype)
    assert np.abs(product.numpy() - expected).max() < 10 * TOLERANCE[dtype] * np.abs(expected).max()
    x = torch.from_numpy(generator.standard_normal((m, 4))).to(dtype).requires_grad_()
    (gradient,) = torch.autograd.grad((matrix @ x).sum(), x)
    expected = np.repeat(counts.sum(axis=0)[:, None], 4, axis=1)
    assert np.abs(gradient.numpy() - expected).max() < 10 * TOLERANCE[dtype] * expected.max()


def test_sparse_transposes_are_not_split_where_rows_have_few_entries():
    counts = sparse.eye_array(MAX_CACHED_ROWS + 1, MAX_CACHED_ROWS, format="csr")
    assert SparseMatrix.from_scipy(counts, torch.float32, CPU).T.n_blocks == 1


def test_sparse_transposes_are_computed_once_and_freed_with_their_matrix():
    matrix = SparseMatrix.from_scipy(sparse.csr_array(np.eye(3)), torch.float64, CPU)
    assert matrix.T.csr is matrix.T.csr
    assert matrix.T.T is matrix
    alive = weakref.ref(matrix)
    gc.disable()
    try:
        del matrix
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("n", [10_000, 300_000])
def test_sparse_sums_at_hubs_keep_the_digits_of_float32(n):
    # One hub between ordinary rows, and its transpose, whose column is the hub.
    rows = np.repeat([0, 1, 2], [3, n, 2])
    counts = sparse.csr_array((np.ones(len(rows)), (rows, np.r_[0:3, 0:n, 0:2])), shape=(4, n))
    numbers = np.random.default_rng(0).uniform(0.3, 0.31, (n, 3))
    matrix = SparseMatrix.from_scipy(counts, torch.float32, CPU)
    expected = counts @ numbers
    product = (matrix @ torch.from_numpy(numbers).float()).numpy()
    assert np.abs(product - expected).max() < 1e-5 * expected.max()
    assert np.abs(product[[0, 2, 3]] - expected[[0, 2, 3]]).max() < 1e-6
    backwards = SparseMatrix.from_scipy(sparse.csr_array(counts.T), torch.float32, CPU)
    x = torch.from_numpy(numbers).float()
    assert np.abs((backwards.T @ x).numpy() - expected).max() < 1e-5 * expected.max()


def test_sparse_indices_beyond_32_bits_are_not_cut():
    wide = sparse.csr_array((np.ones(1), [2**31 + 5], [0, 1]), shape=(1, 2**31 + 6))
    matrix = SparseMatrix.from_scipy(wide, torch.float64, CPU)
    assert matrix.csr.col_indices().tolist() == [2**31 + 5]
