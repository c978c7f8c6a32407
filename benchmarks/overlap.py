"""`python -m benchmarks.overlap [DATASET …]`: accuracies with overlapping graphs in one fold.

Ten folds of seed 0: random ones, with duplicates kept together, and with overlapping graphs kept
together, by rules that differ in how many times more than chance explains two graphs have to share
(2 is the rule of `saen evaluate --groups overlap`); for molecules in a file also with scaffolds
kept together, and for COLLAB with graphs kept together that share many nodes of large cliques, a
rule made by hand to see what the general one leaves. Three models: of graphs without labels part
counts over degrees and triangles, part counts over degrees, and a forest over coarse degrees, which
memorises less; of molecules part counts, a forest over them, and counts of atoms. Writes
docs/results/overlap.json and .md, and docs/figures/overlap.svg; what is in overlap.json already is
not measured again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

import saen
from benchmarks.measure import ROOT, say
from saen.data.graphs import Graphs
from saen.data.overlap import MIN_STRENGTH, find_overlap
from saen.decompositions.structure import triangle_counts
from saen.io.options import ReadOptions
from saen.jobs.groups import DUPLICATES, SCAFFOLD, load_groups, overlap_groups
from saen.learning.overlap import compress_for_overlap
from saen.learning.splits import make_splits
from saen.paper.reproduce import percent_interval
from saen.report.figures import new_figure, open_frame, save_figure
from saen.report.palette import BLUE, GREEN, ORANGE

DATASETS = ("COLLAB", "IMDB-BINARY", "IMDB-MULTI")
STRENGTHS = (4.0, MIN_STRENGTH, 1.5, 1.0)
MODELS = {
    "degrees and triangles": {"node_labels": "degree,triangles"},
    "degrees": {"node_labels": "degree"},
    "coarse forest": {"node_labels": "log-degree:1", "model": "forest"},
}
LABELLED = {
    "part counts": {},
    "forest": {"model": "forest"},
    "atoms": {"decomposition": "nodes"},
}
BY_HAND = "by hand"
"""Of COLLAB: graphs overlap that share so many nodes of equal degree, of so many or more, and equal
triangles."""
SHARED_NODES, MIN_DEGREE = 40, 50
APART = (DUPLICATES, SCAFFOLD, BY_HAND)
"""Rules that are not on the scale of the others."""
FOLDS = 10
COLOURS = (ORANGE, BLUE, GREEN)
OUT = ROOT / "docs" / "results"
FILE = OUT / "overlap.json"
FIGURE = ROOT / "docs" / "figures" / "overlap.svg"


def rules_of(graphs: Graphs, source: str) -> dict[str, tuple[Any, Any]]:
    """The groups that are kept in one fold, and what is left out of training, by rule."""
    out: dict[str, tuple[Any, Any]] = {"random": (None, None)}
    out[DUPLICATES] = load_groups(DUPLICATES, source, graphs, ReadOptions()), None
    compressed = compress_for_overlap(graphs)
    for strength in STRENGTHS:
        found = find_overlap(compressed, min_strength=strength)
        out[f"{strength:g} × chance"] = overlap_groups(found), found.apart
    if Path(source).is_file():
        out[SCAFFOLD] = load_groups(SCAFFOLD, source, graphs, ReadOptions()), None
    if source == "COLLAB":
        out[BY_HAND] = groups_by_hand(graphs), None
    return out


def groups_by_hand(graphs: Graphs) -> Any:
    """Graphs in one group if a chain of others that share many equal nodes joins them."""
    degrees, triangles = graphs.degrees(), triangle_counts(graphs)
    nodes = np.flatnonzero(degrees >= MIN_DEGREE)
    kinds = np.unique(np.column_stack([degrees, triangles])[nodes], axis=0, return_inverse=True)[1]
    of = np.repeat(np.arange(len(graphs)), graphs.sizes)[nodes]
    known, counts = np.unique(np.column_stack([of, kinds.ravel()]), axis=0, return_counts=True)
    # A count c as c features: their inner product is what two graphs have in common.
    rows, kinds = np.repeat(known, counts, axis=0).T
    number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = len(graphs), (int(kinds.max()) + 1) * (int(counts.max()) + 1)
    columns = kinds * (int(counts.max()) + 1) + number
    features = sparse.csr_array((np.ones(len(rows), np.int32), (rows, columns)), shape=shape)
    return connected_components((features @ features.T) >= SHARED_NODES)[1]


def known() -> dict[str, Any]:
    """What has been measured, by dataset."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def measure(source: str) -> None:
    """Accuracy with its interval, by model and rule, and how many graphs are in groups."""
    graphs = saen.load_dataset(source)
    name = graphs.name or source
    row = known().get(name, {})
    row["overlap"] = saen.overlap(graphs).to_json()
    rules = rules_of(graphs, source)
    row["grouped"] = {
        rule: _share(groups) for rule, (groups, _) in rules.items() if groups is not None
    }
    row["left_out"] = {
        rule: _left_out(graphs, groups, apart)
        for rule, (groups, apart) in rules.items()
        if apart is not None
    }
    models = {
        title: saen.PartCountsClassifier(
            **{"decomposition": "neighbourhoods(depth=2)", **settings}, progress=False
        )
        for title, settings in (MODELS if graphs.node_labels is None else LABELLED).items()
    }
    accuracy = row.setdefault("accuracy", {title: {} for title in models})
    prepared: dict[str, Any] = {}
    # What says most first, in case there is no time for all.
    for rule in sorted(
        rules, key=lambda rule: rule not in ("random", f"{MIN_STRENGTH:g} × chance")
    ):
        for title, model in models.items():
            if rule in accuracy[title]:
                continue
            if title not in prepared:
                prepared[title] = model.prepare(graphs)
            groups, apart = rules[rule]
            evaluation = saen.cross_validate(
                model,
                prepared[title],
                graphs.targets,
                n_repeats=1,
                n_folds=FOLDS,
                groups=groups,
                apart=apart,
            )
            accuracy[title][rule] = evaluation.summary("accuracy")
            say(f"{name}, {title}, {rule}: {percent_interval(accuracy[title][rule])}")
            _keep(name, row)
    _keep(name, row)


def _keep(name: str, row: dict[str, Any]) -> None:
    document = json.dumps(known() | {name: row}, indent=1)
    FILE.write_text(document + "\n", encoding="utf-8")


def _share(groups: Any) -> float:
    numbers = np.unique(groups, return_inverse=True)[1]
    return float((np.bincount(numbers) > 1)[numbers].mean())


def _left_out(graphs: Graphs, groups: Any, apart: Any) -> float:
    """The share of the training graphs that is left out beside the test graphs."""
    [folds] = make_splits(graphs.targets, 1, FOLDS, 0, groups=groups)
    return float(np.mean([1 - len(apart(train, test)) / len(train) for train, test in folds]))


def report(document: dict[str, Any]) -> str:
    """The results as a page."""
    lines = [
        "# Accuracy with overlapping graphs in one fold",
        "",
        "Generated by `python -m benchmarks.overlap`. Accuracy in percent with a corrected 95 %",
        "interval: ten folds of seed 0; random, or with graphs of one group in one fold. Groups",
        "are identical graphs, scaffolds, or graphs that share so many times more rare parts than",
        "chance explains (2 × is the rule of `--groups overlap`); of these, training graphs that",
        "still overlap with a test graph, since a group larger than a fold was split, are left",
        f"out. By hand: chains of graphs that share {SHARED_NODES} nodes of equal degree, "
        f"{MIN_DEGREE} or more, and",
        "equal numbers of triangles. Grouped: the share of the graphs that are in a group with",
        "another one; left out: that of the training graphs.",
    ]
    for name, row in document.items():
        models = row["accuracy"]
        lines += [
            "",
            f"## {name}",
            "",
            f"| folds by | grouped | left out | {' | '.join(models)} |",
            f"|---|---:|---:|{'---|' * len(models)}",
        ]
        for rule in _rules(row):
            shares = (row[kind].get(rule) for kind in ("grouped", "left_out"))
            cells = ["" if share is None else f"{100 * share:.1f} %" for share in shares]
            cells += [percent_interval(scores[rule]) for scores in models.values()]
            lines.append(f"| {rule} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _rules(row: dict[str, Any]) -> list[str]:
    """The rules that all models were measured with, in order of strictness."""
    order = ["random", *(f"{each:g} × chance" for each in STRENGTHS), *APART]
    return [rule for rule in order if all(rule in each for each in row["accuracy"].values())]


def plot(document: dict[str, Any]) -> Any:
    """Accuracy by rule, one panel per dataset."""
    columns = 2
    figure = new_figure(9.0, 3.1 * -(-len(document) // columns))
    for number, (name, row) in enumerate(document.items()):
        axes = figure.add_subplot(-(-len(document) // columns), columns, number + 1)
        rules = _rules(row)
        for shift, (colour, (title, scores)) in enumerate(
            zip(COLOURS, row["accuracy"].items(), strict=True)
        ):
            means = np.array([100 * scores[rule]["mean"] for rule in rules])
            ends = 100 * np.array([scores[rule]["interval"] for rule in rules]).T
            places = np.arange(len(means)) + 0.12 * (shift - 1)
            errors = np.abs(ends - means)
            axes.errorbar(places, means, errors, fmt="o", color=colour, ms=4, elinewidth=0.8)
            n = sum(rule not in APART for rule in rules)
            axes.plot(places[:n], means[:n], color=colour, label=title, linewidth=1.5)
        shown = [rule.replace(" × chance", " ×") for rule in rules]
        axes.set_xticks(range(len(rules)), shown, rotation=30, ha="right", fontsize=8)
        axes.set_title(name, fontsize=10)
        axes.set_ylabel("accuracy (%)", fontsize=9)
        axes.legend(frameon=False, fontsize=8)
        open_frame(axes)
    figure.tight_layout()
    return figure


def main() -> None:
    """Measure the datasets that were named: names, or files of molecules."""
    for source in sys.argv[1:] or DATASETS:
        measure(source)
    document = known()
    (OUT / "overlap.md").write_text(report(document), encoding="utf-8")
    save_figure(plot(document), FIGURE)


if __name__ == "__main__":
    main()
