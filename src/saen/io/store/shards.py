"""Shards: a large collection of examples as a folder of parts, which tasks read one by one.

`shards.json` lists the parts in order. The folder appears when all of it is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from saen._util.arrays import Array, Ints, offsets
from saen._util.atomic import atomic_folder, expand_user, make_folder
from saen._util.digests import digest_of, file_checksum
from saen._util.json_files import read_json, write_json
from saen._util.remote import absolute, is_file, is_remote, local_copy
from saen._util.strings import plural
from saen.data.collection import common_names, concatenate_values
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.data.vocabulary import Vocabulary
from saen.errors import FileError, InputError
from saen.io.store import container

INDEX = "shards.json"
_VERSION = 1

Data = Graphs | Documents | NestedData
KINDS: dict[str, Any] = {"graphs": Graphs, "documents": Documents, "nested": NestedData}


@dataclass(frozen=True)
class Shard:
    """One part: its file, what it holds, and a checksum of the file (BLAKE2b).

    `graphs` counts its examples; `nodes` and `edges` those of all of them: of documents words and
    dependencies, of nested data labels and entries.
    """

    file: str
    graphs: int
    nodes: int
    edges: int
    first_id: int | str
    last_id: int | str
    bytes: int
    checksum: str


@dataclass(frozen=True, repr=False)
class Shards:
    """A folder of shards of one `kind`: graphs, documents or nested.

    `vocabulary` has the distinct node and edge labels of all of them; `catalog` is the name of the
    dataset that they were converted from, if it is one of the catalog.
    """

    folder: Path
    name: str
    shards: tuple[Shard, ...]
    vocabulary: dict[str, Vocabulary]
    kind: str = "graphs"
    catalog: str = ""

    @property
    def description(self) -> str:
        """Name and content in one line."""
        return repr(self).partition("(")[2][:-1]

    def __repr__(self) -> str:
        what = {"nested": "examples"}.get(self.kind, self.kind)
        name = f"{self.name}: " if self.name else ""
        return f"Shards({name}{self.n_graphs:,} {what} in {plural(len(self), 'shard')})"

    def __len__(self) -> int:
        """The number of shards."""
        return len(self.shards)

    @property
    def files(self) -> list[Path]:
        """The files, in order."""
        return [self.folder / shard.file for shard in self.shards]

    @property
    def n_graphs(self) -> int:
        """Examples of all shards."""
        return sum(shard.graphs for shard in self.shards)

    def digest(self) -> str:
        """A digest of the content of all shards, in order."""
        return digest_of(*(shard.checksum for shard in self.shards))

    def read(self, number: int) -> Any:
        """The examples of one shard; `FileError` if the file is not what the index says."""
        shard, path = self.shards[number], self.folder / self.shards[number].file
        if not (path.is_file() or is_remote(path)):
            raise FileError(f"no such file, but {INDEX} lists it: convert again", path=path)
        with local_copy(path) as local:
            if local.stat().st_size != shard.bytes or file_checksum(local) != shard.checksum:
                raise FileError(f"damaged, or not the file that {INDEX} lists", path=local)
            data = container.load(local)
        if not isinstance(data, KINDS[self.kind]):
            raise FileError(f"contains a {type(data).__name__}, not {self.kind}", path=path)
        return data

    def one(self, number: int) -> Shards:
        """A shard alone: what a task needs to read it, wherever it runs."""
        folder = absolute(self.folder)
        return replace(self, folder=folder, shards=(self.shards[number],), vocabulary={})

    def targets(self) -> Array | None:
        """The targets of all examples, in order, and nothing else of them; None without any."""
        columns = [container.read_examples(file)[1] for file in self.files]
        known = [column for column in columns if column is not None]
        return concatenate_values(known) if len(known) == len(columns) else None

    def target_names(self) -> tuple[str, ...]:
        """The names of the targets, where all shards have the same."""
        return common_names([container.read_examples(file)[2] for file in self.files])

    def ids(self) -> Array:
        """The ids of all examples, in order, and nothing else of them."""
        columns = [container.read_examples(file)[0] for file in self.files]
        return concatenate_values(
            [
                np.arange(shard.graphs) if column is None else column
                for shard, column in zip(self.shards, columns, strict=True)
            ]
        )

    def load(self) -> Any:
        """All examples, in order."""
        return KINDS[self.kind].concatenate(self.read(number) for number in range(len(self)))


def is_shards(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder of shards."""
    return is_file(expand_user(path) / INDEX)


def write_shards(
    parts: Iterable[Data],
    folder: str | os.PathLike[str],
    n_shards: int | None = None,
    *,
    catalog: str = "",
    force: bool = False,
) -> Shards:
    """Write graphs, documents or nested data, as they come, to the shards of a folder.

    One part is held at a time. The parts must have the same columns. Every part is a shard; with
    `n_shards`, they are cut into that many of about equal size, as `split_graphs` cuts all of
    them. `catalog` is noted in the index. A folder that is not empty is overwritten only with
    `force`, and only if it holds shards.

    >>> from saen import generate_threads
    >>> parts = (generate_threads(10, seed=seed) for seed in range(3))
    >>> write_shards(parts, getfixture("tmp_path") / "threads", n_shards=2)
    Shards(threads: 30 graphs in 2 shards)

    Raises `InputError` for parts without examples or that differ in their columns, and
    `FileError` if the folder cannot be written.
    """
    if n_shards is not None and n_shards < 1:
        raise InputError(f"the number of shards must be an integer ≥ 1, not {n_shards}")
    path = expand_user(folder)
    _check_place(path, force=force)
    make_folder(path.parent)
    with atomic_folder(path) as new:
        if n_shards is None:
            return replace(_write(parts, new, catalog), folder=path)
        pieces: list[Path] = []
        weights: list[Ints] = []
        for part in parts:
            pieces.append(new / f"uncut-{len(pieces):05d}.saen")
            container.save(part, pieces[-1])
            weights.append(np.diff(_weights(part)))
        written = _write(_cut(pieces, weights, n_shards), new, catalog)
        for piece in pieces:
            piece.unlink()
        return replace(written, folder=path)


def _write(parts: Iterable[Data], path: Path, catalog: str) -> Shards:
    """Every part as a shard, then the index."""
    shards: list[Shard] = []
    labels: dict[str, Vocabulary] = {}
    first: Any = None
    data: Any
    for number, data in enumerate(parts):
        if not len(data):
            raise InputError(f"part {number} is empty")
        first = data[:1] if first is None else first
        if type(data) is not type(first):
            raise InputError(f"part {number} is {type(data).__name__}, not {type(first).__name__}")
        first.concatenate([first, data[:1]])  # raises where columns differ
        file = path / f"part-{number:05d}.saen"
        size = container.save(data, file)
        first_id, last_id = data.ids[[0, -1]].tolist()
        nodes, edges = _counts(data)
        shards.append(
            Shard(
                file.name,
                len(data),
                nodes,
                edges,
                first_id,
                last_id,
                size,
                file_checksum(file),
            )
        )
        for key, known in _labels(data):
            labels[key] = known.union(labels.get(key, known))
    if first is None:
        raise InputError("there is nothing to write")
    kind = next(kind for kind, cls in KINDS.items() if isinstance(first, cls))
    result = Shards(path, first.name, tuple(shards), labels, kind, catalog)
    document = {
        "version": _VERSION,
        "name": result.name,
        "kind": kind,
        "catalog": catalog,
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
        raise FileError("not a folder of shards: convert with shards=N writes one", path=path)
    document = read_json(path / INDEX, sealed=True)
    try:
        if int(document["version"]) > _VERSION:
            raise FileError("of a newer format: upgrade saen", path=path / INDEX)
        shards = tuple(Shard(**each) for each in document["shards"])
        if outside := [shard.file for shard in shards if Path(shard.file).name != shard.file]:
            raise ValueError(f"{outside[0]!r} is not in this folder")
        vocabulary = {key: Vocabulary(known) for key, known in document["vocabulary"].items()}
        kind = document.get("kind", "graphs")
        if kind not in KINDS:
            raise FileError(f"of an unknown kind of data ({kind}): upgrade saen", path=path / INDEX)
        name, catalog = str(document["name"]), str(document.get("catalog", ""))
        return Shards(path, name, shards, vocabulary, kind, catalog)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"damaged: inconsistent content ({error})", path=path / INDEX) from None


def split_graphs(graphs: Data, n_shards: int) -> Iterator[Any]:
    """Consecutive parts of about equal size, counted in nodes and edges.

    `graphs` may be documents or nested data as well.

    >>> from saen import generate_threads
    >>> [len(part) for part in split_graphs(generate_threads(10, seed=1), 10)]
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    for start, stop in pairwise(_bounds(_weights(graphs), n_shards)):
        yield graphs[start:stop]


def _bounds(total: Ints, n_shards: int) -> list[int]:
    """Where the shards of examples begin, and the end, from the weight before every example."""
    n = len(total) - 1
    if not 1 <= n_shards <= max(n, 1):
        raise InputError(
            f"the number of shards must be between 1 and {n}, the number of examples, "
            f"not {n_shards}"
        )
    wanted = np.arange(1, n_shards) * (int(total[-1]) / n_shards)
    places = np.arange(1, n_shards)
    ends = np.clip(np.searchsorted(total, wanted), places, n - n_shards + places)
    ends = np.maximum.accumulate(ends - places) + places  # at least one example each
    return [0, *ends.tolist(), n]


def _cut(pieces: list[Path], weights: list[Ints], n_shards: int) -> Iterator[Any]:
    """The shards of the examples of all files; those of one shard are read at a time."""
    first = offsets(np.array([len(each) for each in weights], dtype=np.int64)).tolist()
    bounds = _bounds(offsets(np.concatenate([*weights, np.zeros(0, np.int64)])), n_shards)
    loaded: dict[Path, Any] = {}
    for start, stop in pairwise(bounds):
        parts = []
        for piece, begin, end in zip(pieces, first, first[1:], strict=False):
            if begin < stop and start < end:
                loaded = loaded if piece in loaded else {piece: container.load(piece)}
                parts.append(loaded[piece][max(start - begin, 0) : stop - begin])
        yield parts[0] if len(parts) == 1 else parts[0].concatenate(parts)


def _weights(data: Data) -> Ints:
    """Nodes and edges (or what stands for them) before every example, and in all."""
    if isinstance(data, NestedData):
        pairs = zip(data.hierarchy.relations, data.starts[1:], strict=True)
        total: Ints = data.starts[0] + sum(relation.indptr[starts] for relation, starts in pairs)
        return total
    if isinstance(data, Documents):
        return _weights(data.sentences)[data.offsets]
    return data.indptr[data.node_offsets] + data.node_offsets


def _counts(data: Data) -> tuple[int, int]:
    """Nodes and edges, or what stands for them."""
    if isinstance(data, NestedData):
        hierarchy = data.hierarchy
        return hierarchy.sizes[0], sum(relation.n_entries for relation in hierarchy.relations)
    graphs = data.sentences if isinstance(data, Documents) else data
    return graphs.n_nodes, graphs.n_edges


def _labels(data: Data) -> Iterator[tuple[str, Vocabulary]]:
    """The distinct labels of nodes and edges."""
    if isinstance(data, NestedData):
        yield "labels", data.hierarchy.attributes.vocabulary or Vocabulary()
        return
    graphs = data.sentences if isinstance(data, Documents) else data
    for key in ("node_labels", "edge_labels"):
        column = getattr(graphs, key)
        if column is not None:
            yield key, Vocabulary.fit([column] if column.ndim == 1 else list(column.T))[0]


def _check_place(path: Path, *, force: bool) -> None:
    """Raise unless `path` is absent, an empty folder, or with `force` one of shards alone."""
    if is_remote(path):
        if not force and is_file(path / INDEX):
            raise FileError("already exists (use force=True to overwrite)", path=path)
        return
    try:
        files = sorted(path.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"cannot be used as a folder ({error.strerror})", path=path) from None
    if files and not force:
        raise FileError("already exists (use force=True to overwrite)", path=path)
    ours = {INDEX, *(shard.file for shard in read_shards(path).shards)} if is_shards(path) else ()
    for file in files:
        unfinished = file.name.startswith("part-") and file.suffix == ".saen"
        if file.name not in ours and not unfinished:
            raise FileError(f"contains {file.name}, which would be lost", path=path)
