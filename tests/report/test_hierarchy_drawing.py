"""Drawings of hierarchies show every object and every entry once, or say what they leave out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from saen import Attributes, Graphs, Hierarchy, InputError, Relation, compress
from saen.decompositions import Ego
from saen.report._layout import MAX_NODES, MAX_ROW, sampled
from saen.report.figures import save_figure
from saen.report.hierarchy_drawing import draw_compression, draw_decomposition
from tests.report.pictures import HOUSE, LARGE, SMALL, artists, collaboration, texts

pytest.importorskip("matplotlib", reason="needs the extra 'plots'")


def nodes(figure: Any, name: str) -> list[int]:
    """Nodes drawn on every level of a hierarchy, bottom first."""
    found = artists(figure)
    levels = sorted(gid for gid in found if gid.startswith(f"{name}-level-"))
    return [len(found[gid].get_offsets()) for gid in levels]


def lines(figure: Any, name: str, level: int) -> int:
    prefix = f"{name}-relation-{level}-"
    found = artists(figure).items()
    return sum(len(c.get_segments()) for gid, c in found if gid.startswith(prefix))


# -- what is drawn -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", SMALL)
def test_draw_decomposition_shows_every_object_and_entry(case: str) -> None:
    graphs, ego = SMALL[case]
    hierarchy = ego.decompose(graphs)
    figure = draw_decomposition(graphs, ego)
    assert nodes(figure, "hierarchy") == list(hierarchy.sizes)
    if graphs.n_nodes:
        assert len(artists(figure)["graph-nodes"].get_offsets()) == graphs.n_nodes
    for level, relation in enumerate(hierarchy.relations, start=1):
        assert lines(figure, "hierarchy", level) == relation.n_entries
    assert not any(text.startswith("showing") for text in texts(figure))


@pytest.mark.parametrize("case", SMALL)
def test_draw_compression_shows_every_unique_object_and_entry(case: str) -> None:
    graphs, ego = SMALL[case]
    compressed = compress(ego.decompose(graphs))
    figure = draw_compression(graphs, ego)
    assert nodes(figure, "hierarchy") == list(compressed.objects)
    assert nodes(figure, "compressed") == list(compressed.hierarchy.sizes)
    for level, relation in enumerate(compressed.hierarchy.relations, start=1):
        assert lines(figure, "hierarchy", level) == compressed.entries[level]
        assert lines(figure, "compressed", level) == relation.n_entries


@pytest.mark.parametrize("case", [*SMALL, "large"])
@pytest.mark.parametrize("draw", [draw_decomposition, draw_compression])
def test_drawings_can_be_rendered(case: str, draw: Any, tmp_path: Any) -> None:
    save_figure(draw(*SMALL.get(case, LARGE)), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_drawings_count_the_objects_of_every_level_in_the_title() -> None:
    figure = draw_compression(*SMALL["house"], title="toys, graph 3")
    title = "toys, graph 3: 5 nodes → 10 ego graphs → 1 graph, compressed to 3 → 6 → 1"
    assert figure.texts[0].get_text() == title


def test_draw_decomposition_labels_nodes_in_both_panels() -> None:
    graphs = collaboration()
    drawn = Counter(texts(draw_decomposition(graphs, Ego((0, 1), "degree"))))
    for label, count in Counter(map(str, graphs.degrees().tolist())).items():
        assert drawn[label] == 2 * count


def test_draw_compression_writes_multiplicities_and_copies() -> None:
    graphs, ego = SMALL["house"]
    compressed = compress(ego.decompose(graphs))
    drawn = Counter(texts(draw_compression(graphs, ego)))
    counts = np.concatenate(
        [
            relation.counts
            for relation in compressed.hierarchy.relations
            if relation.counts is not None
        ]
    )
    for count, times in Counter(counts[counts > 1].tolist()).items():
        assert drawn[f"×{count}"] == times
    sizes = [np.diff(compressed.members(level)[0]) for level in (1, 2)]
    for size, times in Counter(np.concatenate(sizes).tolist()).items():
        assert drawn[str(size)] >= times


def test_draw_decomposition_shows_unseen_labels_as_question_marks() -> None:
    ego = Ego((0,)).fit(Graphs.from_edge_lists([[(0, 1)]]))
    assert texts(draw_decomposition(Graphs.from_edge_lists([HOUSE]), ego)).count("?") == 6


# -- any hierarchy -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixed:
    """A decomposition that always gives the same hierarchy."""

    hierarchy: Hierarchy

    def fit(self, graphs: Graphs) -> Fixed:
        return self

    def decompose(self, graphs: Graphs) -> Hierarchy:
        return self.hierarchy

    def anchors(self, graphs: Graphs) -> None:
        return None

    def costs(self, graphs: Graphs) -> Any:
        return np.zeros(len(graphs), np.int64)

    def settings(self) -> dict[str, Any]:
        return {}


def chain(depth: int, n_roles: int) -> Hierarchy:
    """Vectors at the bottom, then levels of random multisets down to one parent."""
    random = np.random.default_rng(depth)
    alphabet = tuple(f"a rather long role ${i}" for i in range(n_roles))
    relations, below = [], 9
    for level in range(1, depth + 1):
        parents = 1 if level == depth else 9 - level
        relations.append(
            Relation(
                np.arange(parents + 1) * 6,
                random.integers(below, size=6 * parents),
                random.integers(n_roles, size=6 * parents),
                alphabet,
                below,
            )
        )
        below = parents
    return Hierarchy(Attributes(vectors=random.normal(size=(9, 2))), tuple(relations))


@pytest.mark.parametrize(("depth", "n_roles"), [(1, 1), (2, 3), (4, 12)])
def test_drawings_take_hierarchies_of_any_depth_and_roles(
    depth: int, n_roles: int, tmp_path: Any
) -> None:
    graph, decomposition = Graphs.from_edge_lists([HOUSE]), Fixed(chain(depth, n_roles))
    first, second = (
        draw_decomposition(graph, decomposition),
        draw_compression(graph, decomposition),
    )
    assert nodes(first, "hierarchy") == list(decomposition.hierarchy.sizes)
    for level, relation in enumerate(decomposition.hierarchy.relations, start=1):
        assert lines(first, "hierarchy", level) == relation.canonical().n_entries
    assert ("… 12 roles" in texts(first)) == (n_roles == 12)
    save_figure(first, tmp_path / "first.svg")
    save_figure(second, tmp_path / "second.svg")


def test_draw_decomposition_leaves_nodes_unlabelled_that_are_not_the_bottom_objects() -> None:
    graphs = Graphs.from_edge_lists([[(0, 1)]], node_labels=["carbon", "carbon"])
    hierarchy = Ego((0,)).decompose(graphs)
    words = Fixed(replace(hierarchy, names=("words", *hierarchy.names[1:])))
    assert texts(draw_decomposition(graphs, Ego((0,)))).count("carbon") == 4
    assert texts(draw_decomposition(graphs, words)).count("carbon") == 2


# -- large graphs ------------------------------------------------------------------------------


def test_drawings_of_a_large_graph_say_what_is_left_out() -> None:
    graphs, ego = LARGE
    first, second = draw_decomposition(graphs, ego), draw_compression(graphs, ego)
    for figure in (first, second):
        bottom, middle, top = nodes(figure, "hierarchy")
        assert (middle, top) == (MAX_ROW, 1)
        assert MAX_ROW / 4 < bottom <= MAX_ROW
        notes = [text for text in texts(figure) if text.startswith("showing")]
        assert any(f"{bottom} of 2,000 nodes, {middle} of 4,000 ego" in note for note in notes)
    assert f"showing {MAX_NODES} of 2,000 nodes" in " ".join(texts(first))
    assert len(artists(first)["graph-nodes"].get_offsets()) == MAX_NODES


def test_draw_compression_shows_the_unique_objects_of_shown_objects() -> None:
    graphs, ego = LARGE
    compressed = compress(ego.decompose(graphs))
    assert compressed.hierarchy.sizes[1] > MAX_ROW  # or the case tests nothing
    shown = sampled(ego.decompose(graphs))[1]
    drawn = nodes(draw_compression(graphs, ego), "compressed")[1]
    assert drawn == len(np.unique(compressed.unique_of(1)[shown]))


@pytest.mark.parametrize("draw", [draw_decomposition, draw_compression])
def test_drawings_take_one_graph(draw: Any) -> None:
    two = Graphs.from_edge_lists([HOUSE, HOUSE])
    with pytest.raises(InputError, match="can draw one graph, not 2"):
        draw(two, Ego())
