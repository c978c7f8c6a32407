"""The page on the default: what it costs, and how far its accuracy is from that before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import default


def run(per_repeat: list[float], half: float) -> dict[str, Any]:
    mean = sum(per_repeat) / len(per_repeat)
    score = {"mean": mean, "per_repeat": per_repeat, "interval": [mean - half, mean + half]}
    tried = [{"candidate": "part counts", "weight": 1.0}]
    protocol = {"repeats": len(per_repeat), "folds": 10}
    return {"accuracy": score, "log_loss": score, "protocol": protocol, "tried": tried}


def write(folder: Path, kind: str, name: str, document: dict[str, Any]) -> None:
    file = folder / "runs" / kind / name / "summary.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(document), encoding="utf-8")


def test_differences_are_over_the_repeats_that_both_runs_have() -> None:
    three, one = run([0.6, 0.8, 0.9], 0.1), run([0.55], 0.1)
    mean, low, high = default._change(one, three, "accuracy")
    assert mean == pytest.approx(-0.05)
    assert high - mean == pytest.approx(mean - low)
    assert high - low > 2 * 0.1 * 2**0.5  # one repeat of the other is less sure than three
    same = default._change(one, one, "accuracy")
    assert same == pytest.approx((0, -0.13134, 0.13134), abs=1e-5)  # t(18) √2 ÷ t(9) halves


def test_the_page_has_what_was_measured_and_nothing_else(tmp_path: Path) -> None:
    for kind in ("best", "before"):
        write(tmp_path, kind, "MUTAG", run([0.8], 0.1))
    write(tmp_path, "before", "PTC", run([0.6], 0.1))
    row: dict[str, Any] = {
        "cpu_seconds": 4.0,
        "wall_seconds": 3.0,
        "load_average": 1.5,
        "peak_bytes": 2e8,
    }
    row |= {"forecast": "12 s and 0.3 GB of memory"}
    row |= {"out_of_fold": {"accuracy": 0.9, "log_loss": 0.7}}
    machine = {"cpu": "abacus", "cores": 2}
    cost = {"default": [row] * 3, "counts": {"cpu_seconds": 2.0}, "gpu": None, "machine": machine}
    (tmp_path / "default").mkdir()
    for name in ("MUTAG", "PTC"):
        (tmp_path / "default" / f"{name}.json").write_text(json.dumps(cost | {"name": name}))
    lines = default.page(tmp_path).splitlines()
    for name in ("MUTAG", "PTC"):
        assert (
            f"| {name} | 4.0 | 2.0 | 3.0 | 1.5 | 200 | 12 s and 0.3 GB of memory | 90.0 % |"
            in lines
        )
    assert [line for line in lines if line.startswith("| PTC")] == [lines[9]]
    assert "| MUTAG | +10.00 | -0.1000 | 3 |" in lines
    assert "- MUTAG: part counts 1.00" in lines
