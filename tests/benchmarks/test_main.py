"""What `python -m benchmarks` keeps of earlier runs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command


@pytest.mark.parametrize("rows", [[], [{"what": "new"}]])
def test_a_part_that_measures_nothing_keeps_the_rows_of_a_full_run(rows, tmp_path, monkeypatch):
    found = [[{"what": "full"}], rows]
    part = SimpleNamespace(
        TITLE="A long part",
        run=lambda _: {"rows": found.pop(0), "checks": [], "skipped": []},
        markdown=lambda document: str(document["rows"]),
    )
    monkeypatch.setattr(command, "PARTS", {"long": part})
    for _ in range(2):
        command.main(["long", "--out", str(tmp_path)])
    document = json.loads((tmp_path / "benchmarks.json").read_text(encoding="utf-8"))
    assert document["parts"]["long"]["rows"] == (rows or [{"what": "full"}])
