"""Memory that is freed and asked for again: kept by the process while steps repeat."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LARGEST_KEPT = 1 << 27
"""Bytes of the largest arrays that are kept: larger ones leave holes that nothing else fills."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of glibc's malloc.h
_USUAL = {_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}  # where glibc's own rule ends


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory for the next use inside this block, and give it back afterwards.

    glibc hands arrays of more than 32 MB back to the system as soon as they are freed. A step of
    training that asks for them again gets fresh pages, and making those takes the system as long as
    the step itself. With another C library nothing happens.
    """
    mallopt, trim = _function("mallopt"), _function("malloc_trim")
    if mallopt is None or trim is None:
        yield
        return
    mallopt(_MMAP_THRESHOLD, LARGEST_KEPT)
    mallopt(_TRIM_THRESHOLD, -1)  # never
    try:
        yield
    finally:
        for threshold, size in _USUAL.items():
            mallopt(threshold, size)
        trim(0)


def _function(name: str) -> Callable[..., int] | None:
    """A function of the C library of this process, if it has one of that name."""
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # no such function; no such library
        return None
    return found
