"""SAEN: shift, aggregate, extract, for many networks at once; trained in PyTorch.

`architecture`, `settings`, `devices` and `forward` (predictions on a CPU) need no torch, which
takes seconds to import. So the names below are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saen.network.architecture import Architecture
    from saen.network.loss import Task
    from saen.network.model import SAEN
    from saen.network.settings import Settings
    from saen.network.training import train

__all__ = ["SAEN", "Architecture", "Settings", "Task", "train"]

_HOME = {
    "SAEN": "saen.network.model",
    "Architecture": "saen.network.architecture",
    "Settings": "saen.network.settings",
    "Task": "saen.network.loss",
    "train": "saen.network.training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'saen.network' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
