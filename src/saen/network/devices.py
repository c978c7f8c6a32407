"""Where networks run: on the CPU or on a GPU. Imports torch only to ask for a GPU."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from saen._util.lazy import torch
from saen.errors import InputError

CPU = "cpu"
_PROCESS = os.getpid()


def compute_after_fork() -> None:
    """One thread in a forked process: GNU OpenMP hangs there if its parent has used several."""
    if os.getpid() != _PROCESS:
        torch.set_num_threads(1)


def choose_device(name: str) -> str:
    """The device of that name, as torch names it; `auto` is a GPU where there is one.

    >>> choose_device("cpu")
    'cpu'
    """
    if name == "auto":
        return "cuda" if _has_driver() and torch.cuda.is_available() else CPU
    if name == CPU:
        return CPU
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"unknown device {name!r}: use auto, cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError('no CUDA device is available: use device="cpu" or "auto"')
    return str(device)


def device_name(device: str | torch.device) -> str:
    """What results should say they were computed on."""
    if device == CPU:
        return CPU
    kind = torch.device(device)
    return torch.cuda.get_device_name(kind) if kind.type == "cuda" else kind.type


def _has_driver() -> bool:
    """Whether there is a driver of GPUs (NVIDIA's or AMD's), without which torch sees none."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return Path("/dev/kfd").exists()
    return True
