"""`python -m benchmarks.molecules [SET ...] [--data DIR]`: molecules, against what chemists use.

Five MoleculeNet sets with three scaffold splits each (SET.csv and SET.split0.json, … in DIR; rows
`train` and `valid` are learned from, `test` predicted): the default of saen, preset `counts`,
Morgan fingerprints with a forest, and with LightGBM where it is installed, RDKit descriptors with a
forest, and chemprop as it was recorded; for numbers also the default with scaffolds kept together
in inner folds, and how many true numbers lie inside nominal 90 % intervals. Every run is a process
of its own with one thread; what is done stays in .benchmarks/molecules, and is not done again.
Writes docs/results/molecules.json and .md from all runs that there are. Nothing is decided by the
test parts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saen
from benchmarks.measure import ROOT, say
from saen.io.libraries.rdkit import murcko_scaffolds

RUNS = ROOT / ".benchmarks" / "molecules"
OUT = ROOT / "docs" / "results"
NUMBERS = ("freesolv", "esol")
SETS = (*NUMBERS, "bace", "bbbp", "tox21")
SPLITS = (0, 1, 2)
BY_SCAFFOLD = "default by scaffold"
MODELS = (
    "default",
    "counts",
    BY_SCAFFOLD,
    "descriptors + forest",
    "Morgan + forest",
    "Morgan + LightGBM",
)
RECORDED = {
    "chemprop 2.3": {
        "date": "2026-11",
        "freesolv": ([2.16, 2.58, 1.52], 49),
        "esol": ([0.804, 0.723, None], 92),
        "bace": ([0.811, None, None], 303),
        "bbbp": ([0.935, None, None], 236),
    }
}
"""Scores on the three splits and CPU seconds of one, of runs of other software elsewhere."""
BOOTSTRAPS = 2000
Floats = NDArray[np.float64]


# -- one run -------------------------------------------------------------------------------------


def load(name: str, data: Path) -> Any:
    """Molecules with targets: numbers, classes, or several classes with gaps."""
    file = data / f"{name}.csv"
    with file.open(encoding="utf-8") as text:
        columns = text.readline().strip().split(",")[1:]
    task: Any = "regression" if name in NUMBERS else "classification"
    return saen.load_dataset(file, task=task, target=",".join(columns))


def rows_of(name: str, split: int, data: Path) -> tuple[Any, Any]:
    """What is learned from, and what is predicted."""
    rows = json.loads((data / f"{name}.split{split}.json").read_text(encoding="utf-8"))
    return np.array(sorted(rows["train"] + rows["valid"])), np.array(rows["test"])


def predict_saen(name: str, preset: str, graphs: Any, train: Any, test: Any) -> dict[str, Floats]:
    """Numbers with what is known of their intervals, or probabilities of the second classes."""
    kinds: Any = (saen.Regressor, saen.Classifier)
    if preset == "counts":
        kinds = (saen.PartCountsRegressor, saen.PartCountsClassifier)
    scaffolds = murcko_scaffolds(smiles_of(graphs)[train]) if preset == BY_SCAFFOLD else None
    model = kinds[name not in NUMBERS](progress=False)
    model.fit(graphs[train], graphs.targets[train], groups=scaffolds)
    if name not in NUMBERS:
        proba: Floats = model.predict_proba(graphs[test])
        return {"predicted": proba[:, 1] if graphs.targets.ndim == 1 else proba}
    low, high = model.predict_interval(graphs[test])
    X = morgan(graphs)
    shared, sizes = X[test] @ X[train].T, X.sum(axis=1)
    similar = shared / np.maximum(sizes[test][:, None] + sizes[train] - shared, 1)
    return {
        "predicted": (low + high) / 2,
        "radius": (high - low) / 2,
        "similar": similar.max(axis=1),
    }


def smiles_of(graphs: Any) -> Any:
    """The SMILES of molecules, (n,)."""
    return np.asarray((graphs.extra or {}).get("smiles", graphs.ids)).astype(str)


def morgan(graphs: Any) -> Floats:
    """Fingerprints of radius 2, (n, 2048)."""
    from rdkit import Chem
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    generator = GetMorganGenerator(radius=2, fpSize=2048)
    molecules = [Chem.MolFromSmiles(text) for text in smiles_of(graphs).tolist()]
    return np.stack([generator.GetFingerprintAsNumPy(each) for each in molecules]).astype(float)


def described(graphs: Any) -> Floats:
    """RDKit's descriptors; of what is not finite, zero."""
    from rdkit import Chem
    from rdkit.Chem import Descriptors

    rows = [
        [function(molecule) for _, function in Descriptors.descList]
        for molecule in map(Chem.MolFromSmiles, smiles_of(graphs).tolist())
    ]
    values = np.clip(np.array(rows, dtype=float), -1e30, 1e30)
    return np.where(np.isfinite(values), values, 0.0).astype(np.float32)


def predict_columns(name: str, model: str, X: Floats, y: Any, train: Any, test: Any) -> Floats:
    """A model of scikit-learn or LightGBM for every target, on the rows where it is known."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    regression = name in NUMBERS
    columns = []
    for target in y.reshape(len(y), -1).T:
        values = target.astype(float)
        rows = train[np.isfinite(values[train])]
        if "LightGBM" in model:
            from lightgbm import LGBMClassifier, LGBMRegressor

            kind = LGBMRegressor if regression else LGBMClassifier
            machine: Any = kind(n_estimators=300, n_jobs=1, random_state=0, verbose=-1)
        else:
            kind = RandomForestRegressor if regression else RandomForestClassifier
            machine = kind(500, n_jobs=1, random_state=0)
        machine.fit(X[rows], values[rows] if regression else values[rows].astype(int))
        predicted = machine.predict(X[test]) if regression else machine.predict_proba(X[test])[:, 1]
        columns.append(predicted)
    result = np.stack(columns, axis=1)
    return result if y.ndim == 2 else result[:, 0]


def run_one(name: str, split: int, model: str, data: Path) -> dict[str, Any]:
    """Train one model on one split, and predict its test part."""
    graphs = load(name, data)
    train, test = rows_of(name, split, data)
    if model in ("default", "counts", BY_SCAFFOLD):
        found = predict_saen(name, model, graphs, train, test)
    else:
        X = morgan(graphs) if model.startswith("Morgan") else described(graphs)
        found = {"predicted": predict_columns(name, model, X, graphs.targets, train, test)}
    times = os.times()
    libraries = ("saen", "rdkit", "scikit-learn")
    return {
        **{key: np.asarray(values).tolist() for key, values in found.items()},
        "truth": np.asarray(graphs.targets[test], dtype=float).tolist(),
        "cpu_seconds": times.user + times.system,
        "date": date.today().isoformat(),
        "versions": {each: version(each) for each in libraries},
    }


def run_file(name: str, split: int, model: str) -> Path:
    """Where a run is kept."""
    return RUNS / f"{name}-{split}-{model.replace(' + ', '-').replace(' ', '-')}.json"


def run_all(names: list[str], data: Path) -> None:
    """All runs that are not there yet, the quick ones first; the pages after each."""
    models = [each for each in MODELS if "LightGBM" not in each or find_spec("lightgbm")]
    RUNS.mkdir(parents=True, exist_ok=True)
    for model in models:
        for name in [each for each in names if model != BY_SCAFFOLD or each in NUMBERS]:
            for split in SPLITS:
                file = run_file(name, split, model)
                if file.exists():
                    continue
                say(f"{name}, split {split}: {model}")
                command = [sys.executable, "-m", "benchmarks.molecules", "--data", str(data)]
                environment = {**os.environ, "OMP_NUM_THREADS": "1"}
                subprocess.run(
                    [*command, "--one", name, str(split), model], check=True, env=environment
                )
                write_pages()


# -- scores --------------------------------------------------------------------------------------


def score(name: str, truth: Floats, predicted: Floats) -> float:
    """RMSE of numbers; ROC-AUC of classes, of several targets the mean where it is defined."""
    if name in NUMBERS:
        return float(np.sqrt(np.mean((truth - predicted) ** 2)))
    columns = zip(truth.reshape(len(truth), -1).T, predicted.reshape(len(truth), -1).T, strict=True)
    values = [roc_auc(*pair) for pair in columns]
    return float(np.nanmean(values))


def roc_auc(truth: Floats, predicted: Floats) -> float:
    """The share of pairs of two classes in the right order, NaN without both."""
    from scipy.stats import rankdata

    known = np.isfinite(truth)
    positive, ranks = truth[known] == 1, rankdata(predicted[known])
    n, m = int(positive.sum()), int((~positive).sum())
    return (ranks[positive].sum() - n * (n + 1) / 2) / (n * m) if n and m else np.nan


def paired(name: str, runs: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[float]:
    """The mean difference in score of two models, with its 95 % interval over test molecules."""
    rng = np.random.default_rng(0)
    means = []
    arrays = [
        [np.array(each[key]) for key in ("truth", "predicted")] + [np.array(other["predicted"])]
        for each, other in runs
    ]
    for number in range(BOOTSTRAPS + 1):
        found = []
        for truth, own, peer in arrays:
            n = len(truth)
            rows = np.arange(n) if number == 0 else rng.integers(n, size=n)
            found.append(score(name, truth[rows], own[rows]) - score(name, truth[rows], peer[rows]))
        means.append(np.mean(found))
    low, high = np.nanquantile(means[1:], [0.025, 0.975])
    return [float(means[0]), float(low), float(high)]


def coverage(runs: list[dict[str, Any]]) -> list[float] | None:
    """The shares of true numbers inside intervals, and of those least similar to training."""
    if "radius" not in runs[0]:
        return None
    columns = ("truth", "predicted", "radius", "similar")
    truth, predicted, radius, similar = (np.concatenate([r[key] for r in runs]) for key in columns)
    inside = np.abs(truth - predicted) <= radius
    far = similar <= np.quantile(similar, 1 / 3)
    return [float(inside.mean()), float(inside[far].mean()), float(2 * np.median(radius))]


def results() -> dict[str, Any]:
    """All scores that there are, and differences of the default to every peer."""
    document: dict[str, Any] = {}
    for name in SETS:
        runs = {
            model: {
                split: json.loads(file.read_text(encoding="utf-8"))
                for split in SPLITS
                if (file := run_file(name, split, model)).exists()
            }
            for model in MODELS
        }
        rows: dict[str, Any] = {}
        for model, own in runs.items():
            if not own:
                continue
            pairs = [(runs["default"][k], own[k]) for k in own if k in runs["default"]]
            known = [own.get(split) for split in SPLITS]
            rows[model] = {
                "scores": [
                    each and score(name, np.array(each["truth"]), np.array(each["predicted"]))
                    for each in known
                ],
                "cpu_seconds": float(np.mean([each["cpu_seconds"] for each in own.values()])),
                "default_less_it": paired(name, pairs) if pairs and model != "default" else None,
                "coverage": coverage(list(own.values())),
                "versions": next(iter(own.values()))["versions"],
                "date": max(each["date"] for each in own.values()),
            }
        for model, known_elsewhere in RECORDED.items():
            if name in known_elsewhere and rows:
                scores, seconds = known_elsewhere[name]
                rows[model] = {
                    "scores": scores,
                    "cpu_seconds": seconds,
                    "default_less_it": None,
                    "date": f"recorded {known_elsewhere['date']}",
                }
        if rows:
            document[name] = rows
    return document


def report(document: dict[str, Any]) -> str:
    """The results as a page."""
    lines = [
        "# Molecules on scaffold splits",
        "",
        "RMSE (less is better) or ROC-AUC (more is better) on the test parts of three scaffold",
        "splits, each learned from its other parts; CPU seconds of one run, with imports. The last",
        "column is the score of the default less that of the row, the mean over the splits, with a",
        "95 % interval over test molecules (bootstrap, paired). Written by",
        "`python -m benchmarks.molecules`. chemprop was not run here: its scores are recorded from",
        "another run, on the same splits.",
    ]
    for name, rows in document.items():
        less = name in NUMBERS
        lines += [
            "",
            f"## {name} ({'RMSE' if less else 'ROC-AUC'})",
            "",
            "| model | split 0 | split 1 | split 2 | mean | CPU s | default less it |",
            "|---|---:|---:|---:|---:|---:|---|",
        ]
        for model, row in rows.items():
            cells = ["–" if each is None else f"{each:.3f}" for each in row["scores"]]
            whole = None not in row["scores"]
            mean = f"{np.mean(row['scores']):.3f}" if whole else "–"
            gap = row["default_less_it"]
            shown = "" if gap is None else f"{gap[0]:+.3f} ({gap[1]:+.3f} to {gap[2]:+.3f})"
            lines.append(
                f"| {model} | {' | '.join(cells)} | {mean} | {row['cpu_seconds']:.0f} | {shown} |"
            )
        covered = {model: row.get("coverage") for model, row in rows.items()}
        lines += [""] if less else []
        lines += [
            f"- {model}: {100 * each[0]:.0f} % of true numbers lie inside nominal 90 % intervals "
            f"(median width {each[2]:.2f}), of the third of the molecules that is least similar to "
            f"the training part {100 * each[1]:.0f} %"
            for model, each in covered.items()
            if each is not None
        ]
    return "\n".join(lines) + "\n"


def write_pages() -> None:
    """The results of all runs that there are."""
    document = results()
    (OUT / "molecules.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (OUT / "molecules.md").write_text(report(document), encoding="utf-8")


def main() -> None:
    """Run what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--data", type=Path, default=os.environ.get("SAEN_MOLECULES"))
    parser.add_argument("--one", nargs=3, metavar=("SET", "SPLIT", "MODEL"))
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the folder of the sets with --data, or set SAEN_MOLECULES")
    if given.one is not None:
        name, split, model = given.one
        done = run_one(name, int(split), model, Path(given.data))
        file = run_file(name, int(split), model)
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps(done), encoding="utf-8")
        temporary.replace(file)
        return
    run_all(given.sets or [*SETS], Path(given.data))
    write_pages()


if __name__ == "__main__":
    main()
