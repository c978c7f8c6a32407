"""How much memory this process has, where the system says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def resident_memory() -> int | None:
    """The resident size of this process, in bytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def peak_memory() -> int | None:
    """The largest resident size of this process so far, in bytes."""
    try:
        # What getrusage gives on Linux survives exec: it may be the parent's.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024
    except (OSError, IndexError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
