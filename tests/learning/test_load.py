"""What a file says is data: no name in it is imported, no path in it is read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from saen import load
from saen.errors import SaenError
from tests.fuzz.kinds import KINDS

EVIL = "evil_module_of_a_file"
NAMES = [EVIL, f"{EVIL}.Ego", f"{EVIL}:Ego", f"__import__('{EVIL}')", f"{EVIL}.Ego()"]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that exists once the module was imported, which could be."""
    mark = tmp_path / "ran"
    (tmp_path / f"{EVIL}.py").write_text(f"open({str(mark)!r}, 'w')\nclass Ego: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return mark


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["decomposition", "estimator", "kind"])
def test_load_imports_nothing_that_a_model_names(
    tmp_path: Path, ran: Path, key: str, name: str
) -> None:
    [sample] = KINDS["model"].samples()
    kind, document, tensors = json.loads(sample)
    if key == "kind":
        kind = name
    elif key == "estimator":
        document["estimator"] = name
    else:
        document["decomposition"]["name"] = name
    file = KINDS["model"].make(tmp_path, json.dumps([kind, document, tensors]).encode())
    with pytest.raises(SaenError):
        load(file)
    assert not ran.exists()
    assert EVIL not in sys.modules


def test_load_never_unpickles(tmp_path: Path, ran: Path) -> None:
    pickled = f"c{EVIL}\nEgo\n.".encode()  # the instruction to import Ego
    for file in (tmp_path / "a.saen", tmp_path / "a.npy"):
        file.write_bytes(pickled)
    with pytest.raises(SaenError):
        load(tmp_path / "a.saen")
    from saen.io.embeddings import read_embeddings

    with pytest.raises(SaenError):
        read_embeddings(tmp_path / "a.npy")
    assert not ran.exists()
