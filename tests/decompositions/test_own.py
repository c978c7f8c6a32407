"""Decompositions of one's own: by module and class, as plug-ins, and in saved models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import saen
from saen.decompositions import registry
from saen.decompositions.registry import decomposition_from_json, decomposition_to_json
from saen.errors import FileError, InputError
from tests.cli.commandline import fails, invoke

SOURCE = '''
"""Stars: every node with its neighbours, the first ones told apart by a limit."""
from dataclasses import dataclass, field
from typing import ClassVar

import saen


@dataclass(frozen=True)
class Stars(saen.Decomposition):
    """Every node, made of itself and its neighbours."""

    name: ClassVar[str] = "stars"
    radii: tuple[int, ...] = field(default=(0, 1), metadata={"help": "of the ego graphs"})

    def decompose(self, graphs):
        ego = saen.decompositions.Ego(self.radii, "degree", vocabulary=self.vocabulary)
        return ego.decompose(graphs)


def local():
    @dataclass(frozen=True)
    class Inner(Stars):
        pass

    return Inner()
'''
MODULE = "stars_of_somebody"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with a module that nobody has imported yet."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(folder)
    registry._plug_ins.cache_clear()
    yield folder
    sys.modules.pop(MODULE, None)
    registry._plug_ins.cache_clear()


def install(package: Path, value: str = f"{MODULE}:Stars") -> None:
    """As pip would: the metadata of a distribution with an entry point."""
    about = package / "stars-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stars\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[saen.decompositions]\nstars = {value}\n")
    assert entry_points(group="saen.decompositions", name="stars")


@pytest.fixture
def saved(package: Path, tmp_path: Path) -> Path:
    """A model over the class, whose module is then forgotten."""
    stars = import_module(MODULE).Stars((0, 2))
    threads = saen.generate_threads(20, average_nodes=8, seed=1)
    model = saen.SAENClassifier(stars, epochs=1, n_models=1, inner_folds=0)
    model.fit(threads, threads.targets).save(tmp_path / "model.saen")
    del sys.modules[MODULE]
    return tmp_path / "model.saen"


@pytest.mark.usefixtures("package")
def test_own_class_is_named_once_its_module_is_imported() -> None:
    with pytest.raises(InputError, match=f"import {MODULE} first"):
        saen.make_decomposition(f"{MODULE}:Stars")
    assert MODULE not in sys.modules
    stars = import_module(MODULE).Stars
    assert saen.make_decomposition(f"{MODULE}:Stars(radii=(0, 3))") == stars((0, 3))
    assert saen.SAENClassifier(f"{MODULE}:Stars").learner().spec.takes == "graphs"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os:path", "os:path is not a class derived from Decomposition"),
        ("os:paths", "the module os has no class paths"),
        ("__main__:Stars", "was defined in a script, where other programs do not find it"),
        ("os:path.join", "a class is written package.module:Class"),
        ("__main__.parts:Stars", "has not been imported"),
        ("x" * 9999 + ":Stars", "a class is written package.module:Class, not .{9,90}$"),
        (
            "no_such_package.parts:Stars",
            "--import no_such_package.parts COMMAND … in the folder of no_such",
        ),
        ("../evil:Stars", "a class is written package.module:Class"),
        ("stars", "unknown decomposition 'stars'.*or name a class of your own"),
    ],
)
def test_own_class_that_is_none_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        saen.make_decomposition(name)


def test_saved_model_over_an_own_class_loads_again_once_it_is_imported(saved: Path) -> None:
    threads = saen.generate_threads(5, average_nodes=8, seed=2)
    with pytest.raises(FileError, match=f"{saved}.*saen --import {MODULE}.*import {MODULE} first"):
        saen.load(saved)
    assert MODULE not in sys.modules  # nothing is imported because a file says so
    stars = import_module(MODULE).Stars
    model = saen.load(saved)
    assert type(model.decomposition_) is stars
    assert model.decomposition_.radii == (0, 2)
    assert model.predict(threads).shape == (5,)


def test_saved_model_whose_package_is_missing_says_so(saved: Path, package: Path) -> None:
    (package / f"{MODULE}.py").unlink()
    with pytest.raises(FileError, match=f"folder of {MODULE}, or with {MODULE} installed"):
        saen.load(saved)
    assert "stars_of_somebody:Stars" in invoke("inspect", saved).stdout


def test_installed_plug_in_is_listed_and_loaded_by_name(
    package: Path,
) -> None:
    install(package)
    listed = invoke("decompositions").stdout
    assert "stars" in listed
    assert "Every node, made of itself and its neighbours." in listed
    stars = saen.make_decomposition("stars(radii=(0,))")
    document = decomposition_to_json(stars)
    assert document["name"] == "stars"
    del sys.modules[MODULE]
    assert decomposition_from_json(document).settings() == stars.settings()


def test_installed_plug_in_that_is_broken_is_a_warning_in_the_list(package: Path) -> None:
    install(package, f"{MODULE}:Missing")
    with pytest.warns(UserWarning, match="'stars'.*cannot be imported"):
        assert "ego" in registry.installed_decompositions()
    with pytest.raises(InputError, match="cannot be imported"):
        saen.make_decomposition("stars")


@pytest.mark.usefixtures("package")
def test_own_class_inside_a_function_cannot_be_saved() -> None:
    local: Any = import_module(MODULE).local
    with pytest.raises(InputError, match="a model over Inner cannot be saved"):
        decomposition_to_json(local())


def test_command_line_imports_what_the_user_names(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the folder is found as the working directory
    monkeypatch.chdir(package)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    sys.modules.pop(MODULE, None)
    named = ["--decomposition", f"{MODULE}:Stars(radii=(0, 1))"]
    options = ["--preset", "network", "--epochs", "1"]
    invoke("train", "threads", "--out", "model.saen", *named, *options)
    del sys.modules[MODULE]
    sys.path.remove(str(package))  # as in a new process
    assert fails("predict", "model.saen", "threads") == (
        f"model.saen: the decomposition {MODULE}:Stars has not been imported: on the command line, "
        f"saen --import {MODULE} COMMAND … in the folder of {MODULE}, or with {MODULE} installed; "
        f"in Python, import {MODULE} first"
    )
    out = invoke("--import", MODULE, "predict", "model.saen", "threads").stdout
    assert out.startswith("id,prediction")
    assert f"cannot import {MODULE}2" in fails("compress", "threads", "-d", f"{MODULE}2:A")
