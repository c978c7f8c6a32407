"""Charts show every level before and after compression."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from saen import InputError, compress
from saen.decompositions import Ego
from saen.network.settings import join_curves
from saen.report.charts import plot_curves, plot_levels, plot_sizes
from saen.report.figures import save_figure
from tests.report.pictures import SMALL, collaboration, texts

pytest.importorskip("matplotlib", reason="needs the extra 'plots'")


def test_plot_levels_shows_every_level_before_and_after() -> None:
    levels = compress(Ego((0, 1)).decompose(collaboration())).levels()
    figure = plot_levels(levels, "collaboration")
    drawn = [text.strip() for text in texts(figure)]
    for row in levels:
        assert f"{row['objects']:,}" in drawn
        assert f"{row['unique']:,}" in drawn
        assert row["name"] in drawn
    assert [len(axes.patches) for axes in figure.axes] == [6, 4]
    assert all(axes.get_xscale() == "log" for axes in figure.axes)


def test_plot_levels_draws_empty_levels_but_not_none(tmp_path: Any) -> None:
    levels = compress(Ego((0,)).decompose(SMALL["no nodes"][0])).levels()
    save_figure(plot_levels(levels), tmp_path / "levels.png")
    with pytest.raises(InputError, match="empty"):
        plot_levels([])


def test_plot_curves_draws_networks_of_different_epochs_apart() -> None:
    part_counts = np.empty((0, 4))
    curves = join_curves([np.ones((3, 2)), part_counts, np.full((5, 1), 2.0)])
    assert curves.shape == (5, 3)
    axes = plot_curves({"training": curves, "none": curves[:0]}, "loss").axes[0]
    short, long = axes.lines
    assert short.get_ydata().tolist() == [1.0] * 3
    assert long.get_ydata().tolist() == [2.0] * 5
    assert short.get_color() == long.get_color()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["training"]


def test_plot_curves_draws_straight_lines_between_measurements() -> None:
    nan = np.nan
    curves = np.array([[nan, nan], [4.0, nan], [nan, 3.0], [2.0, nan], [1.0, 1.0]])
    [median] = plot_curves({"inner validation": curves}, "loss").axes[0].lines
    assert median.get_xdata().tolist() == [2, 3, 4, 5]
    assert median.get_ydata().tolist() == [4.0, 3.0, 2.0, 1.0]


@pytest.mark.parametrize(("low", "high"), [(2, 35), (1, 3_000_000)])
def test_plot_sizes_writes_numbers_that_do_not_overlap(low: int, high: int) -> None:
    figure = plot_sizes(np.geomspace(low, high, 100).astype(np.int64), "nodes per graph", "graphs")
    figure.canvas.draw()
    axis = figure.axes[0].xaxis
    labels = [each for each in axis.get_ticklabels(which="both") if each.get_text()]
    inside = [b for b in (each.get_window_extent() for each in labels) if 0 < b.x0 < 1000]
    ends = sorted((box.x0, box.x1) for box in inside)
    assert len(ends) >= 3
    assert all(one[1] < two[0] for one, two in pairwise(ends))
