"""Large tensors in huge pages: fresh memory is ready sooner."""

from __future__ import annotations

import os

import torch

SWITCH = "THP_MEM_ALLOC_ENABLE"


def use_huge_pages() -> None:
    """Ask torch to put large tensors into huge pages, where the system has them.

    Tensors of more than 32 MB get fresh memory from the system every time. In pages of 4 kB, making
    it ready takes a step of training as long as the work itself. torch reads its switch once, when
    it makes its first tensor: a program that has made tensors before stays as it is, and so does
    one that has set the switch itself.
    """
    if SWITCH in os.environ:
        return
    os.environ[SWITCH] = "1"
    try:
        torch.empty(1)
    finally:
        del os.environ[SWITCH]
