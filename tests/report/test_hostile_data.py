"""Pages about a dataset of somebody who hopes that they run what is in it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.cli.commandline import invoke
from tests.report.hostile import HOSTILE, POLICY, TAG, check_inert, hostile_dataset, hostile_pages
from tests.report.html_reader import read_html

pytest.importorskip("matplotlib", reason="needs the extra 'plots'")


@pytest.mark.slow
def test_pages_of_hostile_data_hold_text_only(tmp_path: Path) -> None:
    for file in hostile_pages(tmp_path):
        page = read_html(file.read_text(encoding="utf-8"))
        check_inert(page)
        policies = [
            meta.attributes["content"]
            for meta in page.all("meta")
            if meta.attributes.get("http-equiv") == "Content-Security-Policy"
        ]
        assert policies == [POLICY]
        assert not {*"\u202e\u2066\x1b"} & {*file.read_text(encoding="utf-8")}
    assert TAG in page.text  # it is there, as text
    assert "⟨U+202E⟩⟨U+2066⟩txt.exe⟨U+001B⟩[31m" in page.text


def test_predictions_of_hostile_data_are_written_as_they_are(tmp_path: Path) -> None:
    """Formulas too, as the page on security says: what is read again must be the same."""
    data, model = hostile_dataset(tmp_path), tmp_path / "model.saen"
    invoke("train", data, "--out", model, "--preset", "network", "--epochs", 1)
    invoke("predict", model, data, "--out", tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv")
    assert table["id"].tolist() == [f"{HOSTILE[n % 5]}{n}" for n in range(24)]
    assert any(text.startswith("=") for text in table["id"])
