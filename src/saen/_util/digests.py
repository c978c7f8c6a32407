"""Digests of what a result depends on."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

import numpy as np

from saen._util.remote import local_copy


def digest_of(*things: Any) -> str:
    """A digest of arrays, and of settings as JSON.

    >>> digest_of({"depth": 2}, np.arange(3)) == digest_of({"depth": 2}, np.arange(4))
    False
    """
    state = blake2b(digest_size=16)
    for thing in things:
        if isinstance(thing, np.ndarray):
            state.update(f"{thing.dtype.str} {thing.shape}".encode())
            state.update(np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data)
        else:
            state.update(json.dumps(thing, sort_keys=True, default=_plain).encode())
    return state.hexdigest()


def file_checksum(path: Path) -> str:
    """The digest of a file."""
    with local_copy(path) as local, local.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, asdict(value)]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)
