"""`python -m benchmarks.calibration [DATASET …]`: how well probabilities are calibrated.

Expected calibration errors, and log losses, on the outer folds of two ten-fold cross-validations:
of preset `network` with each network calibrated, then averaged (what ships); with the average
calibrated at the temperature of single networks; and of single networks; and of the default blend.
Writes docs/results/calibration.json and .md; datasets that are not named keep their rows.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import saen
from benchmarks.measure import ROOT, say
from saen.learning.calibration import tempered
from saen.learning.decomposing import Decompositions
from saen.learning.metrics import calibrate, log_losses
from saen.learning.models.base import Study
from saen.learning.problem import Problem
from saen.learning.splits import Fold, make_splits

DATASETS = ("MUTAG", "PTC", "IMDB-BINARY", "PROTEINS")
REPEATS = 2
SHIPPED, AVERAGE, SINGLE, BLEND = ("networks, averaged", "average alone", "one network", "default")
OUT = ROOT / "docs" / "results" / "calibration.json"


def measure(name: str) -> dict[str, Any]:
    """Error and log loss by model."""
    graphs = saen.load_dataset(name)
    problem = Problem.of(graphs.targets, regression=False)
    data, codes = Decompositions(graphs), problem.values
    learners = [saen.SAENClassifier().learner(), saen.Classifier().learner()]
    found: dict[str, list[Any]] = {}
    for repeat, splits in enumerate(make_splits(codes, REPEATS, 10, 0)):
        folds = [Fold(*split, (repeat, number)) for number, split in enumerate(splits)]
        networks, blends = (each.fit(Study(data, problem, repeat), folds) for each in learners)
        for result, blend in zip(networks, blends, strict=True):
            test, temperature = result.fold.test, result.calibration.temperature
            assert result.fitted is not None
            each = result.fitted.each(data[test])
            raw = tempered(each, 1 / temperature).mean(axis=1)
            for title, rows in (
                (SHIPPED, result.tested),
                (AVERAGE, tempered(raw, temperature)),
                (SINGLE, each[:, 0]),
                (BLEND, blend.tested),
            ):
                found.setdefault(title, []).append((codes[test], rows))
    scores = {}
    for title, pairs in found.items():
        truth, rows = (np.concatenate(each) for each in zip(*pairs, strict=True))
        error, loss = calibrate(truth, rows).error, float(log_losses(truth, rows[None]).mean())
        scores[title] = {"calibration_error": error, "log_loss": loss}
        say(f"{name}, {title}: {100 * error:.1f} %, log loss {loss:.4f}")
    return scores


def report(document: dict[str, Any]) -> str:
    """The results as a page."""
    titles = (SHIPPED, AVERAGE, SINGLE, BLEND)
    lines = [
        "# Calibration",
        "",
        f"Expected calibration error in percent (and log loss) on the test folds of {REPEATS} ×",
        "ten-fold cross-validation. The networks of preset `network` ship as the average of",
        "calibrated networks; beside it, their average at the temperature of single networks, one",
        "of them alone, and the default.",
        "",
        f"| dataset | {' | '.join(titles)} |",
        "|---|" + "---|" * len(titles),
    ]
    for name, scores in document.items():
        cells = [
            f"{100 * scores[t]['calibration_error']:.1f} ({scores[t]['log_loss']:.3f})"
            for t in titles
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the datasets named on the command line, by default all of them."""
    document = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in sys.argv[1:] or DATASETS:
        document[name] = measure(name)
        OUT.write_text(json.dumps(document, indent=1) + "\n")
        OUT.with_suffix(".md").write_text(report(document))


if __name__ == "__main__":
    main()
