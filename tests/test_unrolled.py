from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from saen.unrolled import SparseProduct

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


@st.composite
def products(draw):
    """A sparse matrix of counts and a dense one that it can be multiplied with."""
    n, m, width = (draw(st.integers(0, 6)) for _ in range(3))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = generator.integers(-2, 4, (n, m)).clip(0).astype(np.float64)
    return counts, generator.standard_normal((m, width))


@pytest.mark.parametrize("dtype", TOLERANCE)
@given(products())
def test_a_product_and_its_gradients_are_those_of_the_dense_matrices(dtype, pair):
    counts, numbers = pair
    product = SparseProduct.of(sparse.csr_array(counts), dtype, torch.device("cpu"))
    dense = torch.from_numpy(counts).to(dtype)
    found = []
    for matrix in (product, dense):
        x = torch.from_numpy(numbers).to(dtype).requires_grad_()
        made = matrix @ x
        (first,) = torch.autograd.grad(made.square().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        found.append((made, first, second))
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape
        scale = max(float(other.detach().abs().max()) if other.numel() else 0.0, 1.0)
        assert torch.allclose(one, other, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_columns_that_do_not_lie_side_by_side_are_multiplied_too(dtype):
    counts = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    product = SparseProduct.of(counts, dtype, torch.device("cpu"))
    numbers = torch.arange(12, dtype=dtype).view(4, 3).T
    expected = torch.tensor([[4.0, 13, 22, 31], [3, 12, 21, 30]], dtype=dtype)
    assert torch.equal(product @ numbers, expected)
    assert torch.equal(
        product.T @ expected.T[:2].T, torch.tensor([[4.0, 13], [9, 36], [8, 26]], dtype=dtype)
    )
