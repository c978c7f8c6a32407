"""Presets from files that somebody else wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from saen.errors import SaenError
from saen.learning.presets import load_preset


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"[defaults]\nepochs = {'9' * 5000}", "not valid TOML"),
        (f"[defaults]\nepochs = 0x{'f' * 5000}", "an integer does not fit into 64 bits"),
        (f"[grid]\nhidden = [[[{10**30}], [2]]]", "an integer does not fit into 64 bits"),
        ("defaults" + ".a" * 1200 + " = 1", "nested too deeply"),
        ("a" + ".a" * 20_000 + " = 1", "a preset has at most 32,768 bytes"),
        ("a = " + "[" * 30_000, "not valid TOML"),
        ("[defaults]\nlayers = 3", "layers must be a list of sizes per level"),
        ("[defaults]\nlayers = []", "layers must be a list of sizes per level"),
        ("[grid]\nlayers = [3]", "layers must be a list of sizes per level"),
        ("datasets = 3", "expected a table"),
        ("defaults = 3", "expected a table"),
        ("[defaults\n", "not valid TOML"),
        ("[defaults]\nepoch = 3", r"unknown key 'epoch' \(did you mean epochs\?\)"),
        ("[default]\nepochs = 3", r"unknown key 'default' \(did you mean defaults\?\)"),
        ("[datasets.X]\nnegative_slop = 0.1", r"did you mean negative_slope\?"),
        ("[defaults]\ndevice = 'cpu'", "unknown key 'device'"),
        ("[grid]\nepochs = 3", "must be a list"),
        (f"[grid]\ndropout = {[0.5] * 200}\nepochs = {[1] * 200}", "more than 10,000 combinations"),
    ],
)
def test_preset_that_is_no_good_is_refused_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(SaenError, match=message) as raised:
        load_preset(str(file))
    assert str(raised.value).startswith(f"{file}")
    assert len(str(raised.value)) < 1000


def test_preset_layers_stand_for_hidden_in_the_grid_too(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[grid]\nlayers = [[[2], [3, 1]], [[4], [5, 1]]]\n")
    assert load_preset(str(file)).choices() == [{"hidden": [[2], [3]]}, {"hidden": [[4], [5]]}]
