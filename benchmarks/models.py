"""`python -m benchmarks.models`: accuracy and time of whole models beside those of others.

`best`, networks alone and part counts alone, local degree profiles with a random forest, and
GraKeL's Weisfeiler-Lehman optimal-assignment kernel with a support vector machine, on the same ten
folds (on large datasets on the first of them); and molecules read from a table of SMILES, beside
Morgan fingerprints with a random forest. Writes docs/results/models.json and .md, after every
measurement.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.commands import command
from benchmarks.data import dataset_graphs
from benchmarks.machine import describe
from benchmarks.measure import ROOT, MeasurementError, Stopwatch, measure, say
from benchmarks.report import quantity, table
from saen import Graphs

DATASETS = ("MUTAG", "PTC", "IMDB-BINARY", "IMDB-MULTI", "PROTEINS")
LARGE = ("REDDIT-BINARY", "DD", "COLLAB", "REDDIT-MULTI-5K", "REDDIT-MULTI-12K")
"""Measured on the first fold alone."""
FULL = (*DATASETS, "NCI1", *LARGE)
FOLDS, SEED = 10, 0
EVALUATE = "saen evaluate {data} --preset {preset} --seed 0 {splits}"
KERNEL_LIMIT, LARGE_KERNEL_LIMIT = 900, 120
"""Seconds after which GraKeL is stopped: its kernel compares all pairs, for one fold, too."""
BINS = 32
"""Of the histograms of local degree profiles."""
TREES = 500
WL_ROUNDS = 5
COSTS = (0.1, 1.0, 10.0, 100.0)
WHOLE = "saen, preset counts, all ten folds"
"""On the largest dataset."""
MOLECULES = "CHEMBL2321810"
"""Molecules with measured activities that RDKit's package holds."""
MOLECULE_FOLDS = 5

Floats = NDArray[np.float64]


# -- what is measured, each in its own process -------------------------------------------------


def preset(
    data: str, preset: str, folds: int, metric: str, *, whole: bool = False
) -> dict[str, Any]:
    """A `saen evaluate`, without imports, as for the others."""
    import tempfile

    import saen.learning.evaluation  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        splits = f"--repeats 1 --folds {folds}"
        if data in LARGE and not whole:
            ((train, test),) = folds_of(dataset_graphs(data))
            file = Path(folder) / "first.json"
            split = {"train": train.tolist(), "test": test.tolist()}
            file.write_text(json.dumps(split), encoding="utf-8")
            splits = f"--splits {file}"
        result = command(EVALUATE.format(data=data, preset=preset, splits=splits), folder)
    return {"seconds": result["seconds"], "score": result["printed"][metric]["mean"]}


def folds_of(graphs: Graphs) -> list[Any]:
    """The folds of `saen evaluate`; of large datasets the first."""
    from saen.learning.splits import make_splits

    folds = make_splits(np.asarray(graphs.targets).astype(str), 1, FOLDS, seed=SEED)[0]
    return folds[:1] if graphs.name in LARGE else folds


def degree_forest(dataset: str) -> dict[str, Any]:
    """Histograms of local degree profiles (Cai and Wang, 2018), and a random forest."""
    from sklearn.ensemble import RandomForestClassifier

    graphs, watch = dataset_graphs(dataset), Stopwatch()
    features = watch("features", degree_profiles, graphs)

    def score(train: Any, test: Any, y: Any) -> float:
        forest = RandomForestClassifier(TREES, random_state=0).fit(features[train], y[train])
        return float(forest.score(features[test], y[test]))

    return watch_folds(graphs, score, watch)


def degree_profiles(graphs: Graphs) -> Floats:
    """Histograms of the degrees of nodes, and of the least, largest, mean and deviating degree of
    their neighbours, on a logarithmic scale; shape (graphs, 5 · BINS).
    """
    from saen._util.arrays import segment_ids

    near = graphs.without_loops().adjacency().astype(np.float64)
    degrees = np.diff(near.indptr).astype(np.float64)
    own = degrees[near.indices]
    count = np.maximum(degrees, 1)
    starts = np.minimum(near.indptr[:-1], max(len(own) - 1, 0))
    empty = degrees == 0
    mean = near @ degrees / count
    spread = np.sqrt(np.maximum(near @ degrees**2 / count - mean**2, 0))
    least, most = (np.where(empty, 0, f.reduceat(own, starts)) for f in (np.minimum, np.maximum))
    owner = segment_ids(graphs.node_offsets)
    columns = []
    for values in (degrees, least, most, mean, spread):
        logs = np.log1p(values)
        places = np.minimum((logs / max(logs.max(), 1e-9) * BINS).astype(np.int64), BINS - 1)
        codes = owner * BINS + places
        columns.append(np.bincount(codes, minlength=len(graphs) * BINS).reshape(len(graphs), BINS))
    return np.hstack(columns).astype(np.float64)


def optimal_assignment(dataset: str) -> dict[str, Any]:
    """GraKeL's kernel, and a support vector machine with C chosen on inner folds."""
    from grakel.kernels import (  # type: ignore[import-untyped]
        WeisfeilerLehmanOptimalAssignment,
    )
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    from benchmarks.peers import grakel_graphs, labelled

    graphs, watch = labelled(dataset_graphs(dataset)), Stopwatch()
    kernel = WeisfeilerLehmanOptimalAssignment(n_iter=WL_ROUNDS, normalize=True)
    gram = watch("kernel", kernel.fit_transform, grakel_graphs(graphs))

    def score(train: Any, test: Any, y: Any) -> float:
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": list(COSTS)}, cv=3)
        search.fit(gram[np.ix_(train, train)], y[train])
        return float(search.score(gram[np.ix_(test, train)], y[test]))

    return watch_folds(graphs, score, watch)


def watch_folds(
    graphs: Graphs, score: Callable[[Any, Any, Any], float], watch: Stopwatch
) -> dict[str, Any]:
    """The mean score of the folds."""
    y = np.unique(np.asarray(graphs.targets), return_inverse=True)[1]
    folds = folds_of(graphs)
    scores = watch("folds", lambda: [score(train, test, y) for train, test in folds])
    return {"seconds": watch.seconds, "score": float(np.mean(scores))}


def fingerprint_forest(data: str, folds: int) -> dict[str, Any]:
    """Morgan fingerprints (radius 2, 2048 bits), and a random forest: R²."""
    from rdkit import Chem
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.metrics import r2_score

    from saen.learning.splits import make_splits

    with Path(data).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    y, watch = np.array([float(row["target"]) for row in rows]), Stopwatch()

    def features() -> Floats:
        generator = GetMorganGenerator(radius=2, fpSize=2048)
        molecules = [Chem.MolFromSmiles(row["smiles"]) for row in rows]
        return np.stack([generator.GetFingerprintAsNumPy(each) for each in molecules])

    X = watch("features", features)

    def score(train: Any, test: Any) -> float:
        forest = RandomForestRegressor(TREES, random_state=0).fit(X[train], y[train])
        return float(r2_score(y[test], forest.predict(X[test])))

    splits = make_splits(y, 1, folds, seed=SEED)[0]
    scores = watch("folds", lambda: [score(*split) for split in splits])
    return {"seconds": watch.seconds, "score": float(np.mean(scores))}


# -- the report --------------------------------------------------------------------------------


def write_molecules(path: Path) -> None:
    """The molecules as a table with the columns id, smiles and target."""
    from rdkit import RDConfig

    folder = Path(RDConfig.RDContribDir) / "FreeWilson" / "data"
    lines = (folder / f"{MOLECULES}.smi").read_text(encoding="utf-8").split("\n")
    smiles = {name: text for text, name in (line.split() for line in lines if line.strip())}
    activities = csv.DictReader((folder / f"{MOLECULES}_act.csv").open(encoding="utf-8"))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "smiles", "target"])
        for row in activities:
            if row["Name"] in smiles:
                writer.writerow([row["Name"], smiles[row["Name"]], row["Act"]])


def cases(names: list[str], molecules: Path) -> dict[str, dict[str, Callable[[], dict[str, Any]]]]:
    """What is measured, by dataset and title."""
    listed: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {}
    for name in names:
        listed[name] = {
            f"saen, preset {each}": partial(
                measure, preset, data=name, preset=each, folds=FOLDS, metric="accuracy"
            )
            for each in ("best", "network", "counts")
        } | {
            "local degree profiles, random forest": partial(measure, degree_forest, dataset=name),
            "WL optimal assignment (GraKeL), SVM": partial(
                measure,
                optimal_assignment,
                dataset=name,
                limit=LARGE_KERNEL_LIMIT if name in LARGE else KERNEL_LIMIT,
            ),
        }
        if name == LARGE[-1]:
            listed[name][WHOLE] = partial(
                measure,
                preset,
                data=name,
                preset="counts",
                folds=FOLDS,
                metric="accuracy",
                whole=True,
            )
    if molecules.exists():
        listed[MOLECULES] = {
            f"saen, preset {each}": partial(
                measure,
                preset,
                data=str(molecules),
                preset=each,
                folds=MOLECULE_FOLDS,
                metric="r2",
            )
            for each in ("best", "network", "counts")
        } | {
            "Morgan fingerprints, random forest": partial(
                measure, fingerprint_forest, data=str(molecules), folds=MOLECULE_FOLDS
            )
        }
    return listed


def score(name: str, row: dict[str, Any]) -> str:
    """The score of a row, or why there is none."""
    if "failed" in row:
        return (
            str(row["failed"]).partition("MemoryError: ")[2].partition(" for ")[0] or row["failed"]
        )
    return f"{row['score']:.3f}" if name == MOLECULES else f"{100 * row['score']:.1f} %"


def markdown(document: dict[str, Any]) -> str:
    """The results as a page."""
    rows = [
        (
            f"{name}, first fold" if name in LARGE and title != WHOLE else name,
            title,
            score(name, row),
            quantity(row["seconds"]["total"], "s") if "seconds" in row else "",
            quantity(row["cpu_seconds"], "s") if "seconds" in row else "",
        )
        for name, found in document["rows"].items()
        for title, row in found.items()
    ]
    machine = document["machine"]
    molecules = [
        f"{MOLECULES}: 1,017 molecules with measured activities, from the package of RDKit,",
        f"read as a table of SMILES; R² of {MOLECULE_FOLDS} folds.",
    ]
    return "\n".join(
        [
            "# Whole models",
            "",
            f"Mean test accuracy of one {FOLDS}-fold cross-validation with seed {SEED}, the same",
            "folds for all (of large datasets the first one alone: one training of a whole model),",
            "and the seconds that all of it takes, choices on inner folds included, imports left",
            "out. `best` and `counts` choose inside every training part, the",
            f"support vector machine its C ({', '.join(f'{c:g}' for c in COSTS)}) there, too; the",
            f"forests have {TREES} trees and nothing to choose.",
            *(molecules if MOLECULES in document["rows"] else ()),
            "Written by `python -m benchmarks.models`, on",
            f"{machine['cores']} cores of {machine.get('cpu', 'a CPU')}; CPU seconds far above or",
            "below the seconds are those of several threads or other processes, or of a busy",
            "machine.",
            "",
            table(("dataset", "model", "score", "seconds", "CPU seconds"), rows, words=2),
            "",
        ]
    )


def main() -> None:
    """Measure what was asked for, beside what is known already."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help="all small ones if none")
    parser.add_argument("--full", action="store_true", help="NCI1 and the large ones, too")
    parser.add_argument("--only", default="", help="models with this in their title")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    options = parser.parse_args()
    names = options.datasets or [*(FULL if options.full else DATASETS), MOLECULES]
    molecules = ROOT / ".benchmarks" / f"{MOLECULES}.csv"
    if MOLECULES in names:
        molecules.parent.mkdir(exist_ok=True)
        write_molecules(molecules)
    file = options.out / "models.json"
    document = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"rows": {}}
    document["machine"] = describe()
    listed = cases([name for name in names if name != MOLECULES], molecules)
    for name in names:
        say(name)
        for title, case in listed[name].items():
            if options.only not in title:
                continue
            try:
                row = case()
            except MeasurementError as error:
                row = {"failed": str(error)}
            document["rows"].setdefault(name, {})[title] = row
            file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            (options.out / "models.md").write_text(markdown(document), encoding="utf-8")


if __name__ == "__main__":
    # Under its own name, by which the processes of measurements import it.
    from benchmarks.models import main as run

    run()
