"""Clusters of Ray on this machine, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import pytest

_TOKEN = token_hex(32)  # Ray reads it once per process


@contextmanager
def ray_cluster(head_cpus: int, **system: int) -> Iterator[Any]:
    """A cluster of one node; `$RAY_ADDRESS` is its address."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="ray-") as folder:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", _TOKEN)
        patch.setenv("RAY_TMPDIR", folder)  # where the address of the head is noted
        (Path(folder) / "ray").mkdir()
        from ray.cluster_utils import Cluster

        head = {
            "num_cpus": head_cpus,
            "include_dashboard": False,
            "temp_dir": folder,
            "_system_config": system,
        }
        cluster = Cluster(initialize_head=True, head_node_args=head)
        patch.setenv("RAY_ADDRESS", cluster.address)
        try:
            yield cluster
        finally:
            cluster.shutdown()
