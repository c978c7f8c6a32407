"""Splits: which examples are trained on and which are tested, made, checked, read and written."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, Ints
from saen._util.json_files import read_json
from saen._util.lazy import model_selection
from saen._util.seeds import derive_seed
from saen._util.strings import did_you_mean, plural
from saen.errors import FileError, InputError
from saen.learning import auto
from saen.learning.problem import Problem, checked_groups

Split = tuple[Ints, Ints]
"""Training and test examples."""
PARTS = ("train", "valid", "test")
"""The keys of a split in a file."""


class SmallClassWarning(UserWarning):
    """A class has fewer members than there are folds, so some folds do not test it."""


class LargeGroupWarning(UserWarning):
    """A group has more examples than a test fold should have, so test folds are very unequal."""


@dataclass(frozen=True)
class Splits:
    """Per repeat a list of folds; and, if settings are compared on a part of its own, that part.

    - `repeats`: per repeat its folds, (train, test) indices each;
    - `validation`: per repeat the examples to choose settings on, for splits of one fold a repeat.
    """

    repeats: Sequence[Sequence[Split]]
    validation: Sequence[Ints] | None = None


def renumbered(splits: Splits, numbers: Ints) -> Splits:
    """The same splits with `numbers[i]` for example i, which drops out if that is negative.

    >>> renumbered(Splits([[([0, 1], [2])]]), np.array([0, -1, 1])).repeats
    [[(array([0]), array([1]))]]
    """

    def part(indices: Ints) -> Ints:
        mapped: Ints = numbers[np.asarray(indices)]
        return mapped[mapped >= 0]

    validation = splits.validation
    return Splits(
        [[(part(train), part(test)) for train, test in folds] for folds in splits.repeats],
        None if validation is None else [part(each) for each in validation],
    )


def make_splits(
    targets: ArrayLike,
    repeats: int,
    folds: int,
    seed: int,
    *,
    test_size: float | None = None,
    groups: ArrayLike | None = None,
) -> list[list[Split]]:
    """Shuffled folds for every repeat, by scikit-learn's splitters, with seeds seed, seed + 1, ….

    Warns of a class with fewer members than folds (`SmallClassWarning`) and of a group with more
    members than a test part should have (`LargeGroupWarning`), and raises `InputError` for splits
    that cannot be made.

    Parameters
    ----------
    targets : ArrayLike
        Classes (n,), which every fold holds in about equal shares; or real numbers (n,), or several
        targets (n, t), which do not matter.
    repeats : int
        The number of cross-validations.
    folds : int
        Folds of each.
    seed : int
        The seed of the first.
    test_size : float | None, default=None
        Test one random share of this size per repeat (hold-out) instead of folds.
    groups : ArrayLike | None, default=None
        Examples of one group are never on both sides of a split; shape (n,).

    Examples
    --------
    >>> splits = make_splits([0, 1] * 10, repeats=2, folds=5, seed=0)
    >>> len(splits), len(splits[0]), splits[0][0][1].shape
    (2, 5, (4,))
    """
    y = np.asarray(targets)
    stratified = _has_classes(y)
    group_of = checked_groups(groups, len(y))
    if repeats < 1:
        raise InputError(f"repeats must be an integer ≥ 1, not {repeats}")
    if test_size is None:
        _check_folds(y, folds, group_of)
    elif not 0 < test_size < 1:
        raise InputError(f"test_size must be between 0 and 1, not {test_size:g}")
    if groups is not None:
        _warn_of_large_group(groups, 1 / folds if test_size is None else test_size)
    out, grouped = [], group_of is not None
    for state in range(seed, seed + repeats):
        if test_size is None:
            splitter = fold_splitter(folds, state, stratified, grouped)
        else:
            splitter = hold_out_splitter(test_size, state, stratified, grouped)
        out.append(_split(splitter, y, group_of))
    return out


@dataclass(frozen=True, eq=False)
class Fold:
    """Examples to train on, and to test on.

    - `name`: of its repeat and its place there; the repeat is part of the seeds, the place is not,
      so that a model of a fold is the one that `fit` makes of the same examples;
    - `inner`: pairs of training examples and of those that are held out from them, None as long as
      it is not decided.
    """

    train: Ints
    test: Ints
    name: tuple[int, int] = (0, 0)
    inner: tuple[Split, ...] | None = None

    @property
    def held_out(self) -> Ints:
        """What the inner folds hold out, one after another."""
        if not self.inner:
            return self.train[:0]
        return np.concatenate([check for _, check in self.inner])

    @property
    def parts(self) -> list[slice]:
        """Where each inner fold is among what they hold out."""
        ends = np.cumsum([0, *(len(check) for _, check in self.inner or ())]).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]

    def others(self, part: slice) -> NDArray[np.bool_]:
        """Which held-out examples other inner folds hold out; all, if there is one alone."""
        others = np.full(len(self.held_out), len(self.parts) == 1)
        others[: part.start] = others[part.stop :] = True
        return others

    def split_inside(self, problem: Problem, number: int | str, seed: int) -> Fold:
        """With inner folds of the training examples, unless it has them: `auto`, or so many.

        Parameters
        ----------
        problem : Problem
            Targets and groups of all examples.
        number : int | str
            The number of inner folds, or `"auto"`.
        seed : int
            Random seed.
        """
        if self.inner is not None:
            return self
        train, values = self.train, problem.values[self.train]
        groups = None if problem.groups is None else problem.groups[train]
        if isinstance(number, str):
            number = auto.inner_folds(values, class_sizes(values), grouped=groups is not None)
        inner: tuple[Split, ...] = ()
        if number > 0 and len(train) >= auto.MIN_INNER_EXAMPLES:
            state = derive_seed((seed, self.name[0]), "inner folds") % 2**31
            pairs = inner_folds(values, number, state, groups)
            inner = tuple((train[fit], train[check]) for fit, check in pairs)
        return replace(self, inner=inner)


def inner_folds(targets: Array, folds: int, state: int, groups: Array | None = None) -> list[Split]:
    """Folds of training examples, to decide settings on: like `make_splits`, but never refused.

    One fold is a single split that holds out a tenth, but no more than `MAX_INNER_TEST` examples.
    """
    counts = class_sizes(targets)
    n_groups = 0 if groups is None else len(np.unique(groups))
    if n_groups < 2:
        groups = None
    if folds == 1:
        share = min(auto.INNER_TEST_SIZE, auto.MAX_INNER_TEST / len(targets))
        stratified = counts.min() >= 2 and share * len(targets) >= len(counts)
        splitter = hold_out_splitter(share, state, stratified, groups is not None)
        return _split(splitter, targets, groups)
    folds = min(folds, len(targets) if groups is None else n_groups)
    try:
        splitter = fold_splitter(folds, state, counts.max() >= folds, groups is not None)
        return _split(splitter, targets, groups)
    except InputError:  # of few groups, folds of equal classes may be empty
        return _split(fold_splitter(folds, state, False, groups is not None), targets, groups)


def class_sizes(targets: Array) -> Ints:
    """The members of every class, a single 0 where there is no one class per example."""
    return np.unique(targets, return_counts=True)[1] if _has_classes(targets) else np.zeros(1, int)


def _has_classes(targets: Array) -> bool:
    """Whether there is one class per example, so that folds can be stratified."""
    return targets.ndim == 1 and targets.dtype.kind != "f"


def fold_splitter(folds: int, state: int, stratified: bool, grouped: bool = False) -> Any:
    """scikit-learn's splitter into shuffled folds."""
    plain = model_selection.StratifiedKFold if stratified else model_selection.KFold
    by_group = model_selection.StratifiedGroupKFold if stratified else model_selection.GroupKFold
    kind = by_group if grouped else plain
    return kind(folds, shuffle=True, random_state=state)


def hold_out_splitter(test_size: float, state: int, stratified: bool, grouped: bool = False) -> Any:
    """scikit-learn's splitter that holds out one random part: a share, or so many examples."""
    plain = model_selection.ShuffleSplit
    ungrouped = model_selection.StratifiedShuffleSplit if stratified else plain
    kind = model_selection.GroupShuffleSplit if grouped else ungrouped
    return kind(1, test_size=test_size, random_state=state)


def _split(splitter: Any, y: Array, groups: Array | None) -> list[Split]:
    with warnings.catch_warnings():
        # `_check_folds` has said it once, in words of its own.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        try:
            folds = list(splitter.split(np.empty(len(y)), y, groups))
        except ValueError as error:
            raise InputError(f"cannot split {len(y)} examples: {error}") from None
    if any(len(train) == 0 or len(test) == 0 for train, test in folds):
        raise InputError("a fold would be empty: use fewer folds")
    return folds


def _check_folds(y: Array, folds: int, groups: Array | None) -> None:
    if folds < 2:
        raise InputError(f"folds must be an integer ≥ 2, not {folds}")
    if folds > len(y):
        raise InputError(f"{folds} folds of {len(y)} examples: use at most {len(y)} folds")
    if groups is not None and len(np.unique(groups)) < folds:
        n_groups = len(np.unique(groups))
        raise InputError(f"{folds} folds of {n_groups} groups: use at most {n_groups} folds")
    if not _has_classes(y):
        return
    classes, counts = np.unique(y, return_counts=True)
    if counts.max() < 2:
        raise InputError(f"every class has 1 member ({len(y):,} examples, as many classes)")
    if counts.max() < folds:
        raise InputError(
            f"no class has {folds} members, the largest has {counts.max()}: use fewer folds"
        )
    if counts.min() < folds:
        smallest = counts.argmin()
        warnings.warn(
            f"class {str(classes[smallest])!r} has fewer members ({counts[smallest]}) than there "
            f"are folds ({folds}): some folds do not test it",
            SmallClassWarning,
            stacklevel=3,
        )


def _warn_of_large_group(groups: ArrayLike, share: float) -> None:
    counts = np.unique(np.asarray(groups).astype(str), return_counts=True)[1]
    largest, n = int(counts.max()), int(counts.sum())
    expected = int(np.ceil(share * n))
    if largest > expected:
        warnings.warn(
            f"the largest group has {largest:,} of {n:,} examples, more than a test fold should "
            f"have ({expected:,}): test folds are very unequal",
            LargeGroupWarning,
            stacklevel=3,
        )


# -- checking ----------------------------------------------------------------------------------


def check_splits(splits: Sequence[Sequence[Split]], n: int) -> None:
    """Raise `InputError` for splits that do not fit `n` examples.

    A repeat of one fold is a hold-out, which may test any part. A repeat of several folds must test
    each example exactly once. No fold trains on what it tests.

    >>> check_splits([[([0, 1], [2]), ([2], [0, 1])]], 3)
    >>> check_splits([[([0, 1], [1, 2]), ([2], [0])]], 3)
    Traceback (most recent call last):
        ...
    saen.errors.InputError: repeat 0, fold 0 trains on examples that it tests
    """
    if not len(splits):
        raise InputError("there are no repeats")
    if len({len(folds) for folds in splits}) > 1:
        raise InputError("every repeat needs the same number of folds")
    if not len(splits[0]):
        raise InputError("there are no folds")
    for what, part in _named_parts(Splits(splits)):
        _check_part(part, n, what)
    for repeat, folds in enumerate(splits):
        for fold, (train, test) in enumerate(folds):
            if len(np.intersect1d(train, test)):
                raise InputError(f"repeat {repeat}, fold {fold} trains on examples that it tests")
        tested = np.sort(np.concatenate([test for _, test in folds]))
        if len(folds) > 1 and not np.array_equal(tested, np.arange(n)):
            raise InputError(f"repeat {repeat} must test each of the {n} examples exactly once")


def check_validation(validation: Sequence[Ints], splits: Sequence[Sequence[Split]], n: int) -> None:
    """Raise `InputError` unless every repeat has one fold, and a validation part apart from it."""
    if len(validation) != len(splits) or any(len(folds) != 1 for folds in splits):
        raise InputError("validation examples belong to splits of one fold: one part per repeat")
    for repeat, (part, folds) in enumerate(zip(validation, splits, strict=True)):
        _check_part(part, n, f"repeat {repeat} needs validation")
        for name, other in zip(("training", "test"), folds[0], strict=True):
            if len(np.intersect1d(part, other)):
                raise InputError(f"repeat {repeat} validates on {name} examples")


def _named_parts(splits: Splits) -> Iterator[tuple[str, Array]]:
    """All parts, each with what it is, for messages."""
    for repeat, folds in enumerate(splits.repeats):
        for fold, (train, test) in enumerate(folds):
            yield f"repeat {repeat}, fold {fold} needs training", np.asarray(train)
            yield f"repeat {repeat}, fold {fold} needs test", np.asarray(test)
    for repeat, part in enumerate(splits.validation or ()):
        yield f"repeat {repeat} needs validation", np.asarray(part)


def _check_part(indices: ArrayLike, n: int, what: str) -> None:
    """Raise unless these are distinct examples, at least one."""
    part = np.asarray(indices)
    if part.ndim != 1 or len(part) == 0 or part.dtype.kind not in "iu":
        raise InputError(f"{what} indices: a list of integers that is not empty")
    if part.min() < 0 or part.max() >= n:
        raise InputError(f"{what} indices from 0 to {n - 1}")
    if len(np.unique(part)) < len(part):
        raise InputError(f"{what} indices that differ: one occurs twice")


# -- files -------------------------------------------------------------------------------------


def splits_to_json(splits: Splits) -> dict[str, Any]:
    """Splits as JSON: `repeats`, a list of lists of folds with `train` and `test` indices."""
    document = {
        "repeats": [
            [
                {"train": np.asarray(train).tolist(), "test": np.asarray(test).tolist()}
                for train, test in folds
            ]
            for folds in splits.repeats
        ]
    }
    if splits.validation is not None:
        for part, folds in zip(splits.validation, document["repeats"], strict=True):
            folds[0]["valid"] = np.asarray(part).tolist()
    return document


def splits_from_json(
    path: Path,
    n: int,
    skipped: Sequence[int | None] = (),
    notify: Callable[[str], object] | None = None,
) -> Splits:
    """Splits for a dataset of `n` examples from a file, checked.

    The file holds what `splits_to_json` gives, or a single published split as
    `{"train": […], "valid": […], "test": […]}`; `valid` may be left out. Its indices count all
    records of the input: those that were `skipped` (see `skipped_records`) drop out of the splits,
    which are renumbered. `notify` is called with one line if there were any.
    """
    document = read_json(path)
    try:
        if "repeats" not in document:
            document = {"repeats": [[document]]}
        folds = [fold for repeat in document["repeats"] for fold in repeat]
        _check_keys(document, ("repeats",), path)
        for fold in folds:
            _check_keys(fold, PARTS, path)
        repeats: list[list[Split]] = [
            [(_indices(fold["train"]), _indices(fold["test"])) for fold in repeat]
            for repeat in document["repeats"]
        ]
        given = [_indices(fold["valid"]) for fold in folds if "valid" in fold]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise FileError(
            'expected {"repeats": [[{"train": […], "test": […]}, …], …]} or '
            '{"train": […], "valid": […], "test": […]}',
            path=path,
        ) from None
    splits = Splits(repeats, given or None)
    try:
        if skipped:
            splits = _without(splits, n, skipped, path.name, notify)
        check_splits(splits.repeats, n)
        if splits.validation is not None:
            check_validation(splits.validation, splits.repeats, n)
    except InputError as error:
        raise FileError(str(error), path=path) from None
    return splits


def _check_keys(document: Any, known: Sequence[str], path: Path) -> None:
    """Raise if an object has another key: a part that is spelt otherwise would be ignored."""
    unknown = [key for key in document if key not in known] if isinstance(document, dict) else []
    if unknown:
        hint = f"{did_you_mean(unknown[0], known)}: expected {', '.join(known)}"
        raise FileError(f"unknown key {unknown[0]!r:.60}{hint}", path=path)


def _without(
    splits: Splits,
    n: int,
    skipped: Sequence[int | None],
    name: str,
    notify: Callable[[str], object] | None,
) -> Splits:
    """Splits of all records as splits of the `n` that were not skipped."""
    records = remaining_records(n, skipped)
    if records is None:
        raise InputError(
            "splits count all graphs of the input, but which of them were skipped is not known in "
            "this format: correct them, or leave them out of the files"
        )
    places = np.full(n + len(set(skipped)), -1)
    places[records] = np.arange(n)
    used: set[int] = set()
    for what, part in _named_parts(splits):
        _check_part(part, len(places), what)
        used.update(part.tolist())
    lost = len(used.intersection(skipped))
    if lost and notify is not None:
        notify(f"{name}: {lost:,} of {plural(len(used), 'example')} left out, skipped as bad")
    return renumbered(splits, places)


def remaining_records(n: int, skipped: Sequence[int | None]) -> Ints | None:
    """Where `n` examples are in an input of which others were skipped, if that is known.

    >>> remaining_records(3, [1, 3])
    array([0, 2, 4])
    """
    known = {record for record in skipped if record is not None}
    every = np.arange(n + len(known))
    return None if None in skipped else np.setdiff1d(every, [*known])


def _indices(values: Any) -> NDArray[np.int64]:
    return np.array(values)  # fractions are refused by `_check_part`, not cut
