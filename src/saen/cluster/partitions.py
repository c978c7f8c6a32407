"""Merge compressed shards by ranges of keys, level by level: no task holds the full result.

The unique objects of a level are numbered in the order of their content keys, so a range of keys is
a range of numbers. On every level, each shard writes its objects, over the unique parts of the
level below, to one file in that order (`split`); then each range is merged from its slices of these
files (`merge`). The concatenation of the ranges is what merging all shards at once gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from saen._util.arrays import Array, Ints, narrow, offsets
from saen._util.executor import Executor
from saen._util.json_files import read_json, write_json
from saen.cluster.work import Work
from saen.data import content_hash
from saen.data.compression import Compressed
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.identical import Rows, merge_objects, merge_rows
from saen.data.vocabulary import Vocabulary
from saen.errors import FileError, InputError
from saen.io.store import container

INDEX = "partitions.json"


@dataclass(frozen=True)
class Partitions:
    """A compressed dataset in a folder: every level in ranges of its unique objects.

    - `names`, `alphabets`, `vocabulary`: those of the hierarchy;
    - `unique[l][r]`, `unique_entries[l][r]`: objects of level l in range r, and their entries;
    - `objects`, `entries`: of the original, per level; `shards`: how many there were;
    - `moved`: bytes that went from the shards to the ranges.
    """

    folder: Path
    names: tuple[str, ...]
    alphabets: tuple[tuple[str, ...], ...]
    vocabulary: Vocabulary | None
    unique: tuple[tuple[int, ...], ...]
    unique_entries: tuple[tuple[int, ...], ...]
    objects: tuple[int, ...]
    entries: tuple[int, ...]
    shards: int
    moved: int

    @property
    def files(self) -> list[Path]:
        """The files of all ranges, then those with the unique top objects of every shard's."""
        ranges = [
            _range_file(self.folder, level, number)
            for level, sizes in enumerate(self.unique)
            for number in range(len(sizes))
        ]
        return ranges + [_top_file(self.folder, number) for number in range(self.shards)]

    def levels(self) -> list[dict[str, Any]]:
        """Per level, bottom first: objects and entries before and after compression."""
        return [
            {
                "level": level,
                "name": name,
                "objects": self.objects[level],
                "unique": sum(self.unique[level]),
                "entries": self.entries[level],
                "entries_compressed": sum(self.unique_entries[level]),
            }
            for level, name in enumerate(self.names)
        ]

    def join(self) -> Compressed:
        """All ranges as one: what merging all shards at once gives."""
        arrays = [
            [
                container.read(_range_file(self.folder, level, number))[2]
                for number in range(len(sizes))
            ]
            for level, sizes in enumerate(self.unique)
        ]
        codes, vectors = (_joined(arrays[0], key) for key in ("codes", "vectors"))
        relations = []
        for level, alphabet in enumerate(self.alphabets, start=1):
            below = sum(self.unique[level - 1])
            relations.append(_relation(arrays[level], alphabet, below))
        tops = [
            container.read(_top_file(self.folder, number))[2]["top"]
            for number in range(self.shards)
        ]
        return Compressed(
            Hierarchy(Attributes(codes, self.vocabulary, vectors), tuple(relations), self.names),
            (*[None] * len(relations), narrow(np.concatenate(tops))),
            self.objects,
            self.entries,
        )

    def to_json(self) -> dict[str, Any]:
        """Everything but the folder."""
        values = {key: value for key, value in vars(self).items() if key != "folder"}
        known = None if self.vocabulary is None else list(self.vocabulary)
        return values | {"vocabulary": known}


def read_partitions(folder: str | Path) -> Partitions:
    """What `merge_by_ranges` wrote; `FileError` where there is nothing of the kind."""
    path = Path(folder)
    document = read_json(path / INDEX, sealed=True)
    try:
        known = document["vocabulary"]
        for key in ("names", "objects", "entries"):
            document[key] = tuple(document[key])
        for key in ("alphabets", "unique", "unique_entries"):
            document[key] = tuple(map(tuple, document[key]))
        document["vocabulary"] = None if known is None else Vocabulary(known)
        return Partitions(folder=path, **document)
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"damaged: inconsistent content ({error})", path=path / INDEX) from None


def merge_by_ranges(
    shards: Sequence[Path], work: Work, n_ranges: int, executor: Executor
) -> Partitions:
    """Merge the files of compressed shards into `n_ranges` ranges of every level.

    Steps whose files are there already are not repeated. Raises `InputError` for shards whose
    levels or roles differ.
    """
    if n_ranges < 1:
        raise InputError(f"partitions must be an integer ≥ 1, not {n_ranges}")
    if not shards:
        raise InputError("nothing to merge: the list of shards is empty")
    folder = work.folder
    headers = [container.read_header(file).document for file in shards]
    names, alphabets = _common(headers, shards)
    words = [header["vocabulary"] for header in headers]
    vocabulary = None if words[0] is None else Vocabulary(chain.from_iterable(words))
    unique: list[tuple[int, ...]] = []
    entries: list[tuple[int, ...]] = []
    moved = 0
    for level in range(len(names)):
        below = offsets(np.array(unique[-1])) if unique else np.zeros(1, np.int64)
        common = vocabulary, below
        moved += sum(
            _run(
                work,
                executor,
                [_split_file(folder, level, number) for number in range(len(shards))],
                _split,
                lambda number: (shards[number], number, folder, level, n_ranges, common),  # noqa: B023
            )
        )
        _run(
            work,
            executor,
            [_range_file(folder, level, number) for number in range(n_ranges)],
            _merge,
            lambda number: (len(shards), number, folder, level, alphabets, common),  # noqa: B023
        )
        sizes = [container.read_header(_range_file(folder, level, r)) for r in range(n_ranges)]
        unique.append(tuple(header.document["unique"] for header in sizes))
        entries.append(tuple(header.document["entries"] for header in sizes))
    tops = [_top_file(folder, number) for number in range(len(shards))]
    top = offsets(np.array(unique[-1]))
    _run(
        work,
        executor,
        tops,
        _renumber_top,
        lambda number: (shards[number], number, folder, len(alphabets), top),
    )
    result = Partitions(
        folder,
        names,
        alphabets,
        vocabulary,
        tuple(unique),
        tuple(entries),
        tuple(np.sum([header["objects"] for header in headers], axis=0).tolist()),
        tuple(np.sum([header["entries"] for header in headers], axis=0).tolist()),
        len(shards),
        moved,
    )
    write_json(folder / INDEX, result.to_json(), sealed=True)
    for level in range(len(names)):
        for number in range(len(shards)):
            _split_file(folder, level, number).unlink(missing_ok=True)
    return result


def _run(
    work: Work,
    executor: Executor,
    files: list[Path],
    function: Callable[..., None],
    arguments: Callable[[int], tuple[Any, ...]],
) -> list[int]:
    """Run a task for every file that is missing; sizes of all files."""
    list(work.make({file.name: file for file in files}, executor, function, arguments))
    return [file.stat().st_size for file in files]


def _common(
    headers: list[dict[str, Any]], files: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Levels and roles, which must be those of all shards."""

    def schema(header: dict[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        alphabets = tuple(tuple(each["alphabet"]) for each in header["relations"])
        return tuple(header["names"]), alphabets

    first = schema(headers[0])
    for file, header in zip(files, headers, strict=True):
        if schema(header) != first:
            raise InputError(f"{file.name}: levels or roles differ from those of {files[0].name}")
    return first


# -- the tasks ---------------------------------------------------------------------------------

_Common = tuple[Vocabulary | None, Ints]
"""The vocabulary of all shards, and where the ranges of the level below begin."""


def _split(
    file: Path,
    shard: Path,
    number: int,
    folder: Path,
    level: int,
    n_ranges: int,
    common: _Common,
) -> None:
    """Write the objects of one level of a shard, over unique parts, in the order of their keys."""
    compressed = container.load(shard)
    vocabulary, below = common
    keys = compressed.keys[level]
    last = int(content_hash.MASKS[0])
    limits = [-(-(last + 1) * r // n_ranges) for r in range(1, n_ranges)]
    bounds = np.searchsorted(keys[:, 0], np.array(limits, dtype=np.uint64))
    tensors: dict[str, Array] = {}
    if level == 0:
        attributes = compressed.hierarchy.attributes
        if vocabulary is not None:
            tensors["codes"] = attributes.recoded(vocabulary).codes
        if attributes.vectors is not None:
            tensors["vectors"] = attributes.vectors
    else:
        relation = compressed.hierarchy.relations[level - 1]
        parts = _new_numbers(number, folder, level - 1, below)[relation.parts]
        tensors = {
            "keys": keys,
            "indptr": narrow(relation.indptr),
            "parts": narrow(parts),
            "roles": relation.roles,
        }
        if relation.counts is not None:
            tensors["counts"] = relation.counts
    document = {"bounds": [0, *bounds.tolist(), len(keys)]}
    container.write(file, "split", document, tensors, durable=False)


def _merge(
    file: Path,
    n_shards: int,
    number: int,
    folder: Path,
    level: int,
    alphabets: tuple[tuple[str, ...], ...],
    common: _Common,
) -> None:
    """Merge one range of one level from the slices of all shards."""
    vocabulary, below = common
    slices = [_read_slice(_split_file(folder, level, s), number) for s in range(n_shards)]
    tensors: dict[str, Array]
    if level == 0:
        codes, vectors = (_joined(slices, key) for key in ("codes", "vectors"))
        lengths = [len(next(iter(arrays.values()))) for arrays in slices]
        objects, inverse, _ = merge_objects(Attributes(codes, vocabulary, vectors))
        tensors = {} if objects.codes is None else {"codes": objects.codes}
        tensors |= {} if objects.vectors is None else {"vectors": objects.vectors}
        unique, entries = len(objects), 0
    else:
        relation = _relation(slices, alphabets[level - 1], int(below[-1]))
        keys = np.concatenate([arrays["keys"] for arrays in slices])
        lengths = [len(arrays["keys"]) for arrays in slices]
        rows = Rows.of(relation, None, relation.n_parts)
        parents, inverse, _ = merge_rows(rows, keys, relation.alphabet, relation.n_parts)
        tensors = {
            "indptr": narrow(parents.indptr),
            "parts": parents.parts,
            "roles": parents.roles,
        }
        if parents.counts is not None:
            tensors["counts"] = parents.counts
        unique, entries = parents.n_parents, parents.n_entries
    starts = offsets(np.array(lengths)).tolist()
    document = {"unique": unique, "entries": entries, "starts": starts}
    tensors["inverse"] = narrow(inverse)
    container.write(file, "range", document, tensors)


def _renumber_top(
    file: Path, shard: Path, number: int, folder: Path, level: int, starts: Ints
) -> None:
    """Write the unique top object of every original one of a shard."""
    compressed = container.load(shard)
    top = _new_numbers(number, folder, level, starts)[compressed.top]
    container.write(file, "top", {}, {"top": narrow(top)})


def _new_numbers(shard: int, folder: Path, level: int, starts: Ints) -> Ints:
    """For every unique object of a level of a shard its number among those of all shards."""
    parts = []
    for number, start in enumerate(starts[:-1].tolist()):
        file = _range_file(folder, level, number)
        rows = container.read_header(file).document["starts"]
        with safe_open(file, framework="numpy") as opened:
            inverse = _slice(opened, "inverse", rows[shard], rows[shard + 1])
        parts.append(inverse.astype(np.int64) + start)
    return np.concatenate(parts)


def _read_slice(file: Path, number: int) -> dict[str, Array]:
    """The arrays of one range of a split level."""
    bounds = container.read_header(file).document["bounds"]
    first, last = bounds[number : number + 2]
    with safe_open(file, framework="numpy") as opened:
        present = set(opened.keys())
        if "indptr" not in present:
            return {key: _slice(opened, key, first, last) for key in present}
        indptr = _slice(opened, "indptr", first, last + 1).astype(np.int64)
        start, stop = int(indptr[0]), int(indptr[-1])
        entries = {key: _slice(opened, key, start, stop) for key in present - {"keys", "indptr"}}
        keys = _slice(opened, "keys", first, last)
        return {"keys": keys, "indptr": indptr - start, **entries}


def _slice(opened: Any, key: str, start: int, stop: int) -> Array:
    """Some rows of an array of an open file; safetensors does not slice nothing."""
    if start < stop:
        rows: Array = opened.get_slice(key)[start:stop]
        return rows
    empty: Array = opened.get_tensor(key)[:0]
    return empty


# -- arrays and files --------------------------------------------------------------------------


def _joined(parts: Sequence[dict[str, Array]], key: str) -> Any:
    return np.concatenate([part[key] for part in parts]) if key in parts[0] else None


def _relation(
    parts: Sequence[dict[str, Array]], alphabet: tuple[str, ...], n_parts: int
) -> Relation:
    """One relation of the consecutive parents of all parts."""
    lengths = [np.diff(part["indptr"].astype(np.int64)) for part in parts]
    counts = None
    if any("counts" in part for part in parts):
        counts = np.concatenate(
            [part.get("counts", np.ones(len(part["parts"]), np.uint8)) for part in parts]
        )
    return Relation(
        offsets(np.concatenate(lengths)),
        narrow(np.concatenate([part["parts"].astype(np.int64) for part in parts])),
        narrow(np.concatenate([part["roles"].astype(np.int64) for part in parts])),
        alphabet,
        n_parts,
        None if counts is None else narrow(counts),
    )


def _split_file(folder: Path, level: int, shard: int) -> Path:
    return folder / f"split-{level}-{shard:05d}.saen"


def _range_file(folder: Path, level: int, number: int) -> Path:
    return folder / f"level-{level}-{number:05d}.saen"


def _top_file(folder: Path, shard: int) -> Path:
    return folder / f"top-{shard:05d}.saen"
