"""Reuse the memory of large tensors between training steps."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

MAX_REUSED_BYTES = 1 << 27
"""Larger arrays are returned to the system: kept, they leave holes that nothing else fills."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # constants of glibc's malloc.h
_DEFAULTS = {_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}  # where glibc's own rule ends


_ours = False
_blocks, _lock = 0, Lock()


def claim_process() -> None:
    """Let `reused_memory` change the allocator: this process runs nothing but saen."""
    global _ours
    _ours = True


@contextmanager
def reused_memory() -> Iterator[None]:
    """Keep freed memory for the next allocation inside this block, and release it afterwards.

    Several threads may be inside at a time: it is released when the last of them leaves.

    glibc returns arrays of more than 32 MB to the system as soon as they are freed. A training step
    that needs them again gets fresh pages, and preparing those takes the system as long as the step
    itself. Other C libraries are left alone. Afterwards the thresholds are where glibc's own rule
    would end, but it does not move them any more; so this does nothing in somebody else's process.
    """
    global _blocks
    if not _ours:
        yield
        return
    mallopt, malloc_trim = _c_function("mallopt"), _c_function("malloc_trim")
    if mallopt is None or malloc_trim is None:
        yield
        return
    with _lock:
        _blocks += 1
        mallopt(_MMAP_THRESHOLD, MAX_REUSED_BYTES)
        mallopt(_TRIM_THRESHOLD, -1)  # never trim
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                for threshold, size in _DEFAULTS.items():
                    mallopt(threshold, size)
                malloc_trim(0)


def trim_memory() -> None:
    """Return what is free inside the heap to the system: after much work, before other work."""
    trim = _c_function("malloc_trim")
    if _ours and trim is not None:
        trim(0)


def _c_function(name: str) -> Callable[..., int] | None:
    """A function of the C library of this process, or None if it has none of that name."""
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return function
