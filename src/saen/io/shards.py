"""Shards: a large collection of graphs as a folder of parts, which tasks read one by one.

`shards.json` lists the parts in order. The folder appears when all of it is written.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from safetensors import safe_open

from saen._util.arrays import Array
from saen._util.atomic import atomic_folder, expand_user, make_folder
from saen._util.json_files import read_json, write_json
from saen.data.graphs import Graphs
from saen.data.vocabulary import Vocabulary
from saen.errors import FileError, InputError
from saen.io import container

INDEX = "shards.json"
_VERSION = 1
_LABELS = ("node_labels", "edge_labels")


@dataclass(frozen=True)
class Shard:
    """One part: its file, what it holds, and a checksum of the file (BLAKE2b)."""

    file: str
    graphs: int
    nodes: int
    edges: int
    first_id: int | str
    last_id: int | str
    bytes: int
    checksum: str


@dataclass(frozen=True)
class Shards:
    """A folder of shards; `vocabulary` has the distinct node and edge labels of all of them."""

    folder: Path
    name: str
    shards: tuple[Shard, ...]
    vocabulary: dict[str, Vocabulary]

    def __len__(self) -> int:
        """The number of shards."""
        return len(self.shards)

    @property
    def files(self) -> list[Path]:
        """The files, in order."""
        return [self.folder / shard.file for shard in self.shards]

    @property
    def n_graphs(self) -> int:
        """Graphs of all shards."""
        return sum(shard.graphs for shard in self.shards)

    def digest(self) -> str:
        """A digest of the content of all shards, in order."""
        state = hashlib.blake2b(digest_size=16)
        for shard in self.shards:
            state.update(shard.checksum.encode())
        return state.hexdigest()

    def read(self, number: int) -> Graphs:
        """The graphs of one shard; `FileError` if the file is not what the index says."""
        shard, path = self.shards[number], self.folder / self.shards[number].file
        if not path.is_file():
            raise FileError(f"no such file, but {INDEX} lists it: convert again", path=path)
        if path.stat().st_size != shard.bytes or _checksum(path) != shard.checksum:
            raise FileError(f"damaged, or not the file that {INDEX} lists", path=path)
        graphs = container.load(path)
        if not isinstance(graphs, Graphs):
            raise FileError(f"contains a {type(graphs).__name__}, not Graphs", path=path)
        return graphs

    def one(self, number: int) -> Shards:
        """A shard alone: what a task needs to read it."""
        return replace(self, shards=(self.shards[number],), vocabulary={})

    def targets(self) -> Array | None:
        """The targets of all graphs, in order, and nothing else of them; None without any."""
        columns: list[Array] = []
        for file in self.files:
            header = container.read_header(file)
            if "targets" not in header.shapes:
                return None
            with safe_open(file, framework="numpy") as opened:
                column: Array = opened.get_tensor("targets")
            values = header.document.get("targets.values")
            columns.append(column if values is None else np.array(values)[column])
        return np.concatenate(columns)

    def load(self) -> Graphs:
        """All graphs, in order."""
        return Graphs.concatenate(self.read(number) for number in range(len(self)))


def is_shards(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder of shards."""
    return (expand_user(path) / INDEX).is_file()


def write_shards(
    parts: Iterable[Graphs], folder: str | os.PathLike[str], *, force: bool = False
) -> Shards:
    """Write collections of graphs, as they come, to the shards of a folder.

    One part is held at a time. The parts must have the same columns. A folder that is not empty
    is overwritten only with `force`, and only if it holds shards.

    >>> from saen import generate_threads
    >>> parts = (generate_threads(10, seed=seed) for seed in range(3))
    >>> write_shards(parts, getfixture("tmp_path") / "threads").n_graphs
    30

    Raises `InputError` for parts without graphs or that differ in their columns, and `FileError`
    if the folder cannot be written.
    """
    path = expand_user(folder)
    _check_place(path, force=force)
    make_folder(path.parent)
    with atomic_folder(path) as new:
        return replace(_write(parts, new), folder=path)


def _write(parts: Iterable[Graphs], path: Path) -> Shards:
    """Every part as a shard, then the index."""
    shards: list[Shard] = []
    labels: dict[str, Vocabulary] = {}
    first: Graphs | None = None
    for number, graphs in enumerate(parts):
        first = graphs[:1] if first is None else first
        Graphs.concatenate([first, graphs[:1]])  # raises where columns differ
        if not len(graphs):
            raise InputError(f"part {number} has no graphs")
        file = path / f"part-{number:05d}.saen"
        size = container.save(graphs, file)
        first_id, last_id = graphs.ids[[0, -1]].tolist()
        shards.append(
            Shard(
                file.name,
                len(graphs),
                graphs.n_nodes,
                graphs.n_edges,
                first_id,
                last_id,
                size,
                _checksum(file),
            )
        )
        for key in _LABELS:
            column = getattr(graphs, key)
            if column is not None:
                known = Vocabulary.fit(_columns(column))[0]
                labels[key] = known.union(labels.get(key, known))
    if first is None:
        raise InputError("there are no graphs to write")
    result = Shards(path, first.name, tuple(shards), labels)
    document = {
        "version": _VERSION,
        "name": result.name,
        "graphs": result.n_graphs,
        "vocabulary": {key: list(known) for key, known in labels.items()},
        "shards": [asdict(shard) for shard in shards],
    }
    write_json(path / INDEX, document, sealed=True)
    return result


def read_shards(folder: str | os.PathLike[str]) -> Shards:
    """The index of a folder of shards; no shard is read.

    Raises `FileError` for a folder without one, or with one that is damaged.
    """
    path = expand_user(folder)
    if not is_shards(path):
        raise FileError(
            f"not a folder of shards: write one with saen convert {path} FOLDER --shards N",
            path=path,
        )
    document = read_json(path / INDEX, sealed=True)
    try:
        if int(document["version"]) > _VERSION:
            raise FileError("of a newer format: upgrade saen", path=path / INDEX)
        shards = tuple(Shard(**each) for each in document["shards"])
        vocabulary = {key: Vocabulary(known) for key, known in document["vocabulary"].items()}
        return Shards(path, str(document["name"]), shards, vocabulary)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"damaged: inconsistent content ({error})", path=path / INDEX) from None


def split_graphs(graphs: Graphs, n_shards: int) -> Iterator[Graphs]:
    """Consecutive parts of about equal size, counted in nodes and edges.

    >>> from saen import generate_threads
    >>> [len(part) for part in split_graphs(generate_threads(10, seed=1), 10)]
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    if not 1 <= n_shards <= max(len(graphs), 1):
        raise InputError(
            f"the number of shards must be between 1 and {len(graphs)}, the number of graphs, "
            f"not {n_shards}"
        )
    # The entries of the adjacency before every graph, and its nodes: the total up to there.
    total = graphs.indptr[graphs.node_offsets] + graphs.node_offsets
    wanted = np.arange(1, n_shards) * (int(total[-1]) / n_shards)
    places = np.arange(1, n_shards)
    ends = np.clip(np.searchsorted(total, wanted), places, len(graphs) - n_shards + places)
    ends = np.maximum.accumulate(ends - places) + places  # at least one graph each
    bounds = [0, *ends.tolist(), len(graphs)]
    for start, stop in pairwise(bounds):
        yield graphs[start:stop]


def _check_place(path: Path, *, force: bool) -> None:
    """Raise unless `path` is absent, an empty folder, or with `force` one of shards alone."""
    try:
        files = sorted(path.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"cannot be used as a folder ({error.strerror})", path=path) from None
    if files and not force:
        raise FileError("already exists (use --force to overwrite)", path=path)
    ours = {INDEX, *(shard.file for shard in read_shards(path).shards)} if is_shards(path) else ()
    for file in files:
        unfinished = file.name.startswith("part-") and file.suffix == ".saen"
        if file.name not in ours and not unfinished:
            raise FileError(f"contains {file.name}, which would be lost", path=path)


def _columns(column: Array) -> list[Array]:
    return [column] if column.ndim == 1 else list(column.T)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
