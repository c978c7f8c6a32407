"""Fuzz every reader: `python -m tests.fuzz --seconds 900` (`make fuzz`).

Each kind of file has a process of its own and an equal share of the time, or
of `--inputs`. What is new in coverage stays in `--folder`, so that the next run starts from it.
Ends with exit code 1 if a problem was found; its input and traceback are in the folder.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
from pathlib import Path
from typing import Any

from tests.fuzz.guided import KINDS, search, write_json

FLAGS = (
    *(
        "-timeout=10",
        "-rss_limit_mb=0",
        "-malloc_limit_mb=0",
        "-max_len=20000",
        "-len_control=0",
        "-mutate_depth=2",
    ),
    *("-print_final_stats=1", "-verbosity=1"),
)
MIN_SECONDS = 5


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
        "command": "make fuzz",
        "counts": {
            "inputs": sum(result["inputs"] for result in results.values()),
            "seconds": round(time.monotonic() - start),
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


def fixed_problems() -> list[str]:
    """What earlier runs found, by the names of the inputs in the corpus."""
    files = sorted(Path(__file__).parent.glob("corpus/*/fixed-*"))
    return [f"{file.parent.name}: {file.name.removeprefix('fixed-')}" for file in files]


def fuzz(name: str, folder: Path, seconds: float, inputs: int | None) -> dict[str, Any]:
    """Fuzz one kind for a while, again after an input that ended the process."""
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    for old in folder.glob("found/*"):
        old.unlink()
    executed, branches, ended = 0, 0, []
    end = time.monotonic() + seconds
    while (left := int(end - time.monotonic())) > 0 and (inputs is None or executed < inputs):
        flags = [f"-max_total_time={left}", f"-artifact_prefix={folder}/", *FLAGS]
        flags += [] if inputs is None else [f"-runs={inputs - executed}"]
        (folder / "counts.json").unlink(missing_ok=True)
        process = multiprocessing.get_context("fork").Process(
            target=search, args=(name, folder, flags)
        )
        process.start()
        process.join()
        log = (folder / "log.txt").read_text(errors="replace")
        units = re.findall(r"number_of_executed_units: (\d+)", log)
        executed += int(units[-1]) if units else 0
        branches = max([branches, *map(int, re.findall(r" cov: (\d+)", log))])
        if process.exitcode:
            reason = re.findall(r"ERROR: libFuzzer: (.*)", log) or log.splitlines()
            ended.append(f"ended with code {process.exitcode}: {reason[-1] if reason else ''}")
            if not units:
                break
    found = [file.read_text().splitlines()[0] for file in sorted(folder.glob("found/*.txt"))]
    counts = folder / "counts.json"
    kept = json.loads(counts.read_text()) if counts.exists() else {}
    accepted = kept.get("accepted", 0) / max(kept.get("inputs", 0), 1)
    return {
        "inputs": executed,
        "accepted": round(accepted, 3),
        "branches": branches,
        "found": [*found, *ended],
    }


if __name__ == "__main__":
    sys.exit(main())
