from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    found = fresh("import saen.model")
    assert found["pages"] < 2000  # of 16384 small ones
    assert found["switch"] is None


@pytest.mark.skipif(
    not PAGES.exists() or "[madvise]" not in PAGES.read_text(), reason="no choice on this system"
)
def test_what_the_user_has_set_or_done_before_stays():
    found = fresh("import saen.model", THP_MEM_ALLOC_ENABLE="0")
    assert found["pages"] > 16000
    assert found["switch"] == "0"
    assert fresh("import torch; torch.ones(1); import saen.model")["pages"] > 16000
