"""Large data beside training: predictions by counts, exploring, and the sizes of outputs."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks.measure import MeasurementError, Stopwatch, measure, say
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings
from benchmarks.streams import generate

TITLE = "Large data beside training"

N_TRAINED = 2_000
PREDICTED, PREDICTED_FULL = (20_000, 100_000), (100_000, 1_000_000)
EXPLORED = 50_000
GROWING, GROWING_FULL = (1_000, 10_000), (10_000, 100_000, 1_000_000)
QUICK_DIVISOR = 200

MIN_PER_MINUTE = 1_000_000
MAX_EXPLORING = 15
MAX_GROWTH = 1.2
"""Memory for five or ten times as many graphs, and outputs beside the data, at most."""
FRAGMENTS = ("C", "CC", "N", "O", "C(C)", "C(=O)", "C(F)", "c1ccccc1", "C1CCNCC1", "S(=O)(=O)")


# -- what is measured, each in its own process -------------------------------------------------


def generate_molecules(path: str, n_graphs: int) -> dict[str, Any]:
    """Write a table of random SMILES of about twenty heavy atoms, with two classes."""
    draw, watch = random.Random(0), Stopwatch()

    def write() -> None:
        with Path(path).open("w", encoding="utf-8") as file:
            file.write("id,smiles,target\n")
            for number in range(n_graphs):
                smiles = "C" + "".join(draw.choices(FRAGMENTS, k=8))
                file.write(f"m{number},{smiles},{draw.randrange(2)}\n")

    watch("generate", write)
    return {"seconds": watch.seconds, "bytes": Path(path).stat().st_size}


def parse_molecules(path: str) -> dict[str, Any]:
    """RDKit alone: every SMILES of a table parsed, its atoms and bonds asked for, and dropped."""
    from rdkit import Chem

    lines, watch = Path(path).read_text().splitlines()[1:], Stopwatch()

    def parse() -> None:
        for line in lines:
            molecule = Chem.MolFromSmiles(line.split(",")[1])
            for atom in map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms())):
                atom.GetSmarts()
            for bond in map(molecule.GetBondWithIdx, range(molecule.GetNumBonds())):
                _ = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), bond.GetBondType()

    watch("parse", parse)
    return {"seconds": watch.seconds}


def command(arguments: list[str]) -> dict[str, Any]:
    """Run a command of `saen`."""
    from saen.cli import app

    watch = Stopwatch()
    with redirect_stdout(StringIO()):
        watch("command", lambda: app(arguments, standalone_mode=False))
    return {"seconds": watch.seconds}


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """Rows of predictions, one of exploring, and one of sizes per number of graphs."""
    divisor = QUICK_DIVISOR if settings.quick else 1
    document: dict[str, Any] = {"predicting": [], "exploring": [], "growing": []}
    document |= {"checks": [], "skipped": []}
    predicted = PREDICTED_FULL if settings.full else PREDICTED
    growing = GROWING_FULL if settings.full else GROWING
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            for suffix in ("jsonl", "csv"):
                document["predicting"] += _predicted(
                    folder, suffix, [n // divisor for n in predicted]
                )
            document["exploring"].append(_explored(folder, EXPLORED // divisor))
            for n_graphs in growing:
                document["growing"].append(_outputs(folder, max(n_graphs // divisor, 20)))
        except MeasurementError as error:
            document["skipped"].append({"what": TITLE, "reason": f"failed: {error}"})
            return document
    if not settings.quick:
        document["checks"] = _checks(document)
    return document


def _command(*arguments: object) -> dict[str, Any]:
    return measure(command, arguments=[*map(str, arguments)])


def _generated(folder: Path, suffix: str, n_graphs: int) -> Path:
    path = folder / f"{n_graphs}.{suffix}"
    if not path.exists():
        function = generate if suffix == "jsonl" else generate_molecules
        measure(function, path=str(path), n_graphs=n_graphs)
    return path


def _model(folder: Path, suffix: str) -> Path:
    """A model of part counts that was trained on a few graphs of a format."""
    model = folder / f"{suffix}.saen"
    if not model.exists():
        data = _generated(folder, suffix, N_TRAINED)
        _command("train", data, "--preset", "counts", "--out", model)
    return model


def _predicted(folder: Path, suffix: str, counts: list[int]) -> list[dict[str, Any]]:
    rows, model = [], _model(folder, suffix)
    for n_graphs in counts:
        data, out = _generated(folder, suffix, n_graphs), folder / "predicted.csv"
        row = _command("predict", model, data, "--out", out, "--force")
        if suffix == "csv":
            row["rdkit"] = measure(parse_molecules, path=str(data))["cpu_seconds"]
        rows.append({"format": suffix, "graphs": n_graphs, **row})
    return rows


def _explored(folder: Path, n_graphs: int) -> dict[str, Any]:
    data, page = _generated(folder, "jsonl", n_graphs), folder / "explore.html"
    row = _command("explore", _model(folder, "jsonl"), data, "--out", page)
    return {"graphs": n_graphs, **row, "bytes": page.stat().st_size}


def _outputs(folder: Path, n_graphs: int) -> dict[str, Any]:
    """Bytes of what an evaluation and an explanation of so many graphs leave."""
    data, place = _generated(folder, "jsonl", n_graphs), folder / f"of-{n_graphs}"
    evaluated, explained = place / "run", place / "explanation.html"
    page = place / "report.html"
    place.mkdir()
    evaluation = _command(
        *("evaluate", data, "--preset", "counts", "--repeats", 1, "--folds", 2),
        *("--out", evaluated, "--report", page),
    )
    explanation = _command("explain", _model(folder, "jsonl"), data, "--out", explained)
    say(f"  outputs of {n_graphs:,} graphs")
    return {
        "graphs": n_graphs,
        "data": data.stat().st_size,
        "run": sum(file.stat().st_size for file in evaluated.rglob("*") if file.is_file()),
        "report": page.stat().st_size,
        "explanation": explained.stat().st_size,
        "peak_memory_bytes": {
            "evaluate": evaluation["peak_memory_bytes"],
            "explain": explanation["peak_memory_bytes"],
        },
        "cpu_seconds": {
            "evaluate": evaluation["cpu_seconds"],
            "explain": explanation["cpu_seconds"],
        },
    }


def _per_minute(row: Mapping[str, Any]) -> float:
    return float(60 * row["graphs"] / row["seconds"]["command"])


def _checks(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    checks = []
    for few, many in zip(*[iter(document["predicting"])] * 2, strict=True):
        what = f"{many['graphs']:,} graphs predicted from .{many['format']}"
        checks += [
            check(f"{what}, a minute", _per_minute(many), MIN_PER_MINUTE, "", at_least=True),
            check(
                f"{what}: memory, of that of {few['graphs']:,}",
                many["peak_memory_bytes"] / few["peak_memory_bytes"],
                MAX_GROWTH,
                "",
            ),
        ]
    for row in document["exploring"]:
        what = f"exploring {row['graphs']:,} graphs"
        checks.append(check(what, row["seconds"]["command"], MAX_EXPLORING, "s"))
    first, *_, last = document["growing"]
    for key in ("run", "report", "explanation"):
        growth = last[key] / first[key] / (last["data"] / first["data"])
        checks.append(check(f"growth of {key} beside that of the data", growth, MAX_GROWTH, ""))
    return checks


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    predicted = [
        (
            f".{row['format']}",
            f"{row['graphs']:,}",
            quantity(row["seconds"]["command"], "s"),
            quantity(row["cpu_seconds"], "s"),
            f"{100 * row['rdkit'] / row['cpu_seconds']:.0f} %" if "rdkit" in row else "",
            f"{_per_minute(row):,.0f}",
            quantity(row["peak_memory_bytes"], "bytes"),
        )
        for row in document["predicting"]
    ]
    explored = [
        (
            f"{row['graphs']:,}",
            quantity(row["seconds"]["command"], "s"),
            quantity(row["cpu_seconds"], "s"),
            quantity(row["peak_memory_bytes"], "bytes"),
            quantity(row["bytes"], "bytes"),
        )
        for row in document["exploring"]
    ]
    growing = [
        (
            f"{row['graphs']:,}",
            *(quantity(row[key], "bytes") for key in ("data", "run", "report", "explanation")),
            *(quantity(row["cpu_seconds"][key], "s") for key in ("evaluate", "explain")),
            *(quantity(row["peak_memory_bytes"][key], "bytes") for key in ("evaluate", "explain")),
        )
        for row in document["growing"]
    ]
    return "\n".join(
        [
            f"Generated graphs as in the part before, and molecules of 8 fragments as a table of "
            f"SMILES; a model of part counts of {N_TRAINED:,} of them. Whole commands.\n",
            "`saen predict`; RDKit's share is what it takes to parse the SMILES and ask for "
            "atoms and bonds:\n",
            table(
                ("data", "graphs", "seconds", "CPU", "RDKit's share", "a minute", "peak memory"),
                predicted,
            ),
            "`saen explore`:\n",
            table(("graphs", "seconds", "CPU", "peak memory", "page"), explored),
            "`saen evaluate --preset counts --repeats 1 --folds 2`, its run directory and report, "
            "and the page of `saen explain` of all graphs:\n",
            table(
                (
                    *("graphs", "data", "run directory", "report", "explanation"),
                    *("CPU, evaluate", "explain", "memory, evaluate", "explain"),
                ),
                growing,
            ),
        ]
    )
