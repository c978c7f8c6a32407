"""SAEN in PyTorch: shift, aggregate, extract, for many networks at once."""

import os

import torch

if hasattr(os, "register_at_fork"):  # not on Windows
    # GNU OpenMP hangs in a forked process if its parent has computed with several threads.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
