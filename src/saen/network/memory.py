"""Memory of large tensors: in huge pages, and kept while steps repeat."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

SWITCH = "THP_MEM_ALLOC_ENABLE"
"""Of torch, in the environment."""
LARGEST_KEPT = 1 << 27
"""Bytes of the largest arrays that are kept: larger ones leave holes that nothing else fills."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of glibc's malloc.h
_USUAL = {_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}  # where glibc's own rule ends


def use_huge_pages() -> None:
    """Ask torch to put large tensors into huge pages, where the system has them.

    Tensors of more than 32 MB get fresh memory from the system every time. In pages of 4 kB, making
    it ready takes a step of training as long as the work itself. torch reads its switch once, when
    it makes its first tensor, and then for all tensors of the process: a program that has made
    tensors before stays as it is, and so does one that has set the switch itself. The environment
    is changed for a moment only.
    """
    if SWITCH in os.environ:
        return
    os.environ[SWITCH] = "1"
    try:
        torch.empty(1, device="cpu")
    finally:
        del os.environ[SWITCH]


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory for the next use inside this block, and give it back afterwards.

    glibc hands arrays of more than 32 MB back to the system as soon as they are freed. A step of
    training that asks for them again gets fresh pages, and making those takes the system as long as
    the step itself. With another C library nothing happens, nor with a glibc that refuses such a
    threshold. Afterwards the thresholds are where glibc's own rule ends; it no longer moves them.
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
