"""`python -m benchmarks.untouched [FOLDER]`: the default on datasets that decided nothing.

No default, candidate or setting was chosen by looking at these data. They come with packages that
the tests install (RDKit, GraKeL, scikit-learn, networkx, Python itself), and from FOLDER, which has
tables of molecules (bace, bbbp, esol, freesolv, tox21; those that are missing are left out), of
which scaffold splits had been looked at when the candidates for molecules were chosen. Each
is run once, ten folds of seed 0 (nine of Cuneiform, whose classes are that small), and listed
whether good or bad. Writes docs/results/untouched.json and .md; what is in untouched.json already
is not run again.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx
import numpy as np

import saen
from benchmarks.measure import ROOT, say
from benchmarks.models import MOLECULES, write_molecules
from saen.data.graphs import Graphs
from saen.io.sources.stdlib import stdlib_functions
from saen.learning.problem import Problem
from saen.paper.reproduce import percent_interval

OUT = ROOT / "docs" / "results"
FILE = OUT / "untouched.json"
FOLDS = 10
MAX_TEXT_ROWS = 5000


def _table(rows: list[tuple[str, Any]]) -> Any:
    """Molecules with targets, as read from a table of SMILES."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "molecules.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["smiles", "target"])
            writer.writerows(rows)
        return saen.load_dataset(path)


def activities() -> Any:
    """Measured activities of an analogue series, of RDKit's example of Free-Wilson analysis."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "molecules.csv"
        write_molecules(path)
        return saen.load_dataset(path)


def surfaces() -> Any:
    """Topological polar surface areas of molecules of the NCI."""
    from rdkit import RDConfig

    lines = (Path(RDConfig.RDDataDir) / "NCI" / "first_5k.tpsa.csv").read_text("utf-8").split("\n")
    pairs = (line.rsplit(",", 1) for line in lines if line and not line.startswith("#"))
    return _readable([(smiles, float(area)) for smiles, area in pairs][:MAX_TEXT_ROWS])


def partitions() -> Any:
    """Octanol-water partition coefficients (Daylight's ClogP) of 200 molecules of the NCI."""
    from rdkit import Chem, RDConfig

    path = Path(RDConfig.RDDataDir) / "NCI" / "first_200.props.sdf"
    found = [each.GetPropsAsDict() for each in Chem.SDMolSupplier(str(path)) if each is not None]
    key = "DAYLIGHT_CLOGP"
    return _readable([(each["SMILES"], float(each[key])) for each in found if key in each])


def synthesis() -> Any:
    """Synthetic accessibility scores of a hundred compounds."""
    from rdkit import RDConfig

    path = Path(RDConfig.RDContribDir) / "SA_Score" / "data" / "zim.100.txt"
    rows = csv.DictReader(path.open(encoding="utf-8"), delimiter="\t")
    return _readable([(row["smiles"], float(row["sa_score"])) for row in rows])


def energies() -> Any:
    """Force-field energies of conformations of EGFR's ligands."""
    found = _ligands("PBF/testData/egfr.sdf")
    return _table(
        [(smiles, float(each["r_mmffld_Potential_Energy-OPLS_2005"])) for smiles, each in found]
    )


def proteins() -> Any:
    """Ligands of three proteins (EGFR, CDK2, CHEMBL11265): which is it."""
    from rdkit import RDConfig

    actives = Path(RDConfig.RDContribDir) / "fraggle" / "data" / "ChEMBL_11265_actives.smi"
    rows = [(line.split()[0], "CHEMBL11265") for line in actives.read_text("utf-8").splitlines()]
    rows += [(smiles, "EGFR") for smiles, _ in _ligands("PBF/testData/egfr.sdf")]
    rows += [(smiles, "CDK2") for smiles, _ in _ligands("Fastcluster/testdata/cdk2.sdf")]
    return _readable(rows)


def _ligands(file: str) -> list[tuple[str, dict[str, Any]]]:
    """SMILES and properties of the molecules of an SDF that RDKit's contributions bring."""
    from rdkit import Chem, RDConfig

    found = Chem.SDMolSupplier(str(Path(RDConfig.RDContribDir) / file))
    return [(Chem.MolToSmiles(each), each.GetPropsAsDict()) for each in found if each is not None]


def _readable(rows: list[tuple[str, Any]]) -> Any:
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        return _table([row for row in rows if Chem.MolFromSmiles(row[0]) is not None])


def cuneiform() -> Any:
    """Cuneiform signs of thirty kinds, as graphs of their wedges, in GraKeL's package."""
    package = find_spec("grakel")
    assert package is not None
    assert package.origin is not None
    return saen.load_dataset(Path(package.origin).parent / "tests" / "data" / "Cuneiform")


def digits() -> Any:
    """Handwritten digits of 8 × 8 pixels, as grids of grey levels with edges right and down."""
    from sklearn.datasets import load_digits

    images, targets = load_digits(return_X_y=True)
    place = np.arange(64).reshape(8, 8)
    right = np.column_stack([place[:, :-1].ravel(), place[:, 1:].ravel()])
    down = np.column_stack([place[:-1].ravel(), place[1:].ravel()])
    grid = np.concatenate([right, down])
    n = len(images)
    edges = (grid + 64 * np.arange(n)[:, None, None]).reshape(-1, 2)
    directions = np.repeat([0, 1], [len(right), len(down)])
    return Graphs.from_edges(
        edges,
        np.full(n, 64),
        node_labels=(images.ravel() // 4).astype(np.int64),
        edge_labels=np.tile(directions, n),
        directed=True,
        targets=targets.astype(str),
        name="digits",
    )


def planarity() -> Any:
    """All graphs of up to seven nodes (networkx's atlas): planar or not."""
    graphs = [graph for graph in nx.graph_atlas_g() if len(graph) > 3]
    targets = ["planar" if nx.check_planarity(graph)[0] else "not planar" for graph in graphs]
    return saen.from_networkx(graphs).with_targets(np.array(targets))


def connectivity() -> Any:
    """Algebraic connectivity of all connected graphs of up to seven nodes (networkx's atlas)."""
    graphs = [each for each in nx.graph_atlas_g() if len(each) > 3 and nx.is_connected(each)]
    targets = [float(nx.laplacian_spectrum(each)[1]) for each in graphs]
    return saen.from_networkx(graphs).with_targets(np.array(targets))


def functions() -> Any:
    """Functions of Python's standard library: which package they are from."""
    return stdlib_functions()


BUILT_IN: dict[str, Callable[[], Any]] = {
    "SA scores": synthesis,
    "NCI ClogP": partitions,
    "Cuneiform": cuneiform,
    "EGFR energies": energies,
    "ligands": proteins,
    "connectivity": connectivity,
    "planarity": planarity,
    "stdlib-functions": functions,
    "digits": digits,
    MOLECULES: activities,
    "NCI surface areas": surfaces,
}
TABLES = {
    "freesolv": "Energies of hydration of molecules, in kcal/mol (MoleculeNet).",
    "esol": "Solubilities of molecules in water, in decades (MoleculeNet).",
    "bace": "Inhibitors of β-secretase 1 or not (MoleculeNet).",
    "bbbp": "Molecules that enter the brain or not (MoleculeNet).",
    "tox21": "Molecules toxic in twelve assays, with gaps (MoleculeNet).",
}


def measure(data: Any) -> dict[str, Any]:
    """Ten folds of the default, beside a constant prediction."""
    regression = data.targets.dtype.kind == "f"
    model = (saen.Regressor if regression else saen.Classifier)(
        **({} if isinstance(data, Graphs) else {"decomposition": "nested"}), progress=False
    )
    targets = Problem.of(data.targets, regression=regression, names=data.target_names)
    folds = FOLDS
    if not regression and data.targets.ndim == 1:
        folds = min(FOLDS, int(np.unique(data.targets, return_counts=True)[1].max()))
    evaluation = saen.cross_validate(model, data, targets, n_repeats=1, n_folds=folds)
    several = data.targets.ndim == 2
    metric = "mae" if regression else "roc_auc" if several else "accuracy"
    document = evaluation.to_json()
    return {
        "examples": len(data),
        "metric": metric,
        "score": evaluation.summary(metric),
        "baseline": document.get("mae_of_mean", document.get("majority", 0.5)),
        "duplicates": document["duplicates"]["share"],
        "overlap": saen.overlap(data).share if isinstance(data, Graphs) else None,
    }


def report(document: dict[str, Any]) -> str:
    """The results as a page."""
    lines = [
        "# Datasets that decided nothing",
        "",
        "Generated by `python -m benchmarks.untouched`: the default of `saen train`, ten folds of",
        "seed 0, run once on data that no default was chosen on, and listed whether good or bad",
        "(of the MoleculeNet sets, scaffold splits had been looked at when the candidates for",
        "molecules were chosen).",
        "Accuracy and area under the ROC curve in percent (more is better) or mean absolute error",
        "(less is better), with a corrected 95 % interval; beside it the majority class, chance,",
        "or the mean of the training targets. Overlap: the share of graphs that share more rare",
        "parts with another graph than chance explains.",
        "",
        "| dataset | what | examples | metric | score | constant prediction | duplicates "
        "| overlap |",
        "|---|---|---:|---|---:|---:|---:|---:|",
    ]
    for name, row in document.items():
        score, baseline = row["score"], row["baseline"]
        low, high = score["interval"]
        shown = f"{score['mean']:.3g} ({low:.3g} to {high:.3g})", f"{baseline:.3g}"
        if row["metric"] != "mae":
            shown = percent_interval(score), f"{100 * baseline:.1f}"
        overlap = "" if row["overlap"] is None else f"{100 * row['overlap']:.1f} %"
        lines.append(
            f"| {name} | {row['what']} | {row['examples']:,} | {row['metric']} | {shown[0]} "
            f"| {shown[1]} | {100 * row['duplicates']:.1f} % | {overlap} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what has not been run yet."""
    document = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    cases = {name: (load, load.__doc__ or "") for name, load in BUILT_IN.items()}
    for name, what in TABLES.items():
        if folder is not None and (folder / f"{name}.csv").exists():
            cases[name] = (lambda file=folder / f"{name}.csv": saen.load_dataset(file)), what
    slow = MOLECULES, "Cuneiform", "NCI surface areas", "tox21"
    for name in sorted(cases.keys() - document.keys(), key=lambda name: (name in slow, name)):
        load, what = cases[name]
        document[name] = {"what": what.rstrip("."), **measure(load())}
        say(f"{name}: {document[name]['score']['mean']:.3f}")
        FILE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        (OUT / "untouched.md").write_text(report(document), encoding="utf-8")


if __name__ == "__main__":
    main()
