"""What the tests of Triton kernels share."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest
import torch

from saen.network import fused


@pytest.fixture
def kernel_device(monkeypatch):
    """A GPU if there is one; else the CPU, with the kernels interpreted."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if (reason := _why_not_interpreted()) is not None:
        pytest.skip(reason)
    monkeypatch.setattr(fused, "is_available", lambda device: True)
    return torch.device("cpu")


def _why_not_interpreted() -> str | None:
    try:
        found = tuple(int(part) for part in version("triton").split(".")[:2])
    except PackageNotFoundError:
        return "Triton is not installed"
    # Earlier ones convert arrays to numbers in a way that numpy 2.4 refuses.
    return None if found >= (3, 9) else "the interpreter needs Triton 3.9"
