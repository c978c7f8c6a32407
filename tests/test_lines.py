"""The count of lines that CONTRIBUTING.md quotes."""

from __future__ import annotations

import pytest

from tests.lines import END, PAGE, START, code_lines, count


def test_lines_of_docstrings_comments_and_blanks_do_not_count():
    documented = '"""One.\n\nTwo."""\n\n# three\nx = [\n    1,\n]\n'
    source = documented + '\n\ndef f():\n    """Four."""\n    return x\n'
    assert code_lines(source) == 5


@pytest.mark.slow
def test_quoted_lines_of_every_room_are_about_those_of_the_tree():
    page = PAGE.read_text(encoding="utf-8")
    rows = [row.split("|") for row in page.split(START)[1].split(END)[0].splitlines()[2:]]
    quoted = {cells[1].strip(): int(cells[2].replace(",", "")) for cells in rows}
    found = {room: lines for room, (lines, _) in count().items()}
    assert quoted.pop("all") == pytest.approx(sum(found.values()), rel=0.05)
    assert quoted.keys() == found.keys()
    for room, lines in quoted.items():
        assert lines == pytest.approx(found[room], rel=0.1, abs=50), f"{room}: run make lines"
