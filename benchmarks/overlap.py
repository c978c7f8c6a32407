"""`python -m benchmarks.overlap [DATASET …]`: accuracies with overlapping graphs in one fold.

Ten folds of seed 0: random ones, with duplicates kept together, and with overlapping graphs kept
together (`saen evaluate --groups`), for three models: part counts over degrees and triangles, part
counts over degrees, and a forest over coarse degrees, which memorises less. Writes
docs/results/overlap.json and .md; datasets that are not named keep their rows.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import saen
from benchmarks.measure import ROOT, say
from saen.io.options import ReadOptions
from saen.jobs.groups import load_groups

DATASETS = ("COLLAB", "IMDB-BINARY", "IMDB-MULTI")
GROUPS = ("random", "duplicates", "overlap")
MODELS = {
    "degrees and triangles": {"node_labels": "degree,triangles"},
    "degrees": {"node_labels": "degree"},
    "coarse forest": {"node_labels": "log-degree:1", "model": "forest"},
}
OUT = ROOT / "docs" / "results"


def measure(name: str) -> dict[str, Any]:
    """Accuracy with its interval, by model and groups, and what overlap there is."""
    graphs = saen.load_dataset(name)
    result: dict[str, Any] = {"overlap": saen.overlap(graphs).to_json(), "accuracy": {}}
    for title, settings in MODELS.items():
        model = saen.PartCountsClassifier("neighbourhoods(depth=2)", **settings)
        prepared = model.prepare(graphs)
        for by in GROUPS:
            groups = None
            if by != "random":
                groups = load_groups(by, name, graphs, ReadOptions())
            evaluation = saen.cross_validate(
                model, prepared, graphs.targets, n_repeats=1, n_folds=10, groups=groups
            )
            summary = evaluation.summary("accuracy")
            result["accuracy"].setdefault(title, {})[by] = {
                "mean": summary["mean"],
                "interval": summary["interval"],
            }
            say(f"{name}, {title}, {by}: {100 * summary['mean']:.1f}")
    return result


def report(document: dict[str, Any]) -> str:
    """The results as a page."""
    lines = [
        "# Overlap between training and test",
        "",
        "Accuracy in percent with a corrected 95 % interval: ten folds of seed 0, random, with",
        "identical graphs kept in one fold, and with overlapping graphs kept in one fold.",
        "",
        "| dataset | overlapping, largest group | model | random folds | duplicates together "
        "| overlap together |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in document.items():
        shared = row["overlap"]
        for title, scores in row["accuracy"].items():
            cells = [
                f"{100 * scores[by]['mean']:.1f} "
                f"({' to '.join(f'{100 * end:.1f}' for end in scores[by]['interval'])})"
                for by in GROUPS
            ]
            about = f"{100 * shared['share']:.1f} %, {shared['largest']:,}"
            lines.append(f"| {name} | {about} | {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the datasets that were named."""
    file = OUT / "overlap.json"
    document = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in sys.argv[1:] or DATASETS:
        document[name] = measure(name)
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        (OUT / "overlap.md").write_text(report(document), encoding="utf-8")


if __name__ == "__main__":
    main()
