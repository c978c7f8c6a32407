from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from saen.network import memory
from saen.network.memory import kept_memory

glibc = pytest.mark.skipif(memory._function("mallopt") is None, reason="another C library")
SIZE = 48 << 20  # more than glibc keeps by itself


def faults() -> int:
    """Fresh pages that the system makes for an array like one that was just freed, at best."""
    made = []
    for _ in range(12):
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
    assert outside > 10  # huge ones, where there are some
    assert inside < outside / 10
    assert faults() > 10


@glibc
def test_an_error_ends_the_keeping_too():
    with pytest.raises(ZeroDivisionError), kept_memory():
        raise ZeroDivisionError
    assert faults() > 10


def test_without_these_functions_nothing_happens(monkeypatch):
    assert memory._function("no_such_function_of_any_library") is None
    monkeypatch.setattr(memory, "_function", lambda name: None)
    with kept_memory():
        pass


PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
COUNT = """
import json, os, resource, torch
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.empty(64 << 20, dtype=torch.uint8).fill_(1)
pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(json.dumps({"pages": pages, "switch": os.environ.get("THP_MEM_ALLOC_ENABLE")}))
"""


def fresh(first: str, **environment: str) -> dict[str, object]:
    """Pages that a large tensor needs in a process that runs `first` before, and torch's switch."""
    known = {key: value for key, value in os.environ.items() if key != "THP_MEM_ALLOC_ENABLE"}
    done = subprocess.run(
        [sys.executable, "-c", first + COUNT],
        capture_output=True,
        text=True,
        check=True,
        env=known | environment,
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(
    not PAGES.exists() or "[never]" in PAGES.read_text(), reason="no huge pages on this system"
)
def test_large_tensors_lie_in_huge_pages_and_the_environment_is_as_before():
    found = fresh("import saen.network.model")
    assert found["pages"] < 2000  # of 16384 small ones
    assert found["switch"] is None


@pytest.mark.skipif(
    not PAGES.exists() or "[madvise]" not in PAGES.read_text(), reason="no choice on this system"
)
def test_what_the_user_has_set_or_done_before_stays():
    found = fresh("import saen.network.model", THP_MEM_ALLOC_ENABLE="0")
    assert found["pages"] > 16000
    assert found["switch"] == "0"
    assert fresh("import torch; torch.ones(1); import saen.network.model")["pages"] > 16000
