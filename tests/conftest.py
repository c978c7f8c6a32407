"""What all tests share: a cache of their own, the benchmark datasets, hypothesis' settings."""

from __future__ import annotations

import os

# Before numpy and torch are imported: parallel workers have one core each, and one thread gives
# the same bits everywhere.
os.environ["OMP_NUM_THREADS"] = "1"

import random
import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, Phase, settings

from saen import Graphs

# What a shell without job control runs in the background ignores Ctrl-C, with its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The fuzzer itself is no test, and atheris has no wheel for every platform.
collect_ignore = [] if find_spec("atheris") else ["fuzz/guided.py", "fuzz/__main__.py"]

# `make fuzz` sets SAEN_FUZZ to the number of random examples of every property.
settings.register_profile(
    "default",
    max_examples=18,
    deadline=None,
    print_blob=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "long",
    parent=settings.get_profile("default"),
    max_examples=int(os.environ.get("SAEN_FUZZ", 1000)),
)
settings.register_profile(
    "unshrunk",  # for mutants, where any failure will do
    parent=settings.get_profile("default"),
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("long" if "SAEN_FUZZ" in os.environ else "default")


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads it
def pytest_configure(config: pytest.Config) -> None:
    """Draw a seed for the random examples of this run, unless --hypothesis-seed gives one."""
    if config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    """How to run the same random examples again."""
    return f"replay: --hypothesis-seed={config.getoption('hypothesis_seed')}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With -q there is no header: say it where something failed."""
    if terminalreporter.stats.get("failed"):
        seed = terminalreporter.config.getoption("hypothesis_seed")
        terminalreporter.write_line(f"replay the random examples: --hypothesis-seed={seed}")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing that a test does reaches the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAEN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _auto_is_a_cpu() -> Iterator[None]:
    """Tests that do not ask for a GPU run on the CPU, where results are the same bit for bit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saen.network.devices._has_driver", lambda: False)
        yield


@pytest.fixture(scope="session")
def dataset(_own_cache: None) -> Callable[[str], Graphs]:
    """`dataset("MUTAG")`: a benchmark dataset from `SAEN_DATA`; skips where it is missing."""
    from saen.io.loading import load_dataset
    from saen.io.sources.local import locate

    def load(name: str) -> Graphs:
        if locate(name) is None:
            pytest.skip(f"{name} not found: set SAEN_DATA to the folder of {name}.zip")
        return load_dataset(name)

    return load


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give mutmut 3.8, which knows pytest 8, the name of a test where it looks for it."""
    if "MUTANT_UNDER_TEST" in os.environ:
        for item in items:
            item._nodeid = item.nodeid
