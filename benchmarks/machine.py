"""The machine and the libraries of a measurement."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT

LIBRARIES = (
    "saen",
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "safetensors",
    "torch",
    "torch-geometric",
    "grakel",
)


def describe() -> dict[str, Any]:
    """Processor, memory, system, and the versions of the libraries."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        **({"gpu": gpu} if (gpu := _gpu()) else {}),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": {name: found for name in LIBRARIES if (found := installed(name))},
    }


def commit() -> str | None:
    """The commit of this checkout, with a plus if its files differ.

    Without git it is `$SAEN_COMMIT`, or None.
    """
    git = ["git", "-C", str(ROOT)]
    try:
        number, changes = (
            subprocess.run([*git, *what], capture_output=True, text=True, check=True).stdout
            for what in (
                ("rev-parse", "--short=7", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no", "src", "benchmarks"),
            )
        )
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("SAEN_COMMIT")
    return number.strip() + ("+" if changes else "")


def installed(library: str) -> str | None:
    """The version of an installed library."""
    if library == "saen":
        import saen  # which may be on the path without being installed

        return saen.__version__
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _gpu() -> str | None:
    """The name of the GPU, if torch finds one."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
