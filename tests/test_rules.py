"""The rules that `make lint` enforces."""

from __future__ import annotations

import pytest

from tests.rules import broken, layers


@pytest.mark.parametrize(
    ("place", "source", "expected"),
    [
        ("data/x.py", 'y = LazyModule("saen.report.page")', "saen.report.page is above data"),
        ("jobs/x.py", 'y = LazyModule("saen.learning.splits")', None),
        ("io/x.py", "from saen.data._hidden import f", "_hidden is private to data"),
        ("io/x.py", "from saen.data.open import _f", "_f is private to data"),
        ("data/x.py", "from saen.data._hidden import f", None),
        (
            "io/x.py",
            "from sklearn.utils._x import f",
            "sklearn.utils._x is private",
        ),
        ("io/x.py", "os.register_at_fork(f)", "register_at_fork changes the process of whoever"),
        ("cli/x.py", "signal.signal(2, f)", None),
        ("io/x.py", "import lxml.etree", "pyproject.toml does not declare lxml"),
        ("io/x.py", "from sklearn.svm import SVC", None),
        ("jobs/x.py", "if isinstance(model, Estimator | FittedBlend): pass", "ask a method"),
        ("jobs/x.py", "y = {FittedCounts: 1}[type(model)]", "ask a method"),
        (
            "jobs/x.py",
            "if type(model) is FittedBlend: pass",
            "ask a method",
        ),
        ("report/x.py", "y = hasattr(model.fitted_, 'module')", "ask a method"),
        ("report/x.py", "y = model.fitted_.kind == 'networks'", "ask a method"),
        ("learning/x.py", "if model.kind in ('counts', 'blend'): pass", "ask a method"),
        ("learning/models/x.py", "if isinstance(model, FittedBlend): pass", None),
        ("jobs/x.py", "if isinstance(model, Estimator) and header.kind == 'model': pass", None),
    ],
)
def test_rules_see_what_breaks_them(place: str, source: str, expected: str | None) -> None:
    found = list(broken(place, source, layers()))
    assert found == [] if expected is None else expected in found[0]
