"""Laws of domain compression on random hierarchies."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import saen.data.chunks
import saen.data.content_hash
import saen.decompositions.k_hop
from saen import Compressed, Decomposition, Hierarchy, compress, compress_graphs, merge
from saen.data.compression import compress_stream, equivalent, extend
from saen.data.content_hash import level_keys
from saen.decompositions import Ego, Neighbourhoods, Paths
from tests.properties.strategies import (
    DrawnGraphs,
    collections,
    graph_collections,
    hierarchies,
    orders,
    reordered,
)
from tests.references import hierarchies as reference
from tests.references.hierarchies import contents, first_met, same_arrays

BITS = [64, 4, 0]  # kept of either lane: all, 8 in total, none


@contextmanager
def keys_of(bits: int) -> Iterator[None]:
    """Shorter keys: different objects collide."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saen.data.content_hash, "MASKS", (np.uint64(2**bits - 1),) * 2)
        yield


@contextmanager
def blocks_of(entries: int) -> Iterator[None]:
    """Work cut into tiny pieces: every seam between them is met."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saen._util.arrays, "BLOCK", entries)
        patch.setattr(saen.data.chunks, "_MAX_CHUNK_ENTRIES", entries)
        yield


@st.composite
def reorderings(draw: st.DrawFn) -> tuple[Hierarchy, list[np.ndarray]]:
    hierarchy = draw(hierarchies())
    return hierarchy, draw(orders(hierarchy))


@pytest.mark.parametrize("bits", BITS)
@given(hierarchies())
def test_compress_merges_exactly_the_identical_objects(bits: int, hierarchy: Hierarchy) -> None:
    with keys_of(bits):
        compressed = compress(hierarchy)
    for level, expected in enumerate(contents(hierarchy)):
        assert first_met(compressed.unique_of(level).tolist()) == first_met(expected)


@pytest.mark.parametrize("bits", BITS)
@given(hierarchies(), hierarchies())
def test_keys_that_compress_and_merge_keep_are_those_of_the_content(
    bits: int, one: Hierarchy, other: Hierarchy
) -> None:
    with keys_of(bits):
        shards = [compress(one), compress(one), compress(one).top_only()]
        if (other.names, [r.alphabet for r in other.relations]) == (
            one.names,
            [r.alphabet for r in one.relations],
        ) and other.attributes.kind == one.attributes.kind:
            shards.append(compress(other))
        for compressed in (*shards, merge(shards)):
            for kept, computed in zip(
                compressed.keys, level_keys(compressed.hierarchy), strict=True
            ):
                np.testing.assert_array_equal(kept, computed)


@given(hierarchies())
def test_compress_keeps_what_every_object_is(hierarchy: Hierarchy) -> None:
    compressed = compress(hierarchy)
    after = contents(compressed.hierarchy)
    for level, before in enumerate(contents(hierarchy)):
        assert compressed.hierarchy.sizes[level] == len(set(before))
        assert [after[level][c] for c in compressed.unique_of(level)] == before
        ptr, members = compressed.members(level)
        for label, (start, stop) in enumerate(itertools.pairwise(ptr)):
            assert (
                members[start:stop].tolist()
                == np.flatnonzero(compressed.unique_of(level) == label).tolist()
            )
            assert start < stop


@given(hierarchies(), st.integers(0, 2**32))
def test_compress_keeps_the_output_of_every_object(hierarchy: Hierarchy, seed: int) -> None:
    compressed = compress(hierarchy)
    small = reference.network(compressed.hierarchy, seed)
    for level, H in enumerate(reference.network(hierarchy, seed)):
        _, D = compressed.matrices(level)
        tolerance = 1e-10 * np.abs(H).max(initial=1.0)
        np.testing.assert_allclose(D @ small[level], H, rtol=0, atol=tolerance)
        assert np.array_equal(compressed.decompress(level, small[level]), D @ small[level])


@given(hierarchies(kinds=("codes",)))
def test_compress_gives_the_matrices_of_the_paper_s_algorithm(hierarchy: Hierarchy) -> None:
    compressed = compress(hierarchy)
    R = [reference.relation_matrices(relation) for relation in hierarchy.relations]
    X_comp, R_comp, Cs, Ds = reference.domain_compression(reference.attribute_matrix(hierarchy), R)
    small = compressed.hierarchy
    # The paper leaves the numbering of unique objects open: P_l takes ours to the reference's.
    P = [np.rint(Cs[level] @ compressed.matrices(level)[1]) for level in range(len(Ds))]
    for level, D in enumerate(Ds):
        assert np.array_equal(P[level] @ P[level].T, np.eye(len(P[level])))
        C_ours, D_ours = (matrix.toarray() for matrix in compressed.matrices(level))
        np.testing.assert_allclose(D_ours, D @ P[level])
        np.testing.assert_allclose(C_ours, P[level].T @ Cs[level])
    np.testing.assert_allclose(P[0] @ small.attributes.matrix().toarray(), X_comp)
    for level, (relation, matrices) in enumerate(zip(small.relations, R_comp, strict=True), 1):
        for role, matrix in enumerate(matrices):
            ours = relation.matrix(role).toarray()
            np.testing.assert_allclose(P[level] @ ours @ P[level - 1].T, matrix)
            # R^comp_{l,π} = C_l R_{l,π} D_{l-1} with our own C and D.
            C, D = compressed.matrices(level)[0], compressed.matrices(level - 1)[1]
            np.testing.assert_allclose(C @ R[level - 1][role] @ D, ours)


@given(hierarchies())
def test_compress_matrices_satisfy_cd_identity_and_m_equals_dcm(hierarchy: Hierarchy) -> None:
    compressed = compress(hierarchy)
    for level, M in enumerate(reference.network(hierarchy, seed=1)):
        C, D = compressed.matrices(level)
        np.testing.assert_allclose((C @ D).toarray(), np.eye(compressed.hierarchy.sizes[level]))
        tolerance = 1e-10 * np.abs(M).max(initial=1.0)
        np.testing.assert_allclose(D @ (C @ M), M, rtol=0, atol=tolerance)


@pytest.mark.parametrize("bits", BITS)
@given(hierarchies())
def test_compress_twice_changes_nothing(bits: int, hierarchy: Hierarchy) -> None:
    with keys_of(bits):
        once = compress(hierarchy)
        twice = compress(once.hierarchy)
    assert same_arrays(twice.hierarchy, once.hierarchy)
    for level, size in enumerate(once.hierarchy.sizes):
        assert twice.unique_of(level).tolist() == list(range(size))


@pytest.mark.parametrize("bits", BITS)
@given(reorderings())
def test_compress_does_not_depend_on_the_order_of_objects(
    bits: int, case: tuple[Hierarchy, list[np.ndarray]]
) -> None:
    hierarchy, new_orders = case
    other = reordered(hierarchy, new_orders)
    with keys_of(bits):
        one, two = compress(hierarchy), compress(other)
    assert same_arrays(one.hierarchy, two.hierarchy)
    for level, order in enumerate(new_orders):
        assert one.unique_of(level)[order].tolist() == two.unique_of(level).tolist()
    assert equivalent(hierarchy, other)


@pytest.mark.parametrize("bits", BITS)
@given(collections())
def test_merge_of_shards_is_compressing_everything(bits: int, parts: list[Hierarchy]) -> None:
    with keys_of(bits):
        direct = compress(Hierarchy.concatenate(parts))
        assert same_arrays(merge([compress(part) for part in parts]), direct)


@given(collections(min_size=3), st.data())
def test_merge_is_associative(parts: list[Hierarchy], data: st.DataObject) -> None:
    shards = [compress(part) for part in parts]
    while len(shards) > 1:
        start = data.draw(st.integers(0, len(shards) - 2))
        stop = data.draw(st.integers(start + 2, len(shards)))
        shards[start:stop] = [merge(shards[start:stop])]
    assert same_arrays(shards[0], compress(Hierarchy.concatenate(parts)))


@given(collections(min_size=2), st.data())
def test_merge_is_commutative_up_to_order(parts: list[Hierarchy], data: st.DataObject) -> None:
    shards = [compress(part) for part in parts]
    order = data.draw(st.permutations(range(len(parts))))
    one, other = merge(shards), merge([shards[place] for place in order])
    assert one.hierarchy == other.hierarchy
    ends = np.cumsum([len(shard) for shard in shards])[:-1]
    pieces = np.split(one.top, ends)
    assert np.concatenate([pieces[place] for place in order]).tolist() == other.top.tolist()


@given(collections(), st.booleans())
def test_compress_stream_gives_what_compressing_everything_gives(
    parts: list[Hierarchy], lower: bool
) -> None:
    direct = compress(Hierarchy.concatenate(parts))
    expected = direct if lower else direct.top_only()
    assert same_arrays(compress_stream(iter(parts), lower_inverse=lower), expected)


@given(collections(min_size=2))
def test_extend_only_adds_unique_objects(parts: list[Hierarchy]) -> None:
    known = compress(Hierarchy.concatenate(parts[:-1]))
    grown = extend(known, parts[-1])
    assert same_arrays(grown, compress(Hierarchy.concatenate(parts)))
    for level, (old, new) in enumerate(zip(known.keys, grown.keys, strict=True)):
        place = {tuple(key): label for label, key in enumerate(new.tolist())}
        moved = [place[tuple(key)] for key in old.tolist()]
        assert moved == sorted(moved)
        # The old objects have the unique objects of the same keys as before.
        before = [moved[label] for label in known.unique_of(level)]
        assert grown.unique_of(level)[: known.objects[level]].tolist() == before


@given(collections(min_size=2))
def test_keys_are_equal_exactly_for_identical_objects_of_any_dataset(
    parts: list[Hierarchy],
) -> None:
    seen: list[dict[object, tuple[int, ...]]] = [{} for _ in parts[0].sizes]
    for part in parts:
        compressed = compress(part)
        for level, (what, keys) in enumerate(
            zip(contents(compressed.hierarchy), compressed.keys, strict=True)
        ):
            for content, key in zip(what, map(tuple, keys.tolist()), strict=True):
                assert seen[level].setdefault(content, key) == key
    for known in seen:
        assert len(set(known.values())) == len(known)


@given(hierarchies())
def test_compress_orders_unique_objects_by_key(hierarchy: Hierarchy) -> None:
    for keys in compress(hierarchy).keys:
        assert keys.tolist() == sorted(keys.tolist())


@given(hierarchies(), st.integers(1, 5))
def test_compress_in_small_blocks_changes_nothing(hierarchy: Hierarchy, entries: int) -> None:
    direct = compress(hierarchy)
    with blocks_of(entries):
        assert same_arrays(compress(hierarchy), direct)


@given(graph_collections(), st.integers(1, 30), st.booleans(), st.booleans())
def test_compress_graphs_in_chunks_gives_what_compressing_everything_gives(
    drawn: DrawnGraphs, entries: int, fitted: bool, lower: bool
) -> None:
    graphs = drawn.graphs
    ego = Ego(radii=(0, 1, 2))
    if fitted:
        ego = ego.fit(graphs)
    direct = compress(ego.decompose(graphs))
    with blocks_of(entries):
        chunked = compress_graphs(graphs, ego, lower_inverse=lower)
    assert same_arrays(chunked, direct if lower else direct.top_only())


CUT = [
    Ego(radii=(0, 1, 2)),
    Ego(radii=(2, 3), node_labels="degree", direction="out"),
    Ego(radii=(1, 2), edges="auto"),
    Ego(radii=(0, 2), edges="objects"),
    Paths(radii=(1, 2), max_length=3, cap=2),
    Paths(radii=(2,), max_length=2, direction="in", both_ways=True),
    Paths(radii=(0, 2), max_length=2, edges="objects"),
    Paths(radii=(1, 2), max_length=2, edges="auto"),
]


@given(
    graph_collections(),
    st.sampled_from(CUT),
    st.sampled_from([1, 2, 5, 30, 200]),
    st.sampled_from([1, 8, 1 << 22]),
    st.booleans(),
)
def test_compress_graphs_in_chunks_of_roots_gives_what_compressing_the_graph_gives(
    drawn: DrawnGraphs, decomposition: Decomposition, entries: int, table: int, lower: bool
) -> None:
    fitted = decomposition.fit(drawn.graphs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saen.decompositions.k_hop, "_MAX_TABLE", table)  # none or more hubs
        for graph in (drawn.graphs[i : i + 1] for i in range(len(drawn.graphs))):
            direct = compress(fitted.decompose(graph))
            with blocks_of(entries):
                cut = compress_graphs(graph, fitted, lower_inverse=lower)
            assert same_arrays(cut, direct if lower else direct.top_only())
            for kept, computed in zip(cut.keys, direct.keys, strict=True):
                np.testing.assert_array_equal(kept, computed)


REFINED = [
    Neighbourhoods(depth=1),
    Neighbourhoods(depth=3, node_labels="degree", direction="out"),
    Neighbourhoods(depth=2, edges="auto"),
    Neighbourhoods(depth=2, node_labels="degree", edges="objects"),
]


@pytest.mark.parametrize("bits", BITS)
@given(
    graph_collections(), st.sampled_from(REFINED), st.sampled_from([1, 5, 1 << 18]), st.booleans()
)
def test_compress_graphs_level_by_level_gives_what_compressing_everything_gives(
    bits: int, drawn: DrawnGraphs, decomposition: Decomposition, entries: int, lower: bool
) -> None:
    with keys_of(bits):
        fitted = decomposition.fit(drawn.graphs)
        direct = compress(fitted.decompose(drawn.graphs))
        with blocks_of(entries):
            refined = compress_graphs(drawn.graphs, fitted, lower_inverse=lower)
    assert same_arrays(refined, direct if lower else direct.top_only())
    for kept, computed in zip(refined.keys, direct.keys, strict=True):
        np.testing.assert_array_equal(kept, computed)


@given(hierarchies(), st.data())
def test_equivalent_is_false_after_adding_a_part(hierarchy: Hierarchy, data: st.DataObject) -> None:
    assert equivalent(hierarchy, hierarchy)
    levels = [level for level, r in enumerate(hierarchy.relations) if r.n_entries]
    assume(levels)
    level = data.draw(st.sampled_from(levels))
    relations = list(hierarchy.relations)
    counts = relations[level].multiplicity.copy()
    counts[data.draw(st.integers(0, len(counts) - 1))] += 1
    relations[level] = replace(relations[level], counts=counts)
    assert not equivalent(hierarchy, replace(hierarchy, relations=tuple(relations)))


@given(collections(min_size=2))
def test_equivalent_is_equality_of_multisets(parts: list[Hierarchy]) -> None:
    one, other = ([Counter(level) for level in contents(part)] for part in parts[:2])
    assert equivalent(*parts[:2]) == (one == other)


@given(hierarchies())
def test_compress_leaves_the_original_as_it_was(hierarchy: Hierarchy) -> None:
    before = contents(hierarchy)
    compressed: Compressed = compress(hierarchy)
    assert contents(hierarchy) == before
    assert compressed.objects == hierarchy.sizes
    assert compressed.entries == (0, *(r.n_entries for r in hierarchy.relations))
