"""`python -m benchmarks.molecules [SET ...] [--data DIR]`: molecules, against what chemists use.

Five MoleculeNet sets with three scaffold splits each (SET.csv and SET.split0.json, … in DIR; rows
`train` and `valid` are learned from, `test` predicted): the default of saen, preset `counts`,
Morgan fingerprints with a forest, and with LightGBM where it is installed, RDKit descriptors with a
forest; for numbers also the default with scaffolds kept together in inner folds, and how many true
numbers lie inside nominal 90 % intervals. With `--chemprop PROGRAM`, the command of an environment
of its own, chemprop is run with its defaults (it learns from `train`, and keeps the epoch that is
best on `valid`); its predictions are recorded in docs/results/chemprop.json, and read from there
without that option. Every run is a process of its own with one thread; what is done stays in
.benchmarks/molecules, and is not done again. Writes docs/results/molecules.json and .md from all
runs that there are. Nothing is decided by the test parts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

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
CHEMPROP = "chemprop"
RECORDED = OUT / "chemprop.json"
"""Predictions of chemprop, by set and split."""
BOOTSTRAPS = 1000
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


def predict_saen(name: str, preset: str, graphs: Any, train: Any, test: Any) -> dict[str, Any]:
    """Numbers with what is known of their intervals, or probabilities of the second classes.

    And the weights of the candidates that have any.
    """
    kinds: Any = (saen.Regressor, saen.Classifier)
    if preset == "counts":
        kinds = (saen.PartCountsRegressor, saen.PartCountsClassifier)
    scaffolds = murcko_scaffolds(smiles_of(graphs)[train]) if preset == BY_SCAFFOLD else None
    model = kinds[name not in NUMBERS](progress=False)
    model.fit(graphs[train], graphs.targets[train], groups=scaffolds)
    weights = {each["candidate"]: each["weight"] for each in model.tried_ if each.get("weight")}
    if name not in NUMBERS:
        proba: Floats = model.predict_proba(graphs[test])
        predicted = proba[:, 1] if graphs.targets.ndim == 1 else proba
        return {"predicted": predicted, "weights": weights}
    low, high = model.predict_interval(graphs[test])
    X = morgan(graphs)
    shared, sizes = X[test] @ X[train].T, X.sum(axis=1)
    similar = shared / np.maximum(sizes[test][:, None] + sizes[train] - shared, 1)
    return {
        "predicted": (low + high) / 2,
        "radius": (high - low) / 2,
        "similar": similar.max(axis=1),
        "weights": weights,
    }


def truth_of(targets: Any) -> Floats:
    """Targets as numbers, NaN where there is none (of classes, an empty text)."""
    return np.where(targets == "", "nan", targets).astype(float)


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
    for values in truth_of(y).reshape(len(y), -1).T:
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


def predict_chemprop(name: str, split: int, data: Path, program: str) -> Floats:
    """Train chemprop with its defaults, and read what it predicts for the test part."""
    rows = json.loads((data / f"{name}.split{split}.json").read_text(encoding="utf-8"))
    file = (data / f"{name}.csv").resolve()
    with tempfile.TemporaryDirectory() as folder:
        splits, out = Path(folder, "splits.json"), Path(folder, "out")
        named = {"train": rows["train"], "val": rows["valid"], "test": rows["test"]}
        splits.write_text(json.dumps([named]), encoding="utf-8")
        command = [program, "train", "-i", str(file), "--splits-file", str(splits), "-o", str(out)]
        command += ["-t", "regression" if name in NUMBERS else "classification"]
        command += ["--accelerator", "cpu", "--num-workers", "0", "--pytorch-seed", str(split)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = pd.read_csv(out / "model_0" / "test_predictions.csv")
    smiles = pd.read_csv(file)["smiles"].iloc[rows["test"]]
    if found["smiles"].tolist() != smiles.tolist():
        raise ValueError("chemprop predicted other molecules than those of the test part")
    values: Floats = found.drop(columns="smiles").to_numpy(dtype=float)
    return values if values.shape[1] > 1 else values[:, 0]


def version_of(program: str) -> str:
    """The version of chemprop that a program of its environment runs."""
    code = "from importlib.metadata import version; print(version('chemprop'))"
    python = str(Path(program).with_name("python"))
    found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def run_one(
    name: str, split: int, model: str, data: Path, chemprop: str | None = None
) -> dict[str, Any]:
    """Train one model on one split, and predict its test part."""
    graphs = load(name, data)
    train, test = rows_of(name, split, data)
    libraries = {each: version(each) for each in ("saen", "rdkit", "scikit-learn")}
    start = 0.0
    if model in ("default", "counts", BY_SCAFFOLD):
        found = predict_saen(name, model, graphs, train, test)
    elif chemprop is not None and model == CHEMPROP:
        libraries = {CHEMPROP: version_of(chemprop)}
        start = cpu_seconds()
        found = {"predicted": predict_chemprop(name, split, data, chemprop)}
    else:
        X = morgan(graphs) if model.startswith("Morgan") else described(graphs)
        found = {"predicted": predict_columns(name, model, X, graphs.targets, train, test)}
    if "LightGBM" in model:
        libraries["lightgbm"] = version("lightgbm")
    return {
        **{k: v if isinstance(v, dict) else np.asarray(v).tolist() for k, v in found.items()},
        "truth": truth_of(graphs.targets[test]).tolist(),
        "cpu_seconds": cpu_seconds() - start,
        "date": date.today().isoformat(),
        "versions": libraries,
    }


def cpu_seconds() -> float:
    """Of this process since it started, and of those that it ran."""
    return sum(os.times()[:4])


def run_file(name: str, split: int, model: str) -> Path:
    """Where a run is kept."""
    return RUNS / f"{name}-{split}-{model.replace(' + ', '-').replace(' ', '-')}.json"


def run_all(names: list[str], models: list[str], data: Path, chemprop: str | None) -> None:
    """All runs that are not there yet."""
    RUNS.mkdir(parents=True, exist_ok=True)
    for model in models:
        for name in [each for each in names if model != BY_SCAFFOLD or each in NUMBERS]:
            for split in SPLITS:
                file = run_file(name, split, model)
                if file.exists():
                    continue
                say(f"{name}, split {split}: {model}")
                command = [sys.executable, "-m", "benchmarks.molecules", "--data", str(data)]
                command += [] if chemprop is None else ["--chemprop", chemprop]
                environment = {**os.environ, "OMP_NUM_THREADS": "1"}
                subprocess.run(
                    [*command, "--one", name, str(split), model], check=True, env=environment
                )


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


def runs_of(name: str) -> dict[str, dict[int, dict[str, Any]]]:
    """What every model predicted, by model and split; what chemprop did, as it was recorded."""
    found = {
        model: {
            split: json.loads(file.read_text(encoding="utf-8"))
            for split in SPLITS
            if (file := run_file(name, split, model)).exists()
        }
        for model in (*MODELS, CHEMPROP)
    }
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    for text, run in recorded.get(name, {}).items():
        split = int(text)
        if split in found["default"]:
            found[CHEMPROP].setdefault(split, run | {"truth": found["default"][split]["truth"]})
    return {model: own for model, own in found.items() if own}


def results() -> dict[str, Any]:
    """All scores that there are, differences of the default to every peer, and mean ranks.

    Models of which there are no runs keep what was written of them.
    """
    file, document = OUT / "molecules.json", dict[str, Any]()
    before = json.loads(file.read_text(encoding="utf-8"))["sets"] if file.exists() else {}
    for name in SETS:
        runs, rows = runs_of(name), before.get(name, {})
        default = runs.get("default", {})
        for model, own in runs.items():
            pairs = [(default[k], own[k]) for k in own if k in default]
            rows[model] = {
                "scores": [score_of(name, own.get(split)) for split in SPLITS],
                "cpu_seconds": float(np.mean([each["cpu_seconds"] for each in own.values()])),
                "default_less_it": paired(name, pairs) if pairs and model != "default" else None,
                "coverage": coverage(list(own.values())),
                "versions": next(iter(own.values()))["versions"],
                "date": max(each["date"] for each in own.values()),
            }
        if rows:
            document[name] = {each: rows[each] for each in (*MODELS, CHEMPROP) if each in rows}
    ranks, n = mean_ranks(document)
    return {"sets": document, "mean_rank": ranks, "splits_ranked": n}


def score_of(name: str, run: dict[str, Any] | None) -> float | None:
    """The score of a run, None of one that there is not."""
    if run is None:
        return None
    return score(name, np.array(run["truth"], dtype=float), np.array(run["predicted"]))


def mean_ranks(document: dict[str, Any]) -> tuple[dict[str, float], int]:
    """The mean rank of models, 1 the best, over the splits that all were run on, and how many."""
    models = [
        each
        for each in (*MODELS, CHEMPROP)
        if each != BY_SCAFFOLD and any(each in rows for rows in document.values())
    ]
    ranks = []
    for name, rows in document.items():
        for split in SPLITS:
            scores = [rows[each]["scores"][split] if each in rows else None for each in models]
            known = [each for each in scores if each is not None]
            if len(known) == len(models):
                ranks.append(rankdata(np.array(known) * (1 if name in NUMBERS else -1)))
    means = np.mean(ranks, axis=0).tolist() if ranks else []
    return dict(zip(models, means, strict=bool(ranks))), len(ranks)


def report(document: dict[str, Any]) -> str:
    """The results as a page."""
    versions = {
        library: number
        for rows in document["sets"].values()
        for row in rows.values()
        for library, number in row["versions"].items()
    }
    lines = [
        "# Molecules on scaffold splits",
        "",
        "RMSE (less is better) or ROC-AUC (more is better) on the test parts of three scaffold",
        "splits, each learned from its other parts; CPU seconds of one run, with imports. The last",
        "column is the score of the default less that of the row, the mean over the splits, with a",
        "95 % interval over test molecules (bootstrap, paired). chemprop has its defaults: it",
        "learns from the training part, and keeps the epoch that is best on the validation part.",
        "Written by `python -m benchmarks.molecules`, with "
        + ", ".join(f"{library} {number}" for library, number in versions.items())
        + ".",
    ]
    if document["mean_rank"]:
        lines += [
            "",
            f"Mean rank over the {document['splits_ranked']} splits on which all were run "
            "(1 is the best): "
            + ", ".join(
                f"{model} {rank:.1f}"
                for model, rank in sorted(document["mean_rank"].items(), key=lambda each: each[1])
            )
            + ".",
        ]
    for name, rows in document["sets"].items():
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
    """The results of all runs that there are, and what chemprop predicted."""
    document = results()
    (OUT / "molecules.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (OUT / "molecules.md").write_text(report(document), encoding="utf-8")
    predicted = {
        name: {
            split: {key: value for key, value in run.items() if key != "truth"}
            | {"predicted": np.round(run["predicted"], 4).tolist()}
            for split, run in runs_of(name).get(CHEMPROP, {}).items()
        }
        for name in SETS
    }
    if any(predicted.values()):
        RECORDED.write_text(json.dumps(predicted) + "\n", encoding="utf-8")


def main() -> None:
    """Run what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--data", type=Path, default=os.environ.get("SAEN_MOLECULES"))
    parser.add_argument("--models", help="some of them, separated by commas")
    parser.add_argument("--chemprop", metavar="PROGRAM", help="run it, by this command")
    parser.add_argument("--one", nargs=3, metavar=("SET", "SPLIT", "MODEL"))
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the folder of the sets with --data, or set SAEN_MOLECULES")
    if given.one is not None:
        name, split, model = given.one
        done = run_one(name, int(split), model, Path(given.data), given.chemprop)
        file = run_file(name, int(split), model)
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps(done), encoding="utf-8")
        temporary.replace(file)
        return
    models = [each for each in MODELS if "LightGBM" not in each or find_spec("lightgbm")]
    models += [] if given.chemprop is None else [CHEMPROP]
    models = models if given.models is None else given.models.split(",")
    run_all(given.sets or [*SETS], models, Path(given.data), given.chemprop)
    write_pages()


if __name__ == "__main__":
    main()
