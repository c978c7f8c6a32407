"""`make lint` fails on known vulnerabilities, and only on these."""

from __future__ import annotations

import json
from subprocess import CompletedProcess

import pytest

from tests import audit

FOUND = {
    "dependencies": [
        {"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]},
        {"name": "b", "version": "1", "vulns": [{"id": "CVE-2", "fix_versions": []}]},
        {"name": "c", "skip_reason": "not found on PyPI"},
    ]
}
NONE = {"dependencies": [{"name": "a", "version": "1", "vulns": []}, *FOUND["dependencies"][2:]]}


@pytest.mark.parametrize(
    ("stdout", "stderr", "code", "shown"),
    [
        (
            json.dumps(FOUND),
            "",
            1,
            "a 1: CVE-1, fixed in 2\nb 1: CVE-2, fixed in no version yet\n"
            "pip-audit: 2 packages audited, 2 known vulnerabilities; "
            "1 unknown to the index\n",
        ),
        (
            json.dumps(NONE),
            "No known vulnerabilities found",
            0,
            "pip-audit: 1 packages audited, 0 known vulnerabilities; 1 unknown to the index\n",
        ),
        ("", "Traceback\nConnectionError: no route", 0, "pip-audit: ConnectionError: no route\n"),
        ("", "Traceback\nKeyError: 'x'", 1, "pip-audit: KeyError: 'x'\n"),
    ],
    ids=["found", "none", "offline", "broken"],
)
def test_audit(monkeypatch, capsys, stdout, stderr, code, shown):
    done = CompletedProcess([], 0, stdout, stderr)
    monkeypatch.setattr(audit.subprocess, "run", lambda *_, **__: done)
    assert audit.main() == code
    assert capsys.readouterr().out == shown
