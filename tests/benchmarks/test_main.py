"""What `python -m benchmarks` keeps of earlier runs."""

from __future__ import annotations

import json
from functools import partial
from math import inf
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command
from benchmarks import measure


@pytest.mark.parametrize("left", [True, False])
def test_what_is_left_to_full_runs_keeps_their_rows(left, tmp_path, monkeypatch):
    found = [{"rows": ["full"]}, {"rows": [], "left_to_full_runs": left}]
    part = SimpleNamespace(
        TITLE="A long part",
        run=lambda _: {"checks": [], "skipped": [], **found.pop(0)},
        markdown=lambda document: str(document["rows"]),
    )
    monkeypatch.setattr(command, "PARTS", {"long": part})
    for _ in range(2):
        command.main(["long", "--out", str(tmp_path)])
    document = json.loads((tmp_path / "benchmarks.json").read_text(encoding="utf-8"))
    assert document["parts"]["long"]["rows"] == (["full"] if left else [])


def test_parts_keep_their_machine_and_commit(tmp_path, monkeypatch):
    part = SimpleNamespace(
        TITLE="A part",
        run=lambda _: {"checks": [], "skipped": []},
        markdown=lambda document: "",
    )
    monkeypatch.setattr(command, "PARTS", {"first": part, "second": part})
    here = command.machine.describe()
    for name, cpu, commit in (("first", "an older one", "abc1234"), ("second", here["cpu"], None)):
        monkeypatch.setattr(command.machine, "describe", lambda cpu=cpu: {**here, "cpu": cpu})
        monkeypatch.setattr(command.machine, "commit", lambda commit=commit: commit)
        command.main([name, "--out", str(tmp_path)])
    page = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    first, second = page.split("## A part")[1:]
    assert "(commit abc1234)" in first
    assert "on an older one" in first
    assert "(an older version of the code)" in second
    assert "; on " not in second


def test_gpu_stands_for_its_parts():
    names, _ = command._settings(["gpu", "floor"])
    assert names == [*command.GPU, "floor"]


def test_parts_that_fail_leave_the_others_alone(tmp_path, monkeypatch):
    def fails(_):
        raise OSError("no room left")

    def part(run):
        return SimpleNamespace(TITLE="A part", run=run, markdown=lambda document: "")

    parts = {"broken": part(fails), "sound": part(lambda _: {"checks": [], "skipped": []})}
    monkeypatch.setattr(command, "PARTS", parts)
    with pytest.raises(SystemExit, match="not measured: broken: OSError: no room left"):
        command.main(["broken", "sound", "--out", str(tmp_path)])
    document = json.loads((tmp_path / "benchmarks.json").read_text(encoding="utf-8"))
    assert list(document["parts"]) == ["sound"]


def test_measurements_end_in_time(monkeypatch):
    monkeypatch.setattr(measure, "_deadline", inf)
    command._settings(["--within", "0"])
    skipped = []
    case = partial(measure.measure, measure.peak_memory)
    assert measure.measured({"one": case}, skipped) == []
    assert skipped == [{"what": "one", "reason": "failed: no time was left"}]
