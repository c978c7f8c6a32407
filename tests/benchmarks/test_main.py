"""What `python -m benchmarks` keeps of earlier runs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command


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
