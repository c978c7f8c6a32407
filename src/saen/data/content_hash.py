"""Content keys: 128 bits that say what an object is made of, wherever and whenever it is met.

A key is built from attribute values with their type, role names and the keys of the parts. It does
not depend on the order of objects, on the machine or on the run. Keys only propose equality:
`saen.data.identical` compares what they propose, so a collision costs time, never correctness.

Shapes: keys of n objects are (n, 2) unsigned 64-bit integers, two independent lanes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Apply, Array, Ints, row_blocks, segment_reduce
from saen.data.hierarchy import Attributes, Hierarchy
from saen.data.vocabulary import Value

Keys = NDArray[np.uint64]

MASKS = (np.uint64(2**64 - 1), np.uint64(2**64 - 1))
"""Bits of either lane that are kept; tests cut them to make collisions happen."""

_SALTS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


def value_keys(values: list[Value] | list[str], kind: str) -> Keys:
    """Keys of plain values (labels, role names); `kind` keeps the two apart.

    >>> value_keys([1, "1"], "label").tolist()[0] == value_keys(["1"], "label").tolist()[0]
    False
    """
    digests = [
        hashlib.blake2b(json.dumps([kind, value]).encode(), digest_size=16).digest()
        for value in values
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def attribute_keys(attributes: Attributes) -> Keys:
    """Keys of the objects of a bottom level."""
    lanes = [np.full(len(attributes), salt) for salt in _SALTS]
    if attributes.codes is not None and attributes.vocabulary is not None:
        words = np.vstack(
            [
                value_keys(list(attributes.vocabulary), "label"),
                value_keys([""], "unseen"),  # the last row, where the code -1 finds it
            ]
        )
        lanes = [mix(lane ^ words[attributes.codes, i]) for i, lane in enumerate(lanes)]
    if attributes.vectors is not None:
        # A float32 and its float64 copy are one value, so both hash as float64.
        bits = attributes.vectors.astype(np.float64).view(np.uint64)
        for column in bits.T:
            lanes = [
                mix(lane * salt + column) for lane, salt in zip(lanes, _SALTS[::-1], strict=True)
            ]
    return _masked(lanes)


def row_keys(
    indptr: Ints,
    codes: Ints,
    counts: Array,
    part_keys: Keys,
    alphabet: tuple[str, ...],
    apply: Apply = map,
) -> Keys:
    """Keys of parents from the multiset of their (role, part) entries.

    `codes` holds role · n_parts + part. The sum over entries commutes, so order does not matter.
    Blocks of rows are hashed by `apply`, `map` or that of a pool of threads.
    """
    roles = value_keys(list(alphabet), "role")
    n_parts = max(len(part_keys), 1)
    table = None
    if len(roles) * len(part_keys) <= len(codes):  # fewer distinct entries than entries
        table = [_entry_lane(part_keys[None], roles[:, None], i).ravel() for i in (0, 1)]
    keys = np.empty((len(indptr) - 1, 2), dtype=np.uint64)

    # In blocks: temporary arrays that fit the cache, and that the allocator keeps for the next one.
    def hash_block(start: int, stop: int) -> None:
        entries = slice(int(indptr[start]), int(indptr[stop]))
        weights = counts[entries].astype(np.uint64)
        if table is None:
            role, part = np.divmod(codes[entries], n_parts)
            entry_parts, entry_roles = part_keys[part], roles[role]
        for i in (0, 1):
            lane = (
                _entry_lane(entry_parts, entry_roles, i)
                if table is None
                else table[i][codes[entries]]
            )
            lane *= weights
            sums = segment_reduce(np.add, lane, indptr[start : stop + 1] - indptr[start])
            keys[start:stop, i] = mix(sums ^ _SALTS[i]) & MASKS[i]

    if len(keys):
        list(apply(hash_block, *zip(*row_blocks(indptr), strict=True)))
    return keys


def level_keys(hierarchy: Hierarchy) -> list[Keys]:
    """Keys of the objects of every level, bottom first, shape (objects, 2) each."""
    keys = [attribute_keys(hierarchy.attributes)]
    for relation in hierarchy.relations:
        # Stored relations have narrow integers, which cannot hold the codes.
        indptr, roles, parts = (
            column.astype(np.int64) for column in (relation.indptr, relation.roles, relation.parts)
        )
        codes, counts = roles * relation.n_parts + parts, relation.multiplicity
        keys.append(row_keys(indptr, codes, counts, keys[-1], relation.alphabet))
    return keys


def _entry_lane(part: Keys, role: Keys, lane: int) -> NDArray[np.uint64]:
    """One lane of the key of (role, part), last axis reduced."""
    mine = mix(part[..., lane] ^ role[..., lane])
    return mix(mine + mix(part[..., 1 - lane] + role[..., 1 - lane]) * _SALTS[lane])


def mix(x: NDArray[Any]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every input bit moves every output bit."""
    x = x ^ (x >> np.uint64(30))
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _masked(lanes: list[NDArray[np.uint64]]) -> Keys:
    return np.column_stack([lane & mask for lane, mask in zip(lanes, MASKS, strict=True)])
