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
import resource
import traceback
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

MAX_MEMORY = 2 * 10**9
"""Bytes that reading a file of at most a megabyte may add to those of the process."""


def search(name: str, folder: Path, flags: list[str]) -> None:
    """Search until libFuzzer's flags (`-max_total_time`, `-runs`, …) say stop, then exit.

    `folder/corpus` gets the inputs that took a new branch, `folder/found` one input and traceback
    per distinct problem; the search goes on after one. `folder/log.txt` is what libFuzzer says.
    """
    with (folder / "log.txt").open("w") as log:
        os.dup2(log.fileno(), 2)
    kind = KINDS[name]
    counts = {"inputs": 0, "accepted": 0, "refused": 0, "no input": 0}
    seen: set[str] = set()

    def one_input(data: bytes) -> int:
        counts["inputs"] += 1
        if counts["inputs"] % 200 == 0:
            (folder / "counts.json").write_text(json.dumps(counts))
        try:
            accepted = survive(kind, folder / "input", data)
        except NotAnInput:
            counts["no input"] += 1
            return -1
        except Exception as error:
            keep(folder / "found", data, error, seen)
            return 0
        counts["accepted" if accepted else "refused"] += 1
        return 0

    # A first reading loads libraries, which are no part of an input's memory.
    for sample in kind.samples():
        assert survive(kind, folder / "input", sample), f"the good example of {name} is refused"
    limit_memory()
    words = ("".join(f"\\x{byte:02x}" for byte in token) for token in TOKENS)
    (folder / "words").write_text("".join(f'"{word}"\n' for word in words))
    mutate = {"custom_mutator": mutate_json} if kind.json else {}
    corpus = [str(folder / "corpus"), str(Path(__file__).parent / "corpus" / name)]
    atheris.Setup(["fuzz", *corpus, f"-dict={folder / 'words'}", *flags], one_input, **mutate)
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


# -- JSON --------------------------------------------------------------------------------------


def mutate_json(data: bytes, max_size: int, seed: int) -> bytes:
    """Change one value of one line of JSON, or (one time in three) any bytes."""
    source = random.Random(seed)
    lines = data.split(b"\n")
    chosen = source.randrange(len(lines))
    try:
        document = json.loads(lines[chosen])
    except (ValueError, RecursionError):
        document = None
    if document is None or source.random() < 1 / 3:
        return bytes(atheris.Mutate(data, len(data) + 64))[:max_size]
    for _ in range(source.choice([1, 1, 2, 4])):
        document = _changed(document, source)
    try:
        lines[chosen] = json.dumps(document).encode()
    except (ValueError, RecursionError):
        return data
    mutated = b"\n".join(lines)
    return mutated if len(mutated) <= max_size else data


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
