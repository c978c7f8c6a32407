"""`python -m benchmarks.blending DATASET ...`: which rule blends candidates best.

Every rule gets the same predictions of the same candidates on the inner folds of ten training parts
(seed 100, which no accuracy table uses). It is scored inside them, with weights from two thirds of
these predictions on the last third, each third in turn, and then on the ten test parts. Rules for
the length of training, which get networks of fewer epochs too, are scored inside alone. Writes
docs/results/blending.json and .md; finished networks are kept in .benchmarks/blending.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import saen
from benchmarks.measure import ROOT, say
from saen.learning.candidates import default_candidates, shorter_networks
from saen.learning.metrics import find_metric
from saen.learning.network_estimator import NetworkEstimator
from saen.learning.preparation import Preparations
from saen.learning.selection import (
    INNER_FOLDS,
    Inner,
    blend_weights,
    mixture_weights,
    try_candidates,
)
from saen.learning.splits import make_splits
from saen.learning.trainers import Classes, Floats, Trainer
from saen.network.settings import Part

SEED = 100
FOLDS = 10
BEST_FEW = 3
THIRDS = 3
LENGTHS = ("all epochs", "half of the epochs", "a quarter of the epochs")

Losses = Callable[[Floats], Floats]
"""Log losses (k, n) of predictions (k, n, C)."""
Rule = Callable[[Floats, Any, Losses], Floats]
"""Weights (k,) from predictions (k, n, C), what is true (n,), and losses."""


def _one(index: Any, n: int) -> Floats:
    return np.bincount(np.atleast_1d(index), minlength=n) / np.size(index)


def _best_by_accuracy(rows: Floats, truth: Any, losses: Losses) -> Floats:
    return _one((rows.argmax(axis=-1) == truth).mean(axis=1).argmax(), len(rows))


def _best_by_loss(rows: Floats, truth: Any, losses: Losses) -> Floats:
    return _one(losses(rows).mean(axis=1).argmin(), len(rows))


def _mean_of_few(rows: Floats, truth: Any, losses: Losses) -> Floats:
    return _one(losses(rows).mean(axis=1).argsort()[:BEST_FEW], len(rows))


def _mean_of_all(rows: Floats, truth: Any, losses: Losses) -> Floats:
    return _one(np.arange(len(rows)), len(rows))


def _greedy_by_accuracy(rows: Floats, truth: Any, losses: Losses) -> Floats:
    def errors(mixed: Floats) -> Floats:
        return (mixed.argmax(axis=-1) != truth) + 1e-3 * losses(mixed)

    return blend_weights(rows, errors)


RULES: dict[str, Rule] = {
    "best one by accuracy": _best_by_accuracy,
    "best one by log loss": _best_by_loss,
    f"mean of the best {BEST_FEW} by log loss": _mean_of_few,
    "mean of all": _mean_of_all,
    "greedy by accuracy": _greedy_by_accuracy,
    "greedy by log loss": lambda rows, truth, losses: blend_weights(rows, losses),
    "most likely mixture": lambda rows, truth, losses: mixture_weights(
        np.exp(-losses(rows)), np.ones(len(rows))
    ),
}


def best_lengths(origin: Any) -> Rule:
    """Of rows with the same `origin`, (k,), the one of least loss; these, greedily by log loss."""

    def rule(rows: Floats, truth: Any, losses: Losses) -> Floats:
        own = np.where(origin == np.unique(origin)[:, None], losses(rows).mean(axis=1), np.inf)
        best = own.argmin(axis=1)
        return np.eye(len(rows))[best].T @ blend_weights(rows[best], losses)

    return rule


def measure(name: str, device: str, folder: Path) -> dict[str, Any]:
    """Accuracy of every candidate and of every rule, in percent.

    Finished networks are kept in `folder`, by the list of candidates that they are of.
    """
    graphs = saen.load_dataset(name)
    candidates = default_candidates(graphs, device=device)
    listed = repr([(each.name, each.estimator) for each in candidates])
    folder = folder / sha256(listed.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    n = len(candidates)
    networks = [i for i in range(n) if isinstance(candidates[i].estimator, NetworkEstimator)]
    half, quarter = (shorter_networks(candidates, divisor) for divisor in (2, 4))
    origin = np.array([*range(n), *networks, *networks])
    length = np.repeat(range(len(LENGTHS)), [n, len(half), len(quarter)])
    problem = Classes(graphs.targets)
    trainer = Trainer(Preparations(graphs), problem, SEED, folder=folder)
    splits = make_splits(problem.labels.astype(str), 1, FOLDS, SEED)[0]
    parts = [Part((0, fold), *map(np.asarray, split)) for fold, split in enumerate(splits)]
    inner = Inner(find_metric(None, regression=False), INNER_FOLDS)
    trials = try_candidates(trainer, [*candidates, *half, *quarter], parts, inner)
    held_out = [rows[:n] for rows in trials.held_out]
    tested = [
        trials.tested[index].outputs
        if index in trials.tested
        else trainer.train(f"outer-{index}", candidate.estimator, parts).outputs
        for index, candidate in enumerate(candidates)
    ]
    truths = [problem.targets[part.test] for part in parts]

    def accuracy(weights: Floats) -> float:
        mixed = [
            np.tensordot(weights[:, i], np.stack([rows[i] for rows in tested]), 1)
            for i in range(len(parts))
        ]
        pairs = zip(mixed, truths, strict=True)
        return 100 * float(np.mean([(rows.argmax(axis=1) == y).mean() for rows, y in pairs]))

    def weights_by(rule: Rule) -> Floats:
        pairs = zip(held_out, trials.truth, strict=True)
        columns = [rule(rows, y, partial(problem.losses, y)) for rows, y in pairs]
        return np.stack(columns, axis=1)

    def inside(rule: Rule, held_out: list[Floats], calibrate: bool = False) -> dict[str, float]:
        accuracies, losses = [], []
        for given, y in zip(held_out, trials.truth, strict=True):
            third = np.random.default_rng(SEED).permutation(len(y)) % THIRDS
            for number in range(THIRDS):
                use, score, rows = third != number, third == number, given
                if calibrate:
                    rows = np.stack([problem.calibrated(e, e[use], y[use])[0] for e in given])
                weights = rule(rows[:, use], y[use], partial(problem.losses, y[use]))
                mixed = np.tensordot(weights, rows[:, score], 1)
                accuracies.append((mixed.argmax(axis=1) == y[score]).mean())
                losses.append(problem.losses(y[score], mixed[None]).mean())
        return {"accuracy": 100 * float(np.mean(accuracies)), "log_loss": float(np.mean(losses))}

    alone = np.eye(len(candidates))[..., None].repeat(len(parts), axis=2)
    result: dict[str, Any] = {"candidates": {}, "rules": {}, "lengths": {}}
    for index, candidate in enumerate(candidates):
        result["candidates"][candidate.name["candidate"]] = {
            "inner": 100 * float(trials.scores[index].mean()),
            "test": accuracy(alone[index]),
        }
    for title, rule in RULES.items():
        weights = weights_by(rule)
        mean = dict(zip(result["candidates"], weights.mean(axis=1).tolist(), strict=True))
        result["rules"][title] = {
            "inside": inside(rule, held_out),
            "test": accuracy(weights),
            "weights": mean,
        }
    for number, title in enumerate(LENGTHS):
        which = (length == number) & np.isin(origin, networks)
        result["lengths"][f"networks alone, {title}"] = {
            "accuracy": 100 * float(trials.scores[which].mean()),
            "log_loss": float(trials.losses[which].mean()),
        }
    greedy = RULES["greedy by log loss"]
    result["lengths"] |= {
        "blend, all epochs": inside(greedy, held_out),
        "blend, each candidate's length by its own log loss": inside(
            best_lengths(origin), trials.held_out
        ),
        "blend, all epochs and a quarter as candidates": inside(
            greedy, [rows[length != 1] for rows in trials.held_out]
        ),
        "blend, all lengths as candidates": inside(greedy, trials.held_out),
        "blend, all lengths, calibrated first": inside(greedy, trials.held_out, calibrate=True),
    }
    return result


def report(document: dict[str, Any]) -> str:
    """The results as a page."""
    heading = [f"| rule | {' | '.join(document)} |", f"|---|{'---:|' * len(document)}"]
    inside = "{log_loss:.3f}, {accuracy:.1f}".format

    def rows(cell: Callable[[dict[str, Any]], str], kind: str = "rules") -> list[str]:
        results = [each[kind] for each in document.values()]
        titles = dict.fromkeys(title for each in results for title in each)
        each = {t: [cell(r[t]) if t in r else "" for r in results] for t in titles}
        return [f"| {title} | {' | '.join(cells)} |" for title, cells in each.items()]

    lines = [
        "# Rules for blending",
        "",
        "All rules get the same predictions of the same candidates, on three inner folds of each",
        f"training part of one 10-fold cross-validation with seed {SEED}; the accuracy tables use",
        "other seeds. Written by `python -m benchmarks.blending`.",
        "",
        "Inside the training parts, with weights from two thirds of these predictions on the last",
        "third: log loss, and accuracy in percent.",
        "",
        *heading,
        *rows(lambda rule: inside(**rule["inside"])),
        "",
        "On the test parts: accuracy in percent.",
        "",
        *heading,
        *rows(lambda rule: f"{rule['test']:.1f}"),
    ]
    candidates = [found["candidates"] for found in document.values()]
    for candidate in dict.fromkeys(name for found in candidates for name in found):
        scores = (f"{f[candidate]['test']:.1f}" if candidate in f else "" for f in candidates)
        lines.append(f"| only {candidate} | {' | '.join(scores)} |")
    lines += [
        "",
        "## Length of training",
        "",
        "Inside the training parts, as above; all networks are also trained for a half and for a",
        "quarter of their epochs. Blends are greedy by log loss. Calibrated first: every candidate",
        "has a temperature from the two thirds. Networks alone: their mean.",
        "",
        *heading,
        *rows(lambda rule: inside(**rule), "lengths"),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the datasets that were asked for, beside those that are known already."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blending", description=__doc__)
    parser.add_argument("datasets", nargs="+", metavar="DATASET")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    options = parser.parse_args()
    file = options.out / "blending.json"
    document = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in options.datasets:
        say(name)
        document[name] = measure(name, options.device, ROOT / ".benchmarks/blending" / name)
        text = json.dumps(document, indent=1)
        file.write_text(text + "\n", encoding="utf-8")
        (options.out / "blending.md").write_text(report(document), encoding="utf-8")


if __name__ == "__main__":
    main()
