"""Ctrl-C at random moments of `saen train`: it must end the command at once.

python -m tests.faults.interrupts --runs 200    # --out keeps the counts
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from saen import generate_threads, save
from saen._util.atomic import is_temporary

START, END = 0.1, 2.5
"""Seconds after the start between which Ctrl-C comes: most of them go into imports."""
PATIENCE = 2.0
"""Seconds within which the command must have ended."""
HANGS = 20.0

# Before the first line there is nothing but Python's own start.
TRAIN = (
    "import sys\nsys.argv = ['saen', 'train', sys.argv[1], '--budget', 'quick', '--out', 'm.saen']"
)
EXAMPLES = 3000
"""So many that training does not end by itself before Ctrl-C."""
PROGRAM = f"{TRAIN}\nimport saen\nprint('ready', flush=True)\nfrom saen.cli import main\nmain()"

ABOUT = (
    "saen train is interrupted (SIGINT, Ctrl-C) at random moments of its first seconds, in half "
    f"of the runs twice. It must end within {PATIENCE:g} s, with exit code 130 and one line, and "
    "leave nothing but what a repeated command resumes from or removes."
)
FIXED = [
    "Ctrl-C in a callback of the import system was lost, and the command hung if another thread "
    "was importing torch",
    "Ctrl-C while a module in C++ was imported ended in a traceback of an ImportError",
]


def interrupt(data: Path, moment: float, *, twice: bool) -> str:
    """What is wrong with how an interrupted command ends, empty if nothing."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(data)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(moment)
        for _ in range(1 + twice):
            process.send_signal(signal.SIGINT)
        began = time.monotonic()
        try:
            _, errors = process.communicate(timeout=HANGS)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"hangs: {process.communicate()[1][-300:]}"
        seconds = time.monotonic() - began
        left = {path.name for path in Path(folder).iterdir() if not is_temporary(path)}
        left -= {".m.saen.run"}
    if process.returncode != 130 or errors.splitlines()[-1:] != ["saen: interrupted"]:
        return f"ends with {process.returncode}: {errors[-300:]}"
    if "Traceback" in errors:
        return f"a traceback: {errors[-300:]}"
    if seconds > PATIENCE:
        return f"ends after {seconds:.1f} s"
    return f"left behind: {', '.join(sorted(left))}" if left else ""


def campaign(runs: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Interrupt so many commands: how often Ctrl-C came once or twice, and what did not hold."""
    random_moments = random.Random(seed)
    counts: Counter[str] = Counter()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "threads.saen"
        save(generate_threads(EXAMPLES, seed=1), data)
        for _ in range(runs):
            moment, twice = random_moments.uniform(START, END), random_moments.random() < 0.5
            counts["Ctrl-C twice" if twice else "Ctrl-C once"] += 1
            if wrong := interrupt(data, moment, twice=twice):
                found.append(f"after {moment:.3f} s{', twice' if twice else ''}: {wrong}")
                print(found[-1], file=sys.stderr, flush=True)
    return counts, found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for interrupts.json")
    options = parser.parse_args()
    counts, found = campaign(options.runs, options.seed)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        report = {
            "campaign": "interrupts",
            "command": f"python -m tests.faults.interrupts --runs {options.runs}",
            "about": ABOUT,
            "counts": {"interrupted commands": options.runs, **dict(sorted(counts.items()))},
            "found": found,
            "found before and fixed": FIXED,
        }
        text = json.dumps(report, indent=1, ensure_ascii=False)
        (options.out / "interrupts.json").write_text(text + "\n", encoding="utf-8")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
