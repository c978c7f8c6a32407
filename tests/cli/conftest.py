"""A small model, and the graphs that it learned from."""

from __future__ import annotations

from pathlib import Path

import pytest

import saen
from saen import Graphs, SAENClassifier, generate_threads
from tests.cli.commandline import SMALL


@pytest.fixture(scope="session")
def threads() -> Graphs:
    return generate_threads(30, average_nodes=12, seed=1)


@pytest.fixture(scope="session")
def classifier(threads: Graphs) -> SAENClassifier:
    return SAENClassifier(radii=(0, 1), **SMALL).fit(threads, threads.targets)


@pytest.fixture
def model(classifier: SAENClassifier, threads: Graphs, tmp_path: Path) -> Path:
    """The file of the model, beside that of the graphs."""
    classifier.save(tmp_path / "model.saen")
    saen.save(threads, tmp_path / "threads.saen")
    return tmp_path / "model.saen"
