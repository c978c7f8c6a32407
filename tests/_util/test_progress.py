"""Lines about long work where there is no terminal."""

from __future__ import annotations

import time

import pytest

from saen._util import progress
from saen._util.progress import bar


def test_stages_that_take_long_have_lines_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress, "notify", lines.append)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.05)
    with bar("reading graphs", 8) as update:
        update(2)
        time.sleep(0.5)
    with bar("training", None):  # whose share is not known
        time.sleep(0.08)
    with bar("predicting", 8):
        pass
    time.sleep(0.2)
    assert lines[0] == "reading graphs: 25 % done, 0 s so far"
    assert 2 <= len(lines) - 1 <= 5  # at about 0.05, 0.1, 0.2 and 0.4 seconds
    assert lines[-1] == "training: 0 s so far"
    assert capfd.readouterr() == ("", "")


def test_libraries_are_silent_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "notify", None)  # as it is unless a command runs
    monkeypatch.setattr(progress, "FIRST_LINE", 0.01)
    with bar("training", 1):
        time.sleep(0.05)
    assert capfd.readouterr() == ("", "")


def test_bars_that_are_not_wanted_have_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress, "notify", lines.append)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.01)
    with bar("training", 1, shown=False):
        time.sleep(0.05)
    assert lines == []
