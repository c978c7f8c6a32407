"""Pictures show every object and every relation once, or say what they leave out."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from saen import Attributes, Ego, Graphs, Hierarchy, Relation, compress
from saen.errors import FileError, InputError, MissingExtraError
from saen.report._layout import (
    LARGEST_GRAPH,
    LONGEST_ROW,
    Lines,
    layout,
    neighbourhood,
    sampled,
    untangled,
)
from saen.report.plots import (
    draw_compression,
    draw_decomposition,
    plot_levels,
    save_figure,
)

mpl = pytest.importorskip("matplotlib", reason="needs the extra 'plots'")

HOUSE = [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]


def collaboration() -> Graphs:
    """Twenty nodes in four cliques that share node 0."""
    cliques = [range(6), [0, *range(6, 11)], [0, *range(11, 14)], [0, *range(14, 20)]]
    edges = {(a, b) for clique in cliques for a in clique for b in clique if a < b}
    return Graphs.from_edge_lists([sorted(edges)], name="collaboration")


def thread(n: int = 2000) -> Graphs:
    """A tree in which half of the nodes answer the first one."""
    random = np.random.default_rng(3)
    parents = [0 if random.random() < 0.5 else int(random.integers(i)) for i in range(1, n)]
    return Graphs.from_edge_lists([list(zip(parents, range(1, n), strict=True))], name="thread")


CASES = {
    "house": (Graphs.from_edge_lists([HOUSE]), Ego((0, 1))),
    "collaboration": (collaboration(), Ego((0, 1, 2))),
    "thread": (thread(), Ego((0, 1))),
    "loops and isolated nodes": (
        Graphs.from_edge_lists([[(0, 0), (0, 1), (2, 2)]], sizes=[5]),
        Ego((0, 1)),
    ),
    "directed": (Graphs.from_edge_lists([[(0, 1), (1, 0), (1, 1)]], directed=True), Ego((0, 1))),
    "no nodes": (Graphs.from_edge_lists([[]], sizes=[0]), Ego((0, 1))),
    "one node": (Graphs.from_edge_lists([[]], sizes=[1]), Ego((0,))),
}


def artists(figure: Any) -> dict[str, Any]:
    """Collections of a figure by their identifiers."""
    return {c.get_gid(): c for axes in figure.axes for c in axes.collections if c.get_gid()}


def nodes(figure: Any, name: str) -> list[int]:
    """Nodes drawn on every level of a hierarchy, bottom first."""
    found = artists(figure)
    levels = sorted(gid for gid in found if gid.startswith(f"{name}-level-"))
    return [len(found[gid].get_offsets()) for gid in levels]


def lines(figure: Any, name: str, level: int) -> int:
    prefix = f"{name}-relation-{level}-"
    found = artists(figure).items()
    return sum(len(c.get_segments()) for gid, c in found if gid.startswith(prefix))


def texts(figure: Any) -> list[str]:
    inside = [t.get_text() for axes in figure.axes for t in axes.findobj(mpl.text.Text)]
    return [text for text in [*inside, *(t.get_text() for t in figure.texts)] if text]


# -- what is drawn -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", [name for name in CASES if name != "thread"])
def test_every_object_is_a_node_and_every_entry_a_line(case: str) -> None:
    graphs, ego = CASES[case]
    hierarchy = ego.decompose(graphs)
    figure = draw_decomposition(graphs, ego)
    assert nodes(figure, "hierarchy") == list(hierarchy.sizes)
    assert len(artists(figure)["graph-nodes"].get_offsets()) == graphs.n_nodes
    for level, relation in enumerate(hierarchy.relations, start=1):
        assert lines(figure, "hierarchy", level) == relation.n_entries
    assert not any(text.startswith("showing") for text in texts(figure))


@pytest.mark.parametrize("case", [name for name in CASES if name != "thread"])
def test_every_class_is_a_node_and_every_collapsed_entry_a_line(case: str) -> None:
    graphs, ego = CASES[case]
    compressed = compress(ego.decompose(graphs))
    figure = draw_compression(graphs, ego)
    assert nodes(figure, "hierarchy") == list(compressed.objects)
    assert nodes(figure, "compressed") == list(compressed.hierarchy.sizes)
    for level, relation in enumerate(compressed.hierarchy.relations, start=1):
        assert lines(figure, "hierarchy", level) == compressed.entries[level]
        assert lines(figure, "compressed", level) == relation.n_entries


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("draw", [draw_decomposition, draw_compression])
def test_every_picture_can_be_rendered(case: str, draw: Any, tmp_path: Any) -> None:
    save_figure(draw(*CASES[case]), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_title_counts_the_objects_of_every_level() -> None:
    figure = draw_compression(*CASES["house"], title="toys, graph 3")
    title = "toys, graph 3: 5 nodes → 10 ego graphs → 1 graph, collapsed to 3 → 6 → 1"
    assert figure.texts[0].get_text() == title


def test_nodes_carry_their_labels_in_both_panels() -> None:
    graphs = collaboration()
    drawn = Counter(texts(draw_decomposition(graphs, Ego((0, 1)))))
    for label, count in Counter(map(str, graphs.degrees().tolist())).items():
        assert drawn[label] == 2 * count


def test_multiplicities_and_class_sizes_are_written() -> None:
    graphs, ego = CASES["house"]
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


def test_roles_that_join_the_same_objects_bend_apart() -> None:
    relation = Relation([0, 3], [0, 0, 1], [0, 1, 0], ("root", "elem"), n_parts=2)
    bends = Lines.of(relation, np.arange(1), np.arange(2)).bends
    assert sorted(bends.tolist()) == [-0.5, 0.0, 0.5]


def test_loops_are_rings_and_directions_are_arrows() -> None:
    found = artists(draw_decomposition(*CASES["loops and isolated nodes"]))
    assert len(found["graph-loops"].get_offsets()) == 2
    assert "graph-arrows" not in found
    found = artists(draw_decomposition(*CASES["directed"]))
    assert len(found["graph-loops"].get_offsets()) == 1
    assert len(found["graph-arrows"].get_offsets()) == 2


def test_unseen_labels_are_question_marks() -> None:
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

    def costs(self, graphs: Graphs) -> Any:
        return np.zeros(len(graphs), np.int64)

    def settings(self) -> dict[str, Any]:
        return {}


def chain(depth: int, n_roles: int) -> Hierarchy:
    """Vectors at the bottom, then levels of random multisets down to one whole."""
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
def test_hierarchies_of_any_depth_and_roles_can_be_drawn(
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


def test_bottom_objects_that_are_not_nodes_leave_the_graph_unlabelled() -> None:
    graphs = Graphs.from_edge_lists([[(0, 1)]], node_labels=["carbon", "carbon"])
    hierarchy = Ego((0,)).decompose(graphs)
    words = Fixed(replace(hierarchy, names=("words", *hierarchy.names[1:])))
    assert texts(draw_decomposition(graphs, Ego((0,)))).count("carbon") == 4
    assert texts(draw_decomposition(graphs, words)).count("carbon") == 2


# -- large graphs ------------------------------------------------------------------------------


def test_a_large_graph_is_sampled_and_says_so() -> None:
    graphs, ego = CASES["thread"]
    first, second = draw_decomposition(graphs, ego), draw_compression(graphs, ego)
    for figure in (first, second):
        bottom, middle, top = nodes(figure, "hierarchy")
        assert (middle, top) == (LONGEST_ROW, 1)
        assert LONGEST_ROW / 4 < bottom <= LONGEST_ROW
        notes = [text for text in texts(figure) if text.startswith("showing")]
        assert any(f"{bottom} of 2,000 nodes, {middle} of 4,000 ego" in note for note in notes)
    assert f"showing {LARGEST_GRAPH} of 2,000 nodes" in " ".join(texts(first))
    assert len(artists(first)["graph-nodes"].get_offsets()) == LARGEST_GRAPH


def test_a_sample_holds_every_role_and_leaves_no_whole_without_parts() -> None:
    graphs, ego = CASES["thread"]
    hierarchy = ego.decompose(graphs)
    shown = sampled(hierarchy)
    for level, relation in enumerate(hierarchy.relations, start=1):
        kept = Lines.of(relation, shown[level], shown[level - 1])
        assert np.bincount(kept.parents, minlength=len(shown[level])).min() >= 1
        assert set(kept.roles.tolist()) == set(range(relation.n_roles))
    by_radius = np.bincount(hierarchy.relations[1].roles[shown[1]])
    assert by_radius.tolist() == [LONGEST_ROW // 2, LONGEST_ROW // 2]


def test_shown_objects_have_shown_classes() -> None:
    graphs, ego = CASES["thread"]
    compressed = compress(ego.decompose(graphs))
    assert compressed.hierarchy.sizes[1] > LONGEST_ROW  # or the case tests nothing
    shown = sampled(ego.decompose(graphs))[1]
    drawn = nodes(draw_compression(graphs, ego), "compressed")[1]
    assert drawn == len(np.unique(compressed.unique_of(1)[shown]))


def test_the_part_of_a_large_graph_that_is_shown_hangs_together() -> None:
    graphs, _ = CASES["thread"]
    kept = neighbourhood(graphs)
    assert len(kept) == LARGEST_GRAPH
    assert int(graphs.degrees().argmax()) in kept
    inside = np.isin(graphs.edges(), kept).all(axis=1)
    assert inside.sum() == LARGEST_GRAPH - 1  # a tree again
    around_the_hub = (graphs.edges()[inside] == graphs.degrees().argmax()).any(axis=1)
    assert around_the_hub.mean() < 0.6  # though it has more neighbours than there is room for
    assert graphs.degrees().max() > LARGEST_GRAPH


# -- where things stand ------------------------------------------------------------------------


def crossings(hierarchy: Hierarchy, shown: list[Any]) -> int:
    total = 0
    for level, relation in enumerate(hierarchy.relations, start=1):
        kept = Lines.of(relation, shown[level], shown[level - 1])
        left = kept.parents[:, None] < kept.parents
        total += int((left & (kept.parts[:, None] > kept.parts)).sum())
    return total


def test_untangling_keeps_the_objects_and_removes_crossings() -> None:
    order = np.random.default_rng(0).permutation(30)
    path = Graphs.from_edge_lists([list(zip(order[:-1].tolist(), order[1:].tolist(), strict=True))])
    hierarchy = Ego((0, 1)).decompose(path)
    shown = sampled(hierarchy)
    ordered = untangled(hierarchy, shown)
    assert [sorted(ids.tolist()) for ids in ordered] == [ids.tolist() for ids in shown]
    assert crossings(hierarchy, ordered) < 0.1 * crossings(hierarchy, shown)
    standing = ordered[0].tolist()
    assert order.tolist() in (standing, standing[::-1])


def test_a_path_is_laid_out_as_a_line() -> None:
    places = layout(np.column_stack([np.arange(9), np.arange(1, 10)]), 10)
    gaps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    np.testing.assert_allclose(gaps, 1, atol=0.05)
    assert np.linalg.norm(places[-1] - places[0]) > 8.5


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("dense", [False, True])
def test_no_two_nodes_share_a_place(n: int, dense: bool) -> None:
    edges = np.argwhere(np.triu(np.ones((n, n)), 1)) if dense else np.empty((0, 2), np.int64)
    places = layout(edges, n)
    apart = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(n)
    assert np.isfinite(places).all()
    assert apart.min() > 0.05


# -- bars --------------------------------------------------------------------------------------


def test_bars_show_every_level_before_and_after() -> None:
    levels = compress(Ego((0, 1)).decompose(collaboration())).levels()
    figure = plot_levels(levels, "collaboration")
    drawn = [text.strip() for text in texts(figure)]
    for row in levels:
        assert f"{row['objects']:,}" in drawn
        assert f"{row['unique']:,}" in drawn
        assert row["name"] in drawn
    assert [len(axes.patches) for axes in figure.axes] == [6, 4]
    assert all(axes.get_xscale() == "log" for axes in figure.axes)


def test_bars_of_nothing_can_be_drawn_but_no_levels_cannot(tmp_path: Any) -> None:
    levels = compress(Ego((0,)).decompose(CASES["no nodes"][0])).levels()
    save_figure(plot_levels(levels), tmp_path / "levels.png")
    with pytest.raises(InputError, match="empty"):
        plot_levels([])


# -- files -------------------------------------------------------------------------------------


def test_an_svg_file_holds_its_words_as_text(tmp_path: Any) -> None:
    labels = ["$x^{$", "<&\x07>", "two\nlines", "a very long label indeed"]
    graphs = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 3)]], node_labels=labels)
    save_figure(draw_decomposition(graphs, Ego((0, 1)), "$x^{$ & co"), tmp_path / "figure.svg")
    tree = ElementTree.parse(tmp_path / "figure.svg")
    words = {"".join(element.itertext()) for element in tree.iter() if element.tag.endswith("text")}
    assert {"root", "elem", "radius 0", "radius 1", "$x^{$", "<&·>", "two lines"} <= words
    assert "a very long…" in words
    assert "$x^{$ & co: 4 nodes → 8 ego graphs → 1 graph" in words


def test_a_sampled_svg_file_says_so(tmp_path: Any) -> None:
    save_figure(draw_decomposition(*CASES["thread"]), tmp_path / "figure.svg")
    assert "showing 300 of 2,000 nodes" in (tmp_path / "figure.svg").read_text("utf-8")


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_picture_is_the_same_bytes(suffix: str, tmp_path: Any) -> None:
    for name in ("a", "b"):
        save_figure(draw_compression(collaboration(), Ego((0, 1))), tmp_path / f"{name}.{suffix}")
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_an_unknown_suffix_is_refused(tmp_path: Any) -> None:
    figure = plot_levels(compress(Ego((0,)).decompose(collaboration())).levels())
    with pytest.raises(InputError, match=r"\.svg, \.png, \.pdf"):
        save_figure(figure, tmp_path / "figure.bmp")
    save_figure(figure, tmp_path / "FIGURE.PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["FIGURE.PNG"]


def test_a_missing_folder_is_an_error_that_names_the_file(tmp_path: Any) -> None:
    figure = plot_levels(compress(Ego((0,)).decompose(collaboration())).levels())
    with pytest.raises(FileError, match=r"nowhere.figure\.svg: cannot be written"):
        save_figure(figure, tmp_path / "nowhere" / "figure.svg")


def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = plot_levels(compress(Ego((0,)).decompose(collaboration())).levels())
    target = tmp_path / "figure.svg"
    target.write_text("old")

    def interrupted(file: Any, **options: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(figure, "savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_figure(figure, target)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


# -- manners -----------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [draw_decomposition, draw_compression])
def test_only_one_graph_can_be_drawn(draw: Any) -> None:
    two = Graphs.from_edge_lists([HOUSE, HOUSE])
    with pytest.raises(InputError, match="one graph can be drawn, not 2"):
        draw(two, Ego())


def test_without_matplotlib_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"saen\[plots\]"):
        draw_decomposition(*CASES["house"])


def test_matplotlib_is_loaded_late_and_its_global_state_never() -> None:
    code = (
        "import sys, saen.report.plots as plots\n"
        "from saen import Ego, Graphs\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plots.draw_compression(Graphs.from_edge_lists([[(0, 1)]]), Ego())\n"
        "assert 'matplotlib.figure' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_settings_of_matplotlib_are_left_as_they_were(tmp_path: Any) -> None:
    before = dict(mpl.rcParams)
    save_figure(draw_decomposition(*CASES["house"]), tmp_path / "figure.svg")
    assert dict(mpl.rcParams) == before
