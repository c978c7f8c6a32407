from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from saen import Attributes, Hierarchy, Relation, Vocabulary
from saen.network import sparse as unrolled
from saen.network.sparse import SparseProduct, Unrolled

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


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_many_rows_are_added_up_into_few_block_by_block(dtype):
    generator = np.random.default_rng(0)
    n, m = unrolled.MANY + 1, 3
    counts = sparse.random_array((n, m), density=0.9, rng=generator, format="csr")
    product = SparseProduct.of(sparse.csr_array(counts), dtype, torch.device("cpu"))
    assert product.T.blocks == (-(-n // unrolled.BLOCK) if dtype == torch.float32 else 1)
    numbers = generator.standard_normal((n, 4))
    expected = counts.T @ numbers
    made = product.T @ torch.from_numpy(numbers).to(dtype)
    assert np.abs(made.numpy() - expected).max() < 10 * TOLERANCE[dtype] * np.abs(expected).max()
    back = torch.from_numpy(generator.standard_normal((m, 4))).to(dtype).requires_grad_()
    (gradient,) = torch.autograd.grad((product @ back).sum(), back)
    expected = np.repeat(counts.sum(axis=0)[:, None], 4, axis=1)
    assert np.abs(gradient.numpy() - expected).max() < 10 * TOLERANCE[dtype] * expected.max()


def test_rows_are_not_split_where_few_would_be_added_up_in_each():
    counts = sparse.eye_array(unrolled.MANY + 1, unrolled.MANY, format="csr")
    product = SparseProduct.of(counts, torch.float32, torch.device("cpu"))
    assert product.T.blocks == 1


@given(st.integers(0, 2**32 - 1))
def test_the_spread_of_parts_is_that_of_the_dense_numbers(seed):
    generator = np.random.default_rng(seed)
    n, m, k, models = generator.integers(1, 6, 4)
    numbers = generator.integers(-2, 4, (k, n, m)).clip(0)
    parents, roles, parts = np.nonzero(numbers.transpose(1, 0, 2))
    pointers = np.searchsorted(parents, np.arange(n + 1))
    alphabet = tuple(map(str, range(k)))
    counts = numbers[roles, parents, parts]
    relation = Relation(pointers, parts, roles, alphabet, m, counts)
    codes = Attributes(np.zeros(m, int), Vocabulary([0]))
    made = Unrolled.of(
        Hierarchy(codes, (relation,)), dtype=torch.float64, device=torch.device("cpu")
    ).relations[0]
    uses = torch.from_numpy(generator.integers(0, 3, (n, models)).astype(float))
    spread = made.spread(uses)
    assert made.spread(uses) is spread
    for model in range(models):
        if not uses[:, model].sum():
            assert spread[model].abs().max() < 1e-12
            continue
        for role in range(k):
            mean = np.average(numbers[role], axis=0, weights=uses[:, model])
            apart = numbers[role] - mean
            covariance = apart.T @ np.diag(uses[:, model] / uses[:, model].sum()) @ apart
            found = spread[model, role].numpy()
            assert np.abs(found[0] - mean).max() < 1e-12
            assert np.abs(found[1:].T @ found[1:] - covariance).max() < 1e-12
