"""Fuzz one kind of file, guided by coverage.

Atheris (libFuzzer for Python) counts the branches that an input takes in saen and in the
parsers written in Python, and keeps what takes a new one as the start of further inputs. The
memory of the process is limited, so that an input that asks for too much fails with a
MemoryError; an input that takes longer than `-timeout` ends the process.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import resource
import traceback
from collections.abc import Callable, MutableSequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import atheris

INSTRUMENTED = ["saen", "networkx.readwrite", "conllu", "tomllib", "zipfile", "xml.etree"]
with (
    redirect_stderr(StringIO()),  # a line per module
    atheris.instrument_imports(include=INSTRUMENTED, enable_loader_override=False),
):
    import conllu  # noqa: F401
    import networkx  # noqa: F401

    from saen._util.json_files import write_json as write_json
    from tests.fuzz.kinds import KINDS, LEAVES, TOKENS, NotAnInput, survive

ACCEPTED, REFUSED = 0, 1
Counts = MutableSequence[int]
"""Inputs that were accepted and refused."""
MAX_MEMORY = 2 * 10**9
"""Bytes that reading a file of at most a megabyte may add to those of the process."""


def search(name: str, folder: Path, scratch: Path, counts: Counts, flags: list[str]) -> None:
    """Search until libFuzzer's flags (`-max_total_time`, `-runs`, …) say stop, then exit.

    `folder/corpus` gets the inputs that took a new branch, `folder/found` one input and traceback
    per distinct problem; the search goes on after one. `folder/log.txt` is what libFuzzer says.
    Inputs are written to `scratch`; `counts` is shared with the process that started this one.
    """
    with (folder / "log.txt").open("w") as log:
        os.dup2(log.fileno(), 2)
    kind = KINDS[name]
    seen: set[str] = set()

    def one_input(data: bytes) -> int:
        try:
            accepted = survive(kind, scratch / "input", data)
        except NotAnInput:
            return -1
        except Exception as error:
            keep(folder / "found", data, error, seen)
            accepted = False
        counts[ACCEPTED if accepted else REFUSED] += 1
        return 0

    # A first reading loads libraries, which are no part of an input's memory.
    good = kind.samples()
    for sample in good:
        assert survive(kind, scratch / "input", sample), f"the good example of {name} is refused"
    limit_memory()
    words = ("".join(f"\\x{byte:02x}" for byte in token) for token in TOKENS)
    (folder / "words").write_text("".join(f'"{word}"\n' for word in words))
    corpus = [str(folder / "corpus"), str(Path(__file__).parent / "corpus" / name)]
    atheris.Setup(
        ["fuzz", *corpus, f"-dict={folder / 'words'}", *flags],
        one_input,
        custom_mutator=mutator(MUTATIONS[kind.content], good),
    )
    atheris.Fuzz()


def keep(folder: Path, data: bytes, error: Exception, seen: set[str]) -> None:
    """Write down a problem, once per place in the code."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(f.filename).stem}:{f.lineno}" for f in frames if "/saen/" in f.filename]
    signature = f"{type(error).__name__} {places[-1] if places else frames[-1].line}"
    if signature in seen:
        return
    seen.add(signature)
    folder.mkdir(exist_ok=True)
    stem = hashlib.sha256(signature.encode()).hexdigest()[:12]
    (folder / f"{stem}.input").write_bytes(data)
    lines = traceback.format_exception(error)
    (folder / f"{stem}.txt").write_text(f"{signature}\n{''.join(lines)}", errors="replace")


def limit_memory() -> None:
    """Let the process grow by `MAX_MEMORY` and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


# -- mutations ---------------------------------------------------------------------------------

Mutation = Callable[[bytes, random.Random], bytes]


def mutator(mutation: Mutation, good: list[bytes]) -> Callable[[bytes, int, int], bytes]:
    """Change an input of the corpus, or every other time a good file.

    Most of a corpus is refused, each of its inputs for another reason: few of their descendants
    are read to the end.
    """

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        source = random.Random(seed)
        start = source.choice(good) if source.random() < 0.5 else data
        mutated = start
        for _ in range(source.choice([1, 1, 2, 4])):
            # One time in four any bytes, so that nothing is out of reach.
            change = _mutate_bytes if source.random() < 0.25 else mutation
            mutated = change(mutated, source)
        return mutated if len(mutated) <= max_size else data

    return mutate


def _mutate_bytes(data: bytes, source: random.Random) -> bytes:
    return bytes(atheris.Mutate(data, len(data) + 64))


def _mutate_text(data: bytes, source: random.Random) -> bytes:
    """Change one word or number, or remove, repeat or move a line."""
    lines = data.split(b"\n")
    at = source.randrange(len(lines))
    action = source.random()
    if action < 0.1:
        del lines[at]
    elif action < 0.2:
        lines.insert(source.randrange(len(lines) + 1), lines[at])
    elif action < 0.3:
        other = source.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    else:
        words = _WORD.split(lines[at])  # words are at odd places
        if len(words) > 1:
            place = source.randrange(1, len(words), 2)
            words[place] = _other_word(words[place], data, source)
        lines[at] = b"".join(words)
    return b"\n".join(lines)


_WORD = re.compile(rb"([\w.+-]+)")


def _other_word(word: bytes, data: bytes, source: random.Random) -> bytes:
    """A near number, another word of the same file, or one of `TOKENS`."""
    action = source.random()
    if action < 0.4 and len(word) < 10 and word.isdigit():
        return b"%d" % (int(word) + source.choice([-1, 1, 2, 7]))
    return source.choice(_WORD.findall(data) if action < 0.7 else TOKENS)


def _mutate_json(data: bytes, source: random.Random) -> bytes:
    """Change one value of one line of JSON."""
    lines = data.split(b"\n")
    at = source.choice([n for n, line in enumerate(lines) if line[:1] in (b"{", b"[")] or [0])
    try:
        lines[at] = json.dumps(_changed(json.loads(lines[at]), source)).encode()
    except (ValueError, RecursionError):
        return _mutate_bytes(data, source)
    return b"\n".join(lines)


MUTATIONS: dict[str, Mutation] = {
    "bytes": _mutate_bytes,
    "text": _mutate_text,
    "json": _mutate_json,
}


def _changed(document: Any, source: random.Random) -> Any:
    """A copy with one value, at a random place, replaced, removed, repeated or renamed."""
    if not isinstance(document, list | dict) or not document or source.random() < 0.1:
        near = isinstance(document, int) and not isinstance(document, bool)
        if near and source.random() < 0.5:
            return document + source.choice([-1, 1, 2, 7])
        return source.choice(LEAVES)
    key = source.choice(range(len(document)) if isinstance(document, list) else list(document))
    copy: Any = document.copy()
    action = source.random()
    if action < 0.7:
        copy[key] = _changed(document[key], source)
    elif action < 0.8:
        del copy[key]
    elif isinstance(copy, list):
        copy.insert(key, source.choice(document))
    elif action < 0.9:
        copy[key] = source.choice(list(document.values()))
    else:
        copy[source.choice([*document, "x", "", "0"])] = copy.pop(key)
    return copy
