"""Mutation testing: `python -m tests.mutants` (`make mutants`).

mutmut changes the code in one place at a time (a number, an operator, an argument) and runs the
tests that reach that function; a change that no test notices, a survivor, is a hole in the tests or
a change without effect. It works in a copy of the tracked files, `--folder`, and goes on there when
it is repeated. Survivors are listed with what was changed; why some are fine is in
`tests/mutants.toml`.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path

from saen._util.json_files import write_json

HERE = Path(__file__).parent
ROOMS = ("data", "network", "learning")
EXTRA = {
    "learning.evaluation": [
        "tests/learning/test_protocol_honesty.py",
        "tests/learning/models/test_counts.py",
        "tests/learning/models/test_blend.py",
    ],
    **{
        f"data.{module}": ["tests/properties/test_compression_laws.py"]
        for module in ("compression", "identical", "refinement")
    },
    "data.chunks": ["tests/properties/test_compression_laws.py", "tests/data/test_refinement.py"],
}
"""Tests of a module beside the file that mirrors it, such as `tests/ROOM/test_MODULE.py`."""
RISKY = (
    *("learning.evaluation", "learning.splits", "learning.metrics"),
    *("network.ensemble", "data.identical", "data.chunks", "data.refinement", "data.compression"),
)
OUTCOMES = {0: "survived", 1: "killed", 3: "killed", 5: "no tests", 33: "no tests", 36: "timeout"}
OUTCOMES |= {-24: "timeout", 24: "timeout"}


def main() -> None:
    """Mutate, and write what survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", default=RISKY, help="such as data.compression")
    parser.add_argument("--all", action="store_true", help=f"every module of {', '.join(ROOMS)}")
    parser.add_argument("--seconds", type=float, help="stop after about this time")
    parser.add_argument("--again", action="store_true", help="try only survivors again")
    parser.add_argument("--children", type=int, default=1, help="mutants tried at once")
    parser.add_argument("--folder", type=Path, default=Path(".mutants"))
    parser.add_argument("--out", type=Path, help="write counts and survivors to this JSON file")
    options = parser.parse_args()
    modules = every_module() if options.all else list(options.modules)
    start = time.monotonic()
    for position, module in enumerate(modules):
        left = None
        if options.seconds is not None:
            left = (options.seconds - (time.monotonic() - start)) / (len(modules) - position)
        results = outcomes(options.folder / module)
        survivors = [name for name, what in results.items() if what == "survived"]
        if survivors or not options.again:
            prepare(options.folder / module, module)
            mutmut(
                options.folder / module, survivors if options.again else [], left, options.children
            )
    report(options.folder, modules, start, options.out)


def every_module() -> list[str]:
    """All modules of the rooms that hold the mathematics."""
    source = HERE.parent / "src" / "saen"
    files = [file for room in ROOMS for file in sorted((source / room).rglob("*.py"))]
    return [
        ".".join(f.relative_to(source).with_suffix("").parts) for f in files if f.stat().st_size
    ]


def prepare(folder: Path, module: str) -> None:
    """Copy the tracked files, and configure mutmut there."""
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\0")[:-1]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(name, folder / name)
    # Which tests reach which function is measured anew: tests and code may have changed.
    (folder / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    settings = {
        "source_paths": ["src"],
        "only_mutate": [source_of(module)],
        "also_copy": ["benchmarks", "docs", "examples"],
        "do_not_mutate_patterns": ["raise (Input|File)Error"],
        "timeout_multiplier": 5,
        "pytest_add_cli_args": [
            *("-p", "no:cacheprovider", "--hypothesis-profile=unshrunk"),
            *("-W", "ignore::pytest.PytestUnraisableExceptionWarning"),  # mutmut's own
        ],
        "pytest_add_cli_args_test_selection": tests_of(module),
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    with (folder / "pyproject.toml").open("a") as file:
        file.write("\n".join(["", "[tool.mutmut]", *lines, ""]))


def source_of(module: str) -> str:
    """The file of a module.

    >>> source_of("data.identical")
    'src/saen/data/identical.py'
    """
    return f"src/saen/{module.replace('.', '/')}.py"


def tests_of(module: str) -> list[str]:
    """The test files of a module; those of its room if there are none."""
    *folders, name = module.split(".")
    own = Path("tests", *folders, f"test_{name}.py")
    known = [own.as_posix()] if own.exists() else []
    return [*known, *EXTRA.get(module, [])] or [f"tests/{folders[0]}"]


def mutmut(folder: Path, names: list[str], seconds: float | None, children: int) -> None:
    """Run mutmut, for a while, on all mutants or those named; what it has done is kept.

    It ends with an error when a process that a test left behind ends (joblib's do, after minutes
    of rest), and goes on when it is run again.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(children), *names]
    end = None if seconds is None else time.monotonic() + max(seconds, 1)
    while True:
        tried = Counter(outcomes(folder).values())
        try:
            with (folder / "mutmut.log").open("w") as log:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env=environment | {"OMP_NUM_THREADS": "1"},
                    stdout=log,
                    stderr=log,
                    timeout=None if end is None else max(end - time.monotonic(), 1),
                )
        except subprocess.TimeoutExpired:
            return
        if names or done.returncode == 0 or Counter(outcomes(folder).values()) == tried:
            return


def outcomes(folder: Path) -> dict[str, str | None]:
    """What became of every mutant; None if it has not been tried."""
    results: dict[str, str | None] = {}
    for file in folder.glob("mutants/**/*.meta"):
        for name, code in json.loads(file.read_text())["exit_code_by_key"].items():
            results[name] = None if code is None else OUTCOMES.get(code, "killed")
    return results


def report(folder: Path, modules: list[str], start: float, out: Path | None) -> None:
    """Print counts and survivors, and write them; what is known of other modules is kept."""
    known = json.loads(out.read_text("utf-8")) if out is not None and out.exists() else {}
    per_module: dict[str, dict[str, int]] = known.get("modules", {})
    survivors = [
        {key: each[key] for key in ("function", "change")}
        for each in known.get("survivors", [])
        if module_of(each["function"]) not in modules
    ]
    for module in modules:
        results = outcomes(folder / module)
        per_module[module] = Counter(what or "not tried" for what in results.values())
        survived = sorted(name for name, what in results.items() if what == "survived")
        changes = changed_lines(folder / module, module) if survived else {}
        survivors += [
            {"function": name.rsplit("__mutmut_", 1)[0], "change": changes[name]}
            for name in survived
        ]
    patterns = tomllib.loads((HERE / "mutants.toml").read_text(encoding="utf-8"))["survivor"]
    survivors = [{**each, "reason": reason(patterns, **each)} for each in survivors]
    without = [f"{s['function']}: {s['change']}" for s in survivors if not s["reason"]]
    counts: Counter[str] = sum(map(Counter, per_module.values()), Counter())
    document = {
        "campaign": "Mutants: one fault at a time in the code; those quickest to test come first",
        "command": "make mutants",
        "counts": {
            "mutants": counts.total() - counts["not tried"],
            **{what: counts[what] for what in ("killed", "timeout", "survived", "no tests")},
            "survivors without a reason": len(without),
            "not tried": counts["not tried"],
        },
        "modules": per_module,
        "found": without,
        "survivors": survivors,
    }
    for each in survivors:
        print(f"{each['function']}\n    {each['change']}\n    {each['reason'] or 'no reason yet'}")
    print(json.dumps(document["counts"]), f"{time.monotonic() - start:.0f} s")
    if out is not None:
        write_json(out, document)


def module_of(function: str) -> str:
    """The module of a mutated function.

    >>> module_of("saen.learning.splits.x_inner_folds")
    'learning.splits'
    """
    return function.rpartition(".")[0].removeprefix("saen.")


def reason(patterns: list[dict[str, str]], function: str, change: str) -> str:
    """Why a mutant may survive, empty if nobody has said so."""
    fitting = (
        each["reason"]
        for each in patterns
        if re.search(each.get("function", ""), function)
        and re.search(each.get("change", ""), change)
    )
    return next(fitting, "")


def changed_lines(folder: Path, module: str) -> dict[str, str]:
    """By mutant the changed lines before and after, in one line."""
    code = (folder / "mutants" / source_of(module)).read_text(encoding="utf-8")
    lines = code.splitlines()
    bodies = {
        node.name: [line.strip() for line in lines[node.lineno - 1 : node.end_lineno]]
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name
    }
    changes = {}
    for name, mutated in bodies.items():
        plain = name.rsplit("__mutmut_", 1)[0]
        original = [
            line.replace(f"{plain}__mutmut_orig", plain) for line in bodies[f"{plain}__mutmut_orig"]
        ]
        changed = list(difflib.ndiff(original, [line.replace(name, plain) for line in mutated]))
        before, after = (" ".join(line[2:] for line in changed if line[0] == sign) for sign in "-+")
        changes[f"saen.{module}.{name}"] = f"{before} → {after}"
    return changes


if __name__ == "__main__":
    main()
