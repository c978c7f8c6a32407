"""SAEN: shift, aggregate, extract, for many networks at once; trained in PyTorch.

`architecture`, `settings`, `devices` and `forward` (predictions on a CPU) need no torch, which
takes seconds to import.
"""

import os
import sys


def _one_thread() -> None:
    """GNU OpenMP hangs in a forked process if its parent has computed with several threads."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_one_thread)
