"""Charts of what training and evaluation found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from saen.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saen.evaluation import Evaluation

_BLUE = "#0072B2"


def plot_evaluation(found: Evaluation, title: str = "") -> Figure:
    """Learning curves of all trainings, and the confusion matrix of their tests."""
    figure = new_figure(10, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1))
    loss = found.loss
    epochs = np.arange(1, len(loss) + 1)
    low, middle, high = np.quantile(loss, (0.1, 0.5, 0.9), axis=1)
    left.fill_between(epochs, low, high, color=_BLUE, alpha=0.2, linewidth=0)
    left.plot(epochs, middle, color=_BLUE, label="loss in training")
    left.set(xlabel="epoch", ylabel="cross entropy", ylim=(0, None))
    left.set_title(f"{loss.shape[1]} trainings: median, 10 % to 90 %", size=10, loc="left")
    left.spines[["top", "right"]].set_visible(False)
    n = len(found.classes)
    counts = np.zeros((n, n))
    np.add.at(
        counts, (np.broadcast_to(found.targets, found.predictions.shape), found.predictions), 1
    )
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    right.imshow(share, cmap="Blues", vmin=0, vmax=1)
    names = [str(label) for label in found.classes]
    right.set_xticks(range(n), names, rotation=30 if n > 3 else 0)
    right.set_yticks(range(n), names)
    right.set(xlabel="predicted", ylabel="true")
    for i in range(n):
        for j in range(n):
            colour = "white" if share[i, j] > 0.5 else "black"
            right.text(j, i, f"{100 * share[i, j]:.0f} %", ha="center", va="center", color=colour)
    accuracy = found.accuracies().mean()
    right.set_title(f"accuracy {100 * accuracy:.1f} %", size=10, loc="left")
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    figure.tight_layout()
    return figure
