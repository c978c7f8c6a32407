"""Faults at every system call of every command that writes files.

    python -m tests.faults.campaign                    # everything; --out keeps the counts
    python -m tests.faults.campaign --only compress    # some commands
    python -m tests.faults.campaign --every 7          # every seventh call

For every command its system calls are counted in an undisturbed run. Then, for each call and each
fault, the command runs in a fresh folder with that fault, and is repeated without it. What must
hold:

- the command succeeds with all its files, or ends with one line that says what is wrong;
- after an error nothing is left behind but what a repeated command resumes from;
- a repeated command ends with the same files, byte for byte; or it says that its output exists, and
  does so with `--force`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from saen._util.atomic import is_temporary
from tests.faults.injection import ERRORS, KILLS, Fault, Outcome, run, start

MODULE = "python -m tests.faults.campaign"
CAMPAIGNS = {"faults": ERRORS, "kills": KILLS}
ABOUT = {
    "faults": "System calls of a command that open for writing, write, sync, rename or remove a "
    "file are made to fail, one at a time: with a full disk (half of the write succeeds, and the "
    "disk stays full), with a permission error and with an I/O error. Calls of libraries in C, C++ "
    "and Rust are included.",
    "kills": "At the same system calls the process is killed (SIGKILL, also within a write), "
    "terminated (SIGTERM) or interrupted (SIGINT, Ctrl-C).",
}

FIXED = {
    "faults": [
        "TUDataset zips of equal graphs differed by the time of day",
        "a failed or interrupted convert --shards left its folder",
    ],
    "kills": [
        "a kill within a write left a temporary file of safetensors",
        "Ctrl-C while a temporary file was made left that file",
        "Ctrl-C while a temporary folder was made left that folder",
        "a killed convert --shards could not be repeated",
        "a kill between the results and the checkpoint of a group of networks left the checkpoint",
    ],
}
"""What earlier runs found."""
CACHE = "cache"
"""The folder of parsed datasets: a command succeeds without it."""

Tree = dict[str, bytes]


@dataclass(frozen=True)
class Scenario:
    """A command and its files.

    - `inputs`: files that it needs, by name, of those that `prepare` makes;
    - `existing`: the name of a file that is overwritten with --force;
    - `resumes`: beginnings of the names of what an interrupted run leaves for the next one.
    """

    arguments: tuple[str, ...]
    inputs: tuple[str, ...] = ("data.jsonl",)
    existing: str | None = None
    resumes: tuple[str, ...] = ()

    def fill(self, folder: Path, inputs: Path) -> None:
        """Make a folder with the files that the command finds."""
        folder.mkdir()
        for name in self.inputs:
            copy = shutil.copytree if (inputs / name).is_dir() else shutil.copy
            copy(inputs / name, folder / name)
        if self.existing is not None:
            shutil.copy(inputs / "old", folder / self.existing)


TINY = ("--preset", "network", "--epochs", "2")
WITH_MODEL = ("model.saen", "data.jsonl")
SCENARIOS = {
    "train": Scenario(
        ("train", "data.jsonl", "--out", "new.saen", *TINY, "--hold-out", "0.4"),
        resumes=(".new.saen.run",),
    ),
    "train, in stages": Scenario(
        ("train", "data.jsonl", "--out", "new.saen"),
        resumes=(".new.saen.run", "new.partial.saen"),
    ),
    "train --report": Scenario(
        ("train", "data.jsonl", "--out", "new.saen", *TINY, "--report", "p.html"),
        resumes=(".new.saen.run",),
    ),
    "evaluate --out": Scenario(
        ("evaluate", "data.jsonl", "--out", "run", *TINY, "--folds", "2", "--repeats", "1",
         "--parallel-models", "1"),
        resumes=("run",),
    ),
    "evaluate --report": Scenario(
        ("evaluate", "data.jsonl", *TINY, "--folds", "2", "--repeats", "1", "--report", "p.html",
         "--plot", "curves.svg"),
    ),
    "predict": Scenario(("predict", "model.saen", "data.jsonl", "--out", "p.csv"), WITH_MODEL),
    "predict --force": Scenario(
        ("predict", "model.saen", "data.jsonl", "--out", "p.jsonl", "--force"), WITH_MODEL,
        existing="p.jsonl",
    ),
    "predict, Parquet": Scenario(
        ("predict", "model.saen", "data.jsonl", "--out", "p.parquet"), WITH_MODEL
    ),
    "embed": Scenario(("embed", "model.saen", "data.jsonl", "--out", "e.csv"), WITH_MODEL),
    "compress": Scenario(("compress", "data.jsonl", "--out", "c.saen")),
    "compress --force": Scenario(
        ("compress", "data.jsonl", "--out", "c.saen", "--plot", "c.svg", "--force"),
        existing="c.saen",
    ),
    "convert, JSON lines": Scenario(("convert", "data.jsonl", "new.jsonl")),
    "convert, binary": Scenario(("convert", "data.jsonl", "new.saen")),
    "convert, CSV": Scenario(("convert", "data.jsonl", "edges.csv")),
    "convert, TUDataset zip": Scenario(("convert", "data.jsonl", "new.zip")),
    "convert, GraphML folder": Scenario(("convert", "data.jsonl", "new", "--format", "graphml")),
    "convert --shards": Scenario(("convert", "data.jsonl", "parts", "--shards", "2")),
    "convert, from a zip with a cache": Scenario(
        ("convert", "tu.zip", "new.jsonl"), ("tu.zip",)
    ),
    "explain, HTML": Scenario(
        ("explain", "model.saen", "data.jsonl", "--graph", "0", "--out", "why.html"), WITH_MODEL
    ),
    "explain, JSON": Scenario(
        ("explain", "model.saen", "data.jsonl", "--out", "why.json"), WITH_MODEL
    ),
    "explore": Scenario(("explore", "model.saen", "data.jsonl", "--out", "all.html"), WITH_MODEL),
    "compress, shards": Scenario(
        ("compress", "shards", "--out", "c.saen"), ("shards",),
        resumes=("c.saen.parts", ".c.saen.parts"),
    ),
    "draw": Scenario(("draw", "data.jsonl", "--out", "graph.svg")),
}  # fmt: skip


@dataclass
class Counts:
    """What a campaign did, and what did not hold."""

    injections: Counter[str] = field(default_factory=Counter)
    calls: dict[str, int] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def to_json(self, campaign: str, only: list[str], every: int) -> dict[str, object]:
        """For docs/reliability.md."""
        places = "all of them" if every == 1 else f"at one of {every} places"
        chosen = [f"--only {shlex.quote(word)}" for word in only]
        return {
            "campaign": campaign,
            "command": " ".join([MODULE, *chosen, f"--every {every}"]),
            "about": f"{ABOUT[campaign]} {tried(every)}",
            "counts": {
                f"injections ({places})": sum(self.injections.values()),
                **dict(sorted(self.injections.items())),
                **{f"ended with {name}": n for name, n in sorted(self.outcomes.items())},
                **{f"system calls of saen {name}": n for name, n in self.calls.items()},
            },
            "found": self.found,
            "found before and fixed": FIXED[campaign],
        }


def tried(every: int) -> str:
    """How many of all faults at all calls a run tries."""
    if every == 1:
        return "Every fault was tried at every call."
    return f"This run tried one in {every} of the pairs of a call and a fault, not all."


def tree(folder: Path) -> Tree:
    """All files of a folder but locks, and empty folders, which end with a slash.

    Pages hold the command that made them: whether it had to be forced does not matter.
    """
    files = {
        str(path.relative_to(folder)): path.read_bytes().replace(b" --force", b"")
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
    empty = (p for p in folder.rglob("*") if p.is_dir() and not any(p.iterdir()))
    return files | {f"{path.relative_to(folder)}/": b"" for path in empty}


def differences(one: Tree, other: Tree) -> list[str]:
    """Names of files that are not the same."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


class Injector:
    """Runs commands in fresh folders below one folder."""

    def __init__(self, scratch: Path) -> None:
        self.inputs, self.work, self.log = scratch / "inputs", scratch / "work", scratch / "log"

    def prepare(self, *, model: bool) -> None:
        """Make the inputs of all scenarios, and with `model` those of scenarios that need one."""
        from saen.io.sources.threads import generate_threads
        from saen.io.store.shards import split_graphs, write_shards
        from saen.io.writing import write_data

        self.inputs.mkdir()
        graphs = generate_threads(10, average_nodes=5, seed=1)
        write_data(graphs, self.inputs / "data.jsonl")
        write_data(graphs, self.inputs / "tu.zip")
        write_shards(split_graphs(graphs, 2), self.inputs / "shards")
        (self.inputs / "old").write_text("what was there before")
        if model:
            train = ("train", "data.jsonl", "--out", "model.saen", *TINY)
            self._run(train, self.inputs)

    def _run(self, arguments: tuple[str, ...], folder: Path) -> Outcome:
        outcome = run(arguments, folder, self.log)
        assert outcome.code == 0, outcome.stderr
        return outcome

    def fresh(self, scenario: Scenario) -> Path:
        """The folder of a scenario before its command."""
        shutil.rmtree(self.work, ignore_errors=True)
        scenario.fill(self.work, self.inputs)
        os.environ["SAEN_CACHE"] = str(self.work / CACHE)
        return self.work

    def undisturbed(self, scenario: Scenario) -> tuple[list[str], Tree]:
        """Calls and files of a run without faults; two of them are equal."""
        trees = []
        for _ in range(2):
            folder = self.fresh(scenario)
            outcome = self._run(scenario.arguments, folder)
            for module in outcome.modules:  # once here, not in every fork
                with suppress(Exception):  # some have names only
                    importlib.import_module(module)
            trees.append(tree(folder))
        assert not differences(*trees), differences(*trees)
        return outcome.calls, trees[0]

    def check(self, scenario: Scenario, wanted: Tree, fault: Fault, at: int) -> tuple[str, str]:
        """How a command with a fault ended, and what is wrong with that, empty if nothing."""
        folder = self.fresh(scenario)
        before = tree(folder)
        first = run(scenario.arguments, folder, self.log, fault, at)
        left = tree(folder)
        call, _, path = first.calls[at].partition(" ") if at < len(first.calls) else ("", "", "")
        removal = call == "remove" or (call == "rename" and is_temporary(Path(path)))
        wrong = _judge_first(first, scenario, before, left, wanted, fault, removal=removal)
        if not wrong and differences(left, wanted):
            wrong = self._repeat(scenario, folder, wanted)
        how = {0: "success", 2: "an error message"}.get(first.code, "the signal")
        return how, wrong

    def _repeat(self, scenario: Scenario, folder: Path, wanted: Tree) -> str:
        again = run(scenario.arguments, folder, self.log)
        if again.code == 2 and "(use --force to overwrite)" in again.stderr:
            again = run((*scenario.arguments, "--force"), folder, self.log)
        if again.code != 0:
            return f"the repeated command ends with {again.code}: {again.stderr.strip()[-300:]}"
        if names := differences(tree(folder), wanted):
            return f"other files after the repeated command: {', '.join(names)}"
        return ""


def _judge_first(
    first: Outcome,
    scenario: Scenario,
    before: Tree,
    left: Tree,
    wanted: Tree,
    fault: Fault,
    *,
    removal: bool,
) -> str:
    """What is wrong right after the fault; what a removal that failed leaves is removed later."""
    if "Traceback" in first.stderr or first.code in (1, -14):
        return f"ends with {first.code}: {first.stderr.strip()[-300:]}"
    if first.code == -fault.signal and fault.signal == 9:
        return ""
    allowed = (0, 2, *((128 + fault.signal,) if fault.signal else ()))
    if first.code not in allowed:
        return f"ends with {first.code}: {first.stderr.strip()[-300:]}"
    if first.code == 2 and not first.stderr.splitlines()[-1].startswith("saen: "):
        return f"no message: {first.stderr.strip()[-300:]}"
    names = [name for name in differences(left, wanted) if not name.startswith(CACHE)]
    if first.code:  # a file may be as before, or already be there
        names = [name for name in names if left.get(name) != before.get(name)]
        names = [name for name in names if not name.startswith(scenario.resumes or ("//",))]
    if removal:
        names = [name for name in names if not name.startswith(".") and "/." not in name]
    if not names:
        return ""
    return f"{'other files' if first.code == 0 else 'left behind'}: {', '.join(names)}"


def cases(calls: list[str], faults: tuple[Fault, ...], every: int) -> Iterator[tuple[Fault, int]]:
    """Every fault at every call that it can happen to, or at some of them."""
    pairs = [
        (fault, at)
        for at, call in enumerate(calls)
        for fault in faults
        if fault.calls is None or call.split(" ")[0] in fault.calls
    ]
    yield from pairs[::every]


def campaign(only: list[str], every: int, say: bool) -> dict[str, Counts]:
    """Run all scenarios that begin with one of the words."""
    result = {name: Counts() for name in CAMPAIGNS}
    with tempfile.TemporaryDirectory() as scratch:
        injector = Injector(Path(scratch).resolve())
        chosen = {t: s for t, s in SCENARIOS.items() if not only or t.startswith(tuple(only))}
        injector.prepare(model=any("model.saen" in each.inputs for each in chosen.values()))
        for title, scenario in chosen.items():
            calls, wanted = injector.undisturbed(scenario)
            for name, counts in result.items():
                counts.calls[title] = len(calls)
                for fault, at in cases(calls, CAMPAIGNS[name], every):
                    how, wrong = injector.check(scenario, wanted, fault, at)
                    counts.injections[fault.name] += 1
                    counts.outcomes[how] += 1
                    if wrong:
                        found = f"{title}: {fault.name} at call {at} ({calls[at]}): {wrong}"
                        counts.found.append(found)
                        print(found, file=sys.stderr, flush=True)
            if say:
                done = sum(sum(counts.injections.values()) for counts in result.values())
                print(f"{title}: {len(calls)} calls, {done} injections so far", flush=True)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], help="how names of scenarios begin")
    parser.add_argument("--every", type=int, default=1, help="inject at one of this many places")
    parser.add_argument("--out", type=Path, help="folder for faults.json and kills.json")
    options = parser.parse_args()
    if "LD_PRELOAD" not in os.environ:
        with tempfile.TemporaryDirectory() as build:
            return start("tests.faults.campaign", sys.argv[1:], Path(build)).returncode
    result = campaign(options.only, options.every, say=True)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        for name, counts in result.items():
            report = counts.to_json(name, options.only, options.every)
            text = json.dumps(report, indent=1, ensure_ascii=False)
            (options.out / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return int(any(counts.found for counts in result.values()))


if __name__ == "__main__":
    sys.exit(main())
