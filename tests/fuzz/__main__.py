"""Fuzz every reader: `python -m tests.fuzz --seconds 900` (`make fuzz`).

Each kind of file has a process of its own and an equal share of the time, or
of `--inputs`. What is new in coverage stays in `--folder`, so that the next run starts from it.
Ends with exit code 1 if a problem was found; its input and traceback are in the folder. Once it is
mended, its input goes to the corpus as `fixed-…`, and `mended` in the JSON file names it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.fuzz.guided import ACCEPTED, KINDS, search, write_json

FLAGS = (
    *(
        "-timeout=10",
        "-rss_limit_mb=0",
        "-malloc_limit_mb=0",
        "-max_len=20000",
        "-len_control=0",
        "-mutate_depth=1",
    ),
    *("-print_final_stats=1", "-verbosity=1"),
)
MIN_SECONDS = 2
MEMORY = Path("/dev/shm")
"""A folder in memory: on a disk, most of the time would go to removing files."""


def main() -> int:
    """Fuzz, and write what was counted and found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", help=f"any of {', '.join(KINDS)}; by default all")
    parser.add_argument("--seconds", type=float, default=900, help="time for all kinds together")
    parser.add_argument("--inputs", type=int, help="stop at about this many inputs, if sooner")
    parser.add_argument("--folder", type=Path, default=Path(".fuzz"), help="corpus and findings")
    parser.add_argument("--out", type=Path, help="write the counts to this JSON file")
    options = parser.parse_args()
    kinds = options.kinds or list(KINDS)
    start = time.monotonic()
    results = {}
    for position, name in enumerate(kinds):
        left = options.seconds - (time.monotonic() - start)
        share = max(left / (len(kinds) - position), MIN_SECONDS)
        inputs = None if options.inputs is None else -(-options.inputs // len(kinds))
        results[name] = fuzz(name, options.folder / name, share, inputs)
        counted = f"{name:<14}{results[name]['inputs']:>9,} inputs"
        print(counted, *results[name]["found"], sep="  ", flush=True)
    report = {
        "campaign": "Hostile files: every reader, guided by coverage (atheris)",
        "command": command(options),
        "counts": {
            "inputs": sum(result["inputs"] for result in results.values()),
            "seconds": round(time.monotonic() - start),
            "seconds of one processor": round(processor_seconds()),
            "kinds of files": len(results),
            "problems": sum(len(result["found"]) for result in results.values()),
        },
        "kinds": results,
        "found": [f"{name}: {each}" for name in results for each in results[name]["found"]],
        "found before and fixed": fixed_problems(),
    }
    print(json.dumps(report["counts"]))
    if options.out is not None:
        write_json(options.out, report)
    return 1 if report["found"] else 0


def command(options: argparse.Namespace) -> str:
    """What to type for a run like this one."""
    words = ["python -m tests.fuzz", *options.kinds, f"--seconds {options.seconds:g}"]
    return " ".join(words if options.inputs is None else [*words, f"--inputs {options.inputs}"])


def fixed_problems() -> list[str]:
    """What earlier runs found, by the names of the inputs in the corpus."""
    files = sorted(Path(__file__).parent.glob("corpus/*/fixed-*"))
    return [f"{file.parent.name}: {file.name.removeprefix('fixed-')}" for file in files]


def processor_seconds() -> float:
    """What the processes that have ended used; on a busy machine far less than time has passed."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def fuzz(name: str, folder: Path, seconds: float, inputs: int | None) -> dict[str, Any]:
    """Fuzz one kind for a while, again after an input that ended the process."""
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    for old in folder.glob("found/*"):
        old.unlink()
    counts = multiprocessing.Array("q", 2, lock=False)
    branches, ended = 0, []
    end = time.monotonic() + seconds
    used = processor_seconds()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
        while (left := int(end - time.monotonic())) > 0:
            flags = [f"-max_total_time={left}", f"-artifact_prefix={folder}/", *FLAGS]
            if inputs is not None:
                if sum(counts) >= inputs:
                    break
                flags += [f"-runs={inputs - sum(counts)}"]
            before = sum(counts)
            process = multiprocessing.get_context("fork").Process(
                target=search, args=(name, folder, Path(scratch), counts, flags)
            )
            process.start()
            process.join()
            log = (folder / "log.txt").read_text(errors="replace")
            branches = max([branches, *map(int, re.findall(r" cov: (\d+)", log))])
            if process.exitcode:
                reason = re.findall(r"ERROR: libFuzzer: (.*)", log) or log.splitlines()
                ended.append(f"ended with code {process.exitcode}: {reason[-1] if reason else ''}")
                if sum(counts) == before:
                    break
    found = [file.read_text().splitlines()[0] for file in sorted(folder.glob("found/*.txt"))]
    return {
        "inputs": sum(counts),
        "accepted": round(counts[ACCEPTED] / max(sum(counts), 1), 3),
        "branches": branches,
        "seconds of one processor": round(processor_seconds() - used, 1),
        "found": [*found, *ended],
    }


if __name__ == "__main__":
    sys.exit(main())
