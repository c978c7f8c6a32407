from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import FileError
from saen.io.word_vectors import read_word_vectors
from tests.refusals import refuses

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
# Words of other alphabets, and some with spaces inside, as GloVe has them.
words = st.one_of(
    st.text("ab1é中", min_size=1, max_size=3), st.sampled_from([". . .", "at x", "1/2"])
)


@given(st.data(), st.integers(1, 4), st.booleans())
def test_what_is_written_is_read_back(data, width, header):
    table = data.draw(
        st.dictionaries(words, st.lists(finite, min_size=width, max_size=width), min_size=1)
    )
    # The first line says how wide vectors are, so its word has no spaces.
    names = sorted(table, key=lambda word: " " in word)
    if " " in names[0] and not header:
        return
    lines = [f"{len(table)} {width}"] * header
    lines += [" ".join([name, *map(repr, table[name])]) for name in names]
    wanted = set(data.draw(st.lists(words))) | set(names[::2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vectors.txt")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if header or not names[0].isdecimal() or width > 1:
            every, vectors = read_word_vectors(path)
            assert every == names
            assert np.array_equal(vectors, np.array([table[n] for n in names], dtype=np.float32))
            some, vectors = read_word_vectors(path, wanted)
            assert some == [name for name in names if name in wanted]
            assert np.array_equal(vectors, np.array([table[n] for n in some], dtype=np.float32))


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_files_of_word2vec_glove_and_fasttext_are_read_alike(tmp_path):
    expected = ["a", "b"], [[1.0, -2.0], [0.5, 1e-3]]
    for text in (
        "a 1 -2\nb 0.5 1e-3\n",
        "2 2\na 1 -2\nb 0.5 1e-3",
        "2 2\r\na 1 -2 \r\nb 0.5 1e-3 \r\n\r\n",
    ):
        names, vectors = read_word_vectors(write(tmp_path, text))
        assert (names, vectors.tolist()) == (expected[0], np.float32(expected[1]).tolist())
        assert vectors.dtype == np.float32


def test_of_a_word_that_comes_twice_the_first_counts(tmp_path):
    names, vectors = read_word_vectors(write(tmp_path, "a 1\nb 2\na 3\n"), ["a"])
    assert (names, vectors.tolist()) == (["a"], [[1.0]])


def test_no_words_keep_the_width(tmp_path):
    names, vectors = read_word_vectors(write(tmp_path, "a 1 2 3\n"), [])
    assert names == []
    assert vectors.shape == (0, 3)


def test_lines_of_other_words_are_not_looked_at(tmp_path):
    path = write(tmp_path, b"a 1 2\n\xff x y\nb 3 4\n")
    assert read_word_vectors(path, ["b"])[1].tolist() == [[3, 4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ", line 1: expected a word and its vector, found an empty file"),
        ("a\n", ", line 1: expected a word and its vector, found a line without numbers"),
        ("a 1 2\nb 1\n", ", line 2: 1 number, expected 2"),
        ("a 1 2\nb 1 2 3\n", ", line 2: 3 numbers, expected 2"),
        ("1 2\nb 1 x\n", ", line 2: 'x' is not a number"),
        ("a 1 2\n\nb 1 nan\n", ", line 3: a number that is not finite"),
        ("a 1 2\nb 1 1e39\n", ", line 2: a number that is not finite"),
        (b"a 1 2\n\xff 1 2\n", ", line 2: the word b'\\xff' is not UTF-8"),
        (f"0 {10**20}\na 1 2\n", ", line 2: 2 numbers, expected 1"),
        (f"{'9' * 5000} {'9' * 5000}\n", ", line 1: a number that is not finite"),
        ("3 2\na 1 2\nb 1 2\n", ": ends after 2 words, but its first line announces 3"),
    ],
)
def test_files_that_hold_no_vectors_are_refused_with_their_line(text, message, tmp_path):
    path = write(tmp_path, text)
    with refuses(f"{path}{message}", FileError):
        read_word_vectors(path)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with refuses(f"{tmp_path / 'none.txt'}: cannot be read (No such file or directory)", FileError):
        read_word_vectors(tmp_path / "none.txt")
