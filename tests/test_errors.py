"""Messages of errors: one line that a person can read, whatever a file holds."""

from __future__ import annotations

import pytest

from saen.errors import MAX_MESSAGE, FileError, InputError


@pytest.mark.parametrize("garbage", ["x" * 10**6, "\x1b]0;pwned\x07" * 5000, "é\u202e\0" * 5000])
def test_errors_are_cut_to_a_line_that_keeps_file_and_advice(garbage: str) -> None:
    text = str(FileError(f"unknown key {garbage!r}: use one of a, b", path="own.toml", line=3))
    assert len(text) <= MAX_MESSAGE
    assert text.isprintable()
    assert text.startswith("own.toml, line 3: unknown key ")
    assert text.endswith(": use one of a, b")


def test_errors_escape_what_commands_a_terminal() -> None:
    assert str(InputError("a \x1b[31m")) == "a \\x1b[31m"


def test_errors_about_files_are_one_line() -> None:
    assert str(FileError("bad\nreally\u2028bad", path="a\nb")) == "a b: bad really bad"
