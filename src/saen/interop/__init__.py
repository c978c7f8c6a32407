"""Graphs from and to other libraries; each library is imported only when it is used."""

from saen.interop.networkx import from_networkx, to_networkx
from saen.interop.pyg import from_pyg
from saen.interop.scipy import from_scipy

__all__ = ["from_networkx", "from_pyg", "from_scipy", "to_networkx"]
