"""Modules that wait until something in them is used."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from saen.cli.lazy import import_without

NAMES = ("eager_test", "slow_test", "slow_test.inner")


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`eager_test`, which imports the package `slow_test` for one function; its file."""
    (tmp_path / "slow_test").mkdir()
    (tmp_path / "slow_test" / "__init__.py").write_text("VALUE = 1\n")
    (tmp_path / "slow_test" / "inner.py").write_text("VALUE = 2\n")
    file = tmp_path / "eager_test.py"
    file.write_text("import slow_test\ndef value():\n    return slow_test.VALUE\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in NAMES:
        monkeypatch.setitem(sys.modules, name, sys)  # to be forgotten after the test
        del sys.modules[name]
    return file


@pytest.mark.usefixtures("modules")
def test_import_without_a_module_leaves_it_for_its_first_use() -> None:
    import_without("eager_test", "slow_test")
    assert "slow_test" not in sys.modules
    assert sys.modules["eager_test"].value() == 1
    assert sys.modules["slow_test"].__file__ is not None
    assert sys.modules["eager_test"].value() == 1


@pytest.mark.parametrize(
    "use", ["from slow_test import VALUE", "from slow_test.inner import VALUE"]
)
def test_import_without_a_module_that_is_used_at_once_imports_it(modules: Path, use: str) -> None:
    modules.write_text(use)
    import_without("eager_test", "slow_test")
    value = sys.modules["eager_test"].VALUE
    assert value == (2 if "inner" in use else 1)
    assert sys.modules["slow_test"].VALUE == 1


def test_import_without_a_module_keeps_one_that_is_there(modules: Path) -> None:
    slow = importlib.import_module("slow_test")
    import_without("eager_test", "slow_test")
    assert sys.modules["slow_test"] is slow is sys.modules["eager_test"].slow_test


def test_import_without_a_module_survives_a_look_at_all_modules(modules: Path) -> None:
    modules.write_text("import slow_test\nHAS = hasattr(slow_test, '__file__')\n")
    import_without("eager_test", "slow_test")
    assert not sys.modules["eager_test"].HAS
    assert "slow_test" not in sys.modules


def test_import_without_a_module_cleans_up_where_the_other_fails(modules: Path) -> None:
    modules.write_text("import slow_test\nraise ValueError('broken')")
    with pytest.raises(ValueError, match="broken"):
        import_without("eager_test", "slow_test")
    assert "slow_test" not in sys.modules
