from __future__ import annotations

import resource

import pytest
import torch

from saen import memory
from saen.memory import kept_memory

glibc = pytest.mark.skipif(memory._function("mallopt") is None, reason="another C library")
SIZE = 48 << 20  # more than glibc keeps by itself


def faults() -> int:
    """Fresh pages that the system makes for an array like one that was just freed, at best."""
    made = []
    for _ in range(6):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        array = torch.empty(SIZE, dtype=torch.uint8).fill_(1)
        del array
        made.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return min(made)


@glibc
def test_freed_memory_is_used_again_inside_and_given_back_outside():
    outside = faults()
    with kept_memory():
        inside = faults()
    assert outside > 100
    assert inside < outside / 10
    assert faults() > 100


@glibc
def test_an_error_ends_the_keeping_too():
    with pytest.raises(ZeroDivisionError), kept_memory():
        raise ZeroDivisionError
    assert faults() > 100


def test_without_these_functions_nothing_happens(monkeypatch):
    assert memory._function("no_such_function_of_any_library") is None
    monkeypatch.setattr(memory, "_function", lambda name: None)
    with kept_memory():
        pass
