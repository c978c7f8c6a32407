"""What a file is: its kind, its format, how large its contents are and how they were made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from saen.decompositions.registry import UnknownDecompositionError
from saen.errors import FileError
from saen.io.embeddings import open_npy
from saen.io.store import container
from saen.io.store.container import Header
from saen.io.store.shards import is_shards, read_shards
from saen.jobs.store import SUMMARY
from saen.learning.models.base import Fitted
from saen.learning.models.blend import unpack_fitted

TABLES = (".csv", ".jsonl", ".parquet")


def inspect_file(path: str | Path) -> dict[str, Any]:
    """Describe a file, folder of shards or run directory that saen wrote, without its arrays.

    Always says `kind` and `bytes`; `format` and `saen`, the versions, where the file has them;
    the rest depends on the kind.

    >>> from saen import Graphs, save
    >>> file = getfixture("tmp_path") / "toy.saen"
    >>> size = save(Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)]]), file)
    >>> found = inspect_file(file)
    >>> found["kind"], found["graphs"], found["nodes"], found["bytes"] == size
    ('graphs', 2, 5, True)

    Raises `FileError` for what saen did not write.
    """
    place = Path(path)
    if place.is_dir():
        return _shards(place) if is_shards(place) else _run(place)
    if not place.exists():
        raise FileError("no such file", path=path)
    size = place.stat().st_size
    if place.suffix in TABLES:
        return {**_table(place), "bytes": size}
    if place.suffix == ".npy":
        return {**_matrix(place), "bytes": size}
    header = container.read_header(place)
    describe = _KINDS.get(header.kind, _arrays)
    with container.consistent(path, "damaged: its metadata is not what saen writes"):
        made = {"saen": header.document["saen"]} if "saen" in header.document else {}
        details = describe(header)
    return {"kind": header.kind, "format": header.version, **made, "bytes": size, **details}


# -- containers, by kind -----------------------------------------------------------------------


def _graphs(header: Header) -> dict[str, Any]:
    shapes = header.shapes
    columns = ("node_labels", "node_attributes", "edge_labels", "edge_attributes", "targets")
    return {
        "name": header.document["name"],
        "graphs": shapes["node_offsets"][0] - 1,
        "nodes": shapes["indptr"][0] - 1,
        "entries": shapes["indices"][0],
        "directed": header.document["directed"],
        "columns": [key for key in columns if key in shapes],
        "targets": _targets(header),
    }


def _targets(header: Header) -> list[str] | int:
    """The names of the targets, or how many there are, where they have none."""
    names: list[str] | None = header.document.get("target_names")
    shape = header.shapes.get("targets")
    return names or (0 if shape is None else 1 if len(shape) == 1 else shape[1])


def _hierarchy(header: Header) -> dict[str, Any]:
    vocabulary = header.document["vocabulary"]
    return {"levels": _levels(header), "labels": None if vocabulary is None else len(vocabulary)}


def _compressed(header: Header) -> dict[str, Any]:
    found = _hierarchy(header)
    for level, objects, entries in zip(
        found["levels"], header.document["objects"], header.document["entries"], strict=True
    ):
        level |= {"objects_before": objects, "entries_before": entries}
    return found | {"targets": _targets(header)}


def _levels(header: Header) -> list[dict[str, Any]]:
    shapes = header.shapes
    bottom = shapes["codes" if "codes" in shapes else "vectors"][0]
    levels: list[dict[str, Any]] = [
        {"name": header.document["names"][0], "objects": bottom, "entries": 0, "roles": []}
    ]
    for level, relation in enumerate(header.document["relations"], start=1):
        levels.append(
            {
                "name": header.document["names"][level],
                "objects": shapes[f"{level}.indptr"][0] - 1,
                "entries": shapes[f"{level}.parts"][0],
                "roles": relation["alphabet"],
            }
        )
    return levels


def _model(header: Header) -> dict[str, Any]:
    document = header.document
    try:
        model = _contents(unpack_fitted(document["model"], container.read(header.path)[2]))
    except UnknownDecompositionError as error:  # a class of the user's own, not imported here
        model = {"decomposition": str(error)}
    about = {
        key: value for key, value in document["about"].items() if key not in ("checksum", "file")
    }
    kept = {key: document[key] for key in ("tried", "reading") if document[key]}
    settings = {"settings": document["parameters"]}
    return {"estimator": document["estimator"], **about, **model, **kept, **settings}


def _contents(model: Fitted) -> dict[str, Any]:
    """What a model predicts, how it takes data apart, and what it consists of."""
    decomposition, vocabulary = model.decomposition, model.schema.attributes.vocabulary
    classes = model.targets.known_classes
    settings = None if decomposition is None else decomposition.settings()
    file = getattr(decomposition, "file", None)
    return {
        "classes": None if classes is None else classes.tolist(),
        **({"targets": list(model.targets.names)} if model.targets.several else {}),
        "decomposition": settings if file is None else {**(settings or {}), "file": file.to_json()},
        "levels": list(model.schema.names),
        "labels": None if vocabulary is None else len(vocabulary),
        **model.describe(),
    }


def _checkpoint(header: Header) -> dict[str, Any]:
    losses = header.document["history"]["loss"]
    known = [loss for loss in (losses or [[]])[-1] if loss is not None]  # some may have diverged
    return {
        "epoch": header.document["epoch"],
        "networks": header.shapes["network.levels.0.bias"][0],
        "loss": float(np.mean(known)) if known else None,
        "fingerprint": header.document["fingerprint"],
    }


def _predictions(header: Header) -> dict[str, Any]:
    if "chosen" in header.document:  # of part counts, part by part
        return {"rows": header.shapes["tested"][0], "models": 1}
    if "columns" in header.document:  # of a shard
        return {"rows": header.shapes["id"][0], "columns": header.document["columns"]}
    rows, outputs = header.shapes["outputs"]
    return {
        "rows": rows,
        "networks": header.document["networks"],
        "outputs": outputs,
        "epochs": len(header.document["history"]["loss"]),
    }


def _embeddings(header: Header) -> dict[str, Any]:
    rows, width = header.shapes["vectors"]
    columns = [key for key in header.shapes if key != "vectors"]
    return {"level": header.document["level"], "rows": rows, "width": width, "columns": columns}


def _arrays(header: Header) -> dict[str, Any]:
    return {"arrays": {key: list(shape) for key, shape in header.shapes.items()}}


_KINDS: dict[str, Callable[[Header], dict[str, Any]]] = {
    "graphs": _graphs,
    "hierarchy": _hierarchy,
    "compressed": _compressed,
    "model": _model,
    "checkpoint": _checkpoint,
    "predictions": _predictions,
    "embeddings": _embeddings,
}


# -- tables, matrices and folders --------------------------------------------------------------


def _table(path: Path) -> dict[str, Any]:
    columns, rows = _parquet(path) if path.suffix == ".parquet" else _text(path)
    vectors = [name for name in columns if name[:1] == "e" and name[1:].isdecimal()]
    known = columns[:1] == ["id"]
    if known and vectors:
        others = [name for name in columns if name not in vectors]
        return {"kind": "embeddings", "rows": rows, "width": len(vectors), "columns": others}
    targets = [name[11:] for name in columns if name.startswith("prediction_")]
    if known and "prediction" in columns:
        of = {"classes": [name[2:] for name in columns if name.startswith("p_")]}
    elif known and targets:
        of = {"targets": targets}
    else:
        raise FileError(
            "neither predictions nor embeddings; saen validate describes a file of data", path=path
        )
    return {"kind": "predictions", "rows": rows, **of, "columns": columns}


def _parquet(path: Path) -> tuple[list[str], int]:
    from saen.io.parsing.tables import pyarrow

    try:
        metadata = pyarrow()[1].read_metadata(path)
    except (OSError, ValueError) as error:
        raise FileError(f"not readable as parquet ({error})", path=path) from None
    return list(metadata.schema.names), int(metadata.num_rows)


def _text(path: Path) -> tuple[list[str], int]:
    import csv

    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix == ".csv":
                rows = csv.reader(file)
                return next(rows, []), sum(1 for _ in rows)
            first = json.loads(next(file, "{}"))
            return list(first), sum(1 for _ in file) + bool(first)
    except (UnicodeDecodeError, ValueError, csv.Error, TypeError) as error:
        raise FileError(f"not readable as {path.suffix[1:]} ({error})", path=path) from None


def _matrix(path: Path) -> dict[str, Any]:
    shape = open_npy(path).shape
    if len(shape) != 2:
        raise FileError(f"expected a matrix of vectors, found shape {shape}", path=path)
    return {"kind": "embeddings", "rows": shape[0], "width": shape[1]}


def _shards(folder: Path) -> dict[str, Any]:
    """A folder of shards, by its index."""
    shards = read_shards(folder)
    return {
        "kind": "shards",
        "bytes": sum(shard.bytes for shard in shards.shards),
        "name": shards.name,
        "shards": len(shards),
        {"nested": "examples"}.get(shards.kind, shards.kind): shards.n_graphs,
        "nodes": sum(shard.nodes for shard in shards.shards),
        "edges": sum(shard.edges for shard in shards.shards),
        "labels": {key: len(known) for key, known in shards.vocabulary.items()},
        "largest": max(shards.shards, key=lambda shard: shard.bytes).file,
    }


def _run(folder: Path) -> dict[str, Any]:
    """A run directory: what is run, and how far it is."""
    from saen._util.json_files import read_json

    if not (folder / "settings.json").is_file():
        raise FileError(
            "a folder, but neither a run directory nor shards: it has no settings.json", path=folder
        )
    settings = read_json(folder / "settings.json", sealed=True)
    files = sorted(file for file in folder.iterdir() if file.name != ".lock")
    found = {
        "kind": "run",
        "bytes": sum(file.stat().st_size for file in files),
        "files": [file.name for file in files],
    }
    if isinstance(settings.get("versions"), dict) and "saen" in settings["versions"]:
        found["saen"] = settings["versions"]["saen"]
    summary = folder / SUMMARY
    found["done"] = summary.is_file()
    if summary.is_file():
        found["accuracy"] = read_json(summary, sealed=True).get("accuracy")
    return {**found, **settings}
