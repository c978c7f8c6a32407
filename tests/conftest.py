"""What all tests share: a cache of their own, the benchmark datasets, hypothesis' settings."""

from __future__ import annotations

import os

# Before numpy and torch are imported: workers side by side have one core each.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from saen import Graphs

# The same examples on every run: a test that fails here fails everywhere.
settings.register_profile(
    "saen",
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("saen")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing that a test does reaches the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAEN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def dataset(_own_cache: None) -> Callable[[str], Graphs]:
    """`dataset("MUTAG")`: a benchmark dataset from `SAEN_DATA`; skips where it is not at hand."""
    from saen.io.loading import load_dataset, locate

    def load(name: str) -> Graphs:
        if locate(name) is None:
            pytest.skip(f"{name} is not at hand: set SAEN_DATA to the folder of {name}.zip")
        return load_dataset(name)

    return load
