"""Models over part counts: linear models or forests.

What is left open (`depth`, `C`) is chosen on inner folds of the training examples, by log loss or
squared error; the decision values of the held-out examples also give the temperature that turns
decision values into probabilities. Then the model is fitted on all of the training examples. For
several targets, depth, C and temperature are common to all.

Explanations are exact, since a model is a sum. The entry (role π, part i, count n) of an example
adds something: to a linear model, coefficient × feature value over the columns of (π, i); to a
forest, the changes of value at the splits on them, along the paths of the example. Its n
occurrences share this equally. The example is compared with the training examples, whose mean
output is the baseline. What is left, -w·x̄ with their average x̄ in a linear model and in a forest
the splits on parts that the example does not have and on the number of all, is shared equally by
all parts that the model reads (those up to its depth). What a part contributes is handed down to
its own parts in equal shares, since the model tells whole parts apart and not what is inside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, cpu_count, delayed
from scipy import sparse

from saen._util.arrays import Array, Floats, Ints
from saen._util.digests import digest_of
from saen._util.strings import plural
from saen.data.compression import Compressed, compress
from saen.data.hierarchy import Hierarchy, Relation
from saen.decompositions import Decomposition
from saen.decompositions.node_labels import ATTRIBUTE_BINS
from saen.errors import InputError
from saen.io.store import container
from saen.io.store.packing import under
from saen.learning.calibration import Calibration
from saen.learning.decomposing import (
    Decomposed,
    DecompositionArguments,
    Decompositions,
)
from saen.learning.features import GIVEN, RDKIT, FeatureReader, Features
from saen.learning.models.base import (
    Cost,
    Explained,
    FeatureContribution,
    Fitted,
    FoldResult,
    ModelLearner,
    Results,
    Study,
    TopEntries,
    problem_arrays,
    unpack_common,
)
from saen.learning.models.encoding import (
    ENCODINGS,
    SHARES,
    Encoded,
    Encoder,
    PartTable,
    count_parts,
    feature_rows,
    narrow,
    row_scales,
    scaled_rows,
)
from saen.learning.models.forest import MAX_COLUMNS, MIN_LEAF, Forest
from saen.learning.models.solvers import Linear, Solver, quiet
from saen.learning.parameters import (
    Interval,
    clone_with,
    parameter,
)
from saen.learning.problem import Problem
from saen.learning.splits import Fold

USUAL_C = 1.0
MAX_THRESHOLDS = 32
MIN_PARALLEL_ENTRIES = 2_000_000
"""Entries of all fits together from which on several processes are worth their start."""
SECONDS_PER_ENTRY, KEPT_PER_PART, WORKING_PER_ENTRY = 2e-7, 80, 200
"""Of forecasts: a fit to an entry of the top level, bytes of a model and while it is fitted."""
TYPICAL_TRIALS, SHARED_OUTPUTS = 2.5, 4
"""Of C, for a forecast; and outputs that take as long to fit together as one more alone."""
MAX_FOREST_DEPTH = 2
"""Up to which a forest chooses its depth: larger parts are too rare to split on."""
FOREST_WORK = 5
"""How many times as long as a linear model of its columns a forest takes, roughly."""
EMBEDDING_WIDTH = 256
"""Columns of `embed` where there are more features."""
_AT_LEAST_ONE = Interval(Integral, 1, None, "left")


@dataclass(eq=False, repr=False)
class EncodingArguments(DecompositionArguments):
    """How parts are counted and encoded.

    Parameters
    ----------
    decomposition
        How examples are taken apart: a decomposition, its name, or a name with parameters such as
        `"ego(edges='roles')"`. The depth of `neighbourhoods`, if not given, is 5, or less for large
        datasets.
    encoding
        `unary` turns a count c into the features "at least 1", …, "at least c", whose inner product
        is Σ min(x, y); thresholds between which no training example lies share a column, which does
        not change inner products.
    max_thresholds
        About the largest number of columns per part in the unary encoding: the first thresholds are
        exact, later ones ever wider apart, with counts between them interpolated. None: no limit.
    norm
        `l2` divides every row by its length (in the unary encoding, that of the unary vector).
        Parts without a column count, so inner products are those of the normalised kernel.
    min_graphs
        Leave out parts that fewer training examples have.
    """

    decomposition: str | Decomposition = parameter("neighbourhoods", str, Decomposition)
    _: KW_ONLY
    encoding: str = parameter("unary", set(ENCODINGS))
    max_thresholds: int | None = parameter(None, _AT_LEAST_ONE, None)
    norm: str | None = parameter("l2", {"l2"}, None)
    min_graphs: int = parameter(1, _AT_LEAST_ONE)

    _deep: ClassVar[bool] = True

    def _encoder(self, table: PartTable, uses: Ints, **changes: Any) -> Encoder:
        """The columns that the examples which are used fix."""
        names = ("encoding", "max_thresholds", "min_graphs")
        return Encoder.fit(table, uses, **{name: getattr(self, name) for name in names} | changes)


@dataclass(eq=False, repr=False)
class CountsArguments(EncodingArguments):
    """The arguments of estimators over part counts.

    Parameters
    ----------
    model
        `forest`: decision trees over the shares of the most frequent parts and the total number of
        parts (regression: over plain counts), to which `encoding`, `norm` and `C` do not apply.
    depth
        Count parts up to this depth (or number of radii less 1) of `neighbourhoods` or `ego`. None:
        all. `auto`: selected on inner folds, for a forest from 0, 1 and 2.
    C
        Inverse strength of regularisation. `auto`: selected on inner folds, up and down from 1
        while the loss improves.
    features
        Features of whole examples that are read together with the counts: those that the data have
        (`given`), or also RDKit descriptors of molecules (`rdkit`).
    inner_folds
        Inner folds of the training examples that select settings and calibrate. 1 is a single split
        with a tenth held out; 0 is none (then `auto` is the largest depth and C = 1). `auto`: 5
        below 500 examples, 3 below 8,000 (or with groups, several targets or a rare class), else 1.
    """

    _: KW_ONLY
    model: str = parameter("linear", {"linear", "forest"})
    max_thresholds: int | None = parameter(MAX_THRESHOLDS, _AT_LEAST_ONE, None)
    depth: int | str | None = parameter("auto", Interval(Integral, 0, None, "left"), {"auto"}, None)
    C: float | str = parameter("auto", Interval(Real, 0, None, "neither"), {"auto"})
    features: str = parameter(GIVEN, {GIVEN, RDKIT})
    inner_folds: int | str = parameter("auto", Interval(Integral, 0, None, "left"), {"auto"})


@dataclass(frozen=True, eq=False)
class CountsLearner(ModelLearner):
    """Fits a linear model or a forest by these arguments."""

    kind: ClassVar[str] = "counts"
    title: ClassVar[str] = "part counts"
    vectors: ClassVar[str] = ATTRIBUTE_BINS
    cheap: ClassVar[bool] = True
    reads_features: ClassVar[bool] = True

    arguments: CountsArguments

    def start(self, study: Study, folds: Sequence[Fold]) -> Callable[[], Results]:
        """Nothing begins before the result is asked for."""
        folds = study.split_inside(folds, self.arguments.inner_folds)
        study.expect(len(folds))
        return lambda: self._fit(study, folds)

    def cost(self, study: Study, folds: Sequence[Fold]) -> Cost:
        """By the parts of the examples: those of every depth, for every setting that is tried."""
        costs, forest = [], self.arguments.model == "forest"
        outputs = max(study.problem.targets.n_outputs, 1)
        for fold in study.split_inside(folds, self.arguments.inner_folds):
            decomposed = study.decomposed(self.spec, fold.train)
            top = decomposed.compressed.hierarchy.relations[-1]
            depths = top.n_roles if decomposed.graded and self.arguments.depth == "auto" else 1
            trials = (depths + 1) / 2 + (0 if forest else TYPICAL_TRIALS)
            inner = sum(len(fit) for fit, _ in fold.inner or ()) / max(len(fold.train), 1)
            fits = (1 + trials * inner) * (1 + (outputs - 1) / SHARED_OUTPUTS)
            read = min(top.n_entries, MAX_COLUMNS * len(fold.train)) * FOREST_WORK
            work = (read if forest else top.n_entries) * fits
            kept = top.n_parts * (KEPT_PER_PART + 8 * outputs)
            working = top.n_entries * WORKING_PER_ENTRY + 2 * 8 * outputs * top.n_parts
            costs.append(Cost(work * SECONDS_PER_ENTRY, kept, working))
        return Cost.of_all(costs)

    def _fit(self, study: Study, folds: Sequence[Fold]) -> list[FoldResult]:
        files: list[Path | None] = []
        jobs: list[tuple[_FoldProblem, Decomposed]] = []
        tables: dict[int, PartTable] = {}
        made = list[FoldResult | None]()
        features = study.data.features(self.arguments.features)
        for fold in folds:
            decomposed = study.decomposed(self.spec, fold.train)
            file = self._file(study, fold, decomposed, features)
            files.append(file)
            if file is not None and file.exists():
                made.append(_read_result(file, fold))
                study.advance(1)
                continue
            made.append(None)
            place = id(decomposed.compressed.hierarchy)
            if place not in tables:
                tables[place] = count_parts(decomposed.compressed)
            table, graded = tables[place], decomposed.graded
            own = _FoldProblem.of(self, study.problem, fold, table, graded, features)
            jobs.append((own, decomposed))
        cost = sum(len(job.table.parts) for job, _ in jobs)
        cost *= FOREST_WORK if self.arguments.model == "forest" else 1
        n_jobs = study.parallel
        if n_jobs is None:
            n_jobs = 1 if cost < MIN_PARALLEL_ENTRIES else min(len(jobs), cpu_count())
        run = Parallel(n_jobs=max(n_jobs, 1), return_as="generator")
        # Not in threads: those of LIBLINEAR share one generator, and no fit would repeat.
        solved = run(delayed(_FoldProblem.solve)(job) for job, _ in jobs)
        pending = iter([decomposed for _, decomposed in jobs])
        for place, file in enumerate(files):
            if made[place] is None:
                decomposed = next(pending)
                model, tested, held_out = next(solved)
                result = _finished(study, folds[place], decomposed, model, tested, held_out)
                made[place] = result
                if file is not None:
                    _write_result(file, result)
                study.advance(1)
        return [result for result in made if result is not None]

    def _file(
        self, study: Study, fold: Fold, decomposed: Decomposed, features: Features | None
    ) -> Path | None:
        if study.folder is None:
            return None
        problem = study.problem
        name = digest_of(
            self.key(),
            study.keep,
            problem.targets.to_json(),
            *problem_arrays(problem, decomposed.compressed),
            *([] if features is None else [features.names, features.values]),
            fold.train,
            fold.test,
            *(each for pair in fold.inner or () for each in pair),
        )
        return study.folder / f"counts-{name}.saen"


def _finished(
    study: Study,
    fold: Fold,
    decomposed: Decomposed,
    model: CountsModel,
    tested: Floats,
    held_out: Floats,
) -> FoldResult:
    """The result of a fold from outputs, which are calibrated but for the errors of numbers."""
    problem = study.problem
    targets = problem.targets
    tested, held_out = targets.read(tested), targets.read(held_out)
    rows = fold.held_out
    errors = targets.calibrate(held_out[None], problem.values[rows], problem.weights[rows]).errors
    calibration = Calibration(errors=errors if len(rows) else None)
    fitted = None
    if study.keep:
        fitted = FittedCounts(
            targets=targets,
            calibration=calibration,
            decomposition=decomposed.decomposition,
            schema=decomposed.schema,
            model=model,
        )
    return FoldResult(fold, calibration, tested, held_out, chosen=model.choices, fitted=fitted)


def _write_result(file: Path, result: FoldResult) -> None:
    document: dict[str, Any] = {"chosen": result.chosen, "model": None}
    tensors = {"tested": result.tested, "held_out": result.held_out}
    if result.calibration.errors is not None:
        tensors["errors"] = result.calibration.errors
    if result.fitted is not None:
        document["model"], arrays = result.fitted.pack()
        tensors |= {f"model.{key}": array for key, array in arrays.items()}
    container.write(file, "predictions", document, tensors)


def _read_result(file: Path, fold: Fold) -> FoldResult:
    _, document, tensors = container.read(file)
    model, fitted = document["model"], None
    if model is not None:
        fitted = FittedCounts.unpack(model, under("model.", tensors))
    errors = tensors.get("errors")
    calibration = Calibration(errors=None if errors is None else np.array(errors))
    tested, held_out = np.array(tensors["tested"]), np.array(tensors["held_out"])
    return FoldResult(fold, calibration, tested, held_out, chosen=document["chosen"], fitted=fitted)


# -- the model ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountsModel:
    """A model over encoded part counts.

    - `norm`: None, `l2`, or of a forest `SHARES`;
    - `function`: from features to outputs; calibrated, so that two classes have the log-odds of
      the second as the only output, several classes one logit each, and several targets the
      log-odds of their second classes;
    - `depth`, `C`: as given or chosen (a forest has no C); `score`: of the inner folds, None
      without any;
    - `typical` (outputs,): the mean output over the training examples, by weight, which is for a
      linear model that of the average of their features;
    - `reader`: of numbers about whole examples, whose columns follow those of parts.
    """

    encoder: Encoder
    norm: str | None
    function: Linear | Forest
    depth: int | None
    C: float | None
    score: float | None
    typical: Floats
    reader: FeatureReader | None = None

    @property
    def choices(self) -> dict[str, Any]:
        """The settings that were left open, as they were decided."""
        return {"depth": self.depth} if self.C is None else {"depth": self.depth, "C": self.C}

    def outputs(self, table: PartTable, features: Floats | None) -> Floats:
        """Of every example of a table with these features, (n, outputs)."""
        X = self._columns(self.encoder.encode(table), table)
        if self.reader is None:
            return self.function.outputs(X)[table.top]
        return self.function.outputs(self._beside(X[table.top], features))

    def added(
        self, table: PartTable, features: Floats | None, weights: Floats
    ) -> tuple[Floats, Floats]:
        """What entries of a table, (entries,), and features, (n, k), add to Σ weights · outputs.

        Of tables in which every example has a row of its own.
        """
        encoded = self.encoder.encode(table)
        rows = table.rows[encoded.entries]
        scales = row_scales(self.encoder, table, self.norm, self.depth)
        columns, values = encoded.columns, encoded.values * scales[rows]
        X, n_parts = self._columns(encoded, table), len(rows)
        k = 0 if self.reader is None else len(self.reader.names)
        if self.reader is not None:
            X = self._beside(X, features)
            own = np.repeat(np.arange(table.n_rows), k)
            read = np.broadcast_to(self._read(features), (table.n_rows, k))
            rows, values = np.r_[rows, own], np.r_[values, read.ravel()]
            columns = np.r_[columns, np.tile(np.arange(X.shape[1] - k, X.shape[1]), table.n_rows)]
        adds = self.function.entry_outputs(X, (rows, columns, values), weights)
        parts = np.bincount(encoded.entries, adds[:n_parts], minlength=len(table.parts))
        return parts.astype(np.float64), adds[n_parts:].reshape(table.n_rows, k)

    def embedding(self, table: PartTable) -> Floats:
        """Dense features of the unique examples: as they are if few, else hashed, (rows, width).

        Without the number of all parts, which a forest reads, too: no other column would count.
        """
        n = self.encoder.n_columns
        features = self._columns(self.encoder.encode(table), table)[:, :n]
        if n > EMBEDDING_WIDTH:
            rng = np.random.default_rng(n)
            places = rng.integers(EMBEDDING_WIDTH, size=n)
            signs = rng.choice([-1.0, 1.0], size=n)
            shape = (n, EMBEDDING_WIDTH)
            features = features @ sparse.csr_array((signs, (np.arange(n), places)), shape=shape)
        dense: Floats = features.toarray()
        return dense

    def _columns(self, encoded: Encoded, table: PartTable) -> sparse.csr_array:
        rows = feature_rows(encoded, table, self.encoder.n_columns)
        return scaled_rows(rows, self.encoder, table, self.norm, self.depth)

    def _read(self, features: Floats | None) -> Floats:
        """Features as the function takes them; those that are not given are average."""
        assert self.reader is not None
        k = len(self.reader.names)
        return np.zeros((1, k)) if features is None else self.reader.read(features)

    def _beside(self, X: sparse.csr_array, features: Floats | None) -> sparse.csr_array:
        """The columns of parts, then those of features."""
        read = self._read(features)
        rows = np.broadcast_to(read, (X.shape[0], read.shape[1]))
        return narrow(sparse.hstack([X, sparse.csr_array(rows)], format="csr"))


@dataclass(eq=False, kw_only=True)
class FittedCounts(Fitted):
    """A fitted model over part counts."""

    kind = CountsLearner.kind

    model: CountsModel

    def table(self, data: Decompositions) -> PartTable:
        """The parts of new data, counted per example."""
        return count_parts(self.compress(data))

    def outputs(self, data: Decompositions) -> Floats:
        """Of every example, calibrated, (n, outputs)."""
        return self.model.outputs(self.table(data), self.features(data))

    def features(self, data: Decompositions) -> Floats | None:
        """The features of new data that the model reads, (n, k)."""
        reader = self.model.reader
        if reader is None:
            return None
        known = data.features(reader.source)
        return (known or Features((), np.empty((len(data), 0)))).named(reader.names)

    def each(self, data: Decompositions) -> Floats:
        """What the only model predicts, (n, 1, …)."""
        return self.targets.read(self.outputs(data))[:, None]

    def combined(self, each: Floats) -> Floats:
        """The only one."""
        return each[:, 0]

    def unseen_share(self, data: Decompositions) -> float:
        """The share of part occurrences, up to the depth, without a column in the model."""
        table = self.table(data)
        return self.model.encoder.encode(table).unseen_share(table, self.model.depth)

    def embed(self, data: Decompositions, level: int | None = None) -> Floats:
        """Dense vectors of the examples, (n, at most 256).

        Up to 256 features are returned as they are; more are added up with random signs in 256
        columns, which keeps inner products up to an error of about 1/16 of the lengths.
        """
        if level not in (None, self.schema.depth):
            raise InputError("part counts have vectors of whole examples only: omit the level")
        table = self.table(data)
        return self.model.embedding(table)[table.top]

    # -- explanations ------------------------------------------------------------------------

    @property
    def knows_average(self) -> bool:
        """Every model does."""
        return True

    def top_entries(self, compressed: Compressed, weights: Sequence[Floats]) -> list[TopEntries]:
        """Exact; an example without parts that the model reads is its own baseline.

        Features are those of the average training example; what they add is in the baselines.
        """
        return [
            (outputs, baselines + beside.sum(axis=1), own)
            for (outputs, baselines, own), beside in self._top(compressed, weights, None)
        ]

    def _top(
        self, compressed: Compressed, weights: Sequence[Floats], features: Floats | None
    ) -> list[tuple[TopEntries, Floats]]:
        """What entries of unique examples and their features add, see `CountsModel.added`."""
        table, model, found = count_parts(compressed), self.model, []
        table = replace(table, top=np.arange(table.n_rows))
        counts = table.inside(model.depth) * table.counts
        sizes, raw = table.sizes(model.depth), model.outputs(table, features)
        for each in weights:
            outputs, baseline = raw @ each, float(each @ model.typical)
            own, beside = model.added(table, features, each)
            rest = outputs - baseline - table.summed(own) - beside.sum(axis=1)
            own += counts * (rest / np.maximum(sizes, 1))[table.rows]
            alone = np.where(sizes > 0, baseline, outputs - beside.sum(axis=1))
            found.append(((outputs, alone, own), beside))
        return found

    def explained(
        self, hierarchy: Hierarchy, weights: Floats, data: Decompositions | None = None
    ) -> Explained:
        """Exact, down to the parts; shared equally below."""
        compressed = compress(hierarchy)
        features = None if data is None else self.features(data)
        [((outputs, baselines, unique_entries), beside)] = self._top(
            compressed, [weights], features
        )
        top, unique = hierarchy.relations[-1], compressed.hierarchy.relations[-1]
        per_occurrence = unique_entries / unique.multiplicity
        codes = unique.roles.astype(np.int64) * unique.n_parts + unique.parts
        order = np.argsort(codes)
        own = (
            top.roles.astype(np.int64) * unique.n_parts
            + compressed.unique_of(hierarchy.depth - 1)[top.parts]
        )
        places = order[np.searchsorted(codes, own, sorter=order)]
        entries = [per_occurrence[places] * top.multiplicity]
        parts = _sums(top, entries[0])
        objects: list[Floats] = [np.array([outputs[0]]), parts]
        for relation in reversed(hierarchy.relations[:-1]):
            shares = relation.shared(objects[-1])
            entries.append(shares)
            objects.append(_sums(relation, shares))

        def inside(group: Ints) -> Floats:
            values, reached = np.zeros_like(parts), group
            values[group] = parts[group]
            for relation in reversed(hierarchy.relations[:-1]):
                values = _sums(relation, relation.shared(values))
                reached = relation.parts_of(reached)
            inside: Floats = values[reached]
            return inside

        return Explained(
            float(outputs[0]),
            float(baselines[0]),
            objects[::-1],
            [*objects[:0:-1], np.array([baselines[0]])],
            entries[::-1],
            lambda groups: [inside(group) for group in groups],
            1,
            self._named(features, beside),
        )

    def _named(self, features: Floats | None, beside: Floats) -> list[FeatureContribution]:
        """What every feature of the only example contributes."""
        reader = self.model.reader
        if reader is None or features is None:
            return []
        rows = zip(reader.names, features[0].tolist(), beside[0].tolist(), strict=True)
        return [FeatureContribution(*row) for row in rows]

    # -- files ------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Columns, features, depth and C, and minus the score of the inner folds.

        That is a log loss, or of numbers a squared error relative to the variance of the targets.
        """
        model = self.model
        features = {} if model.reader is None else {"features": len(model.reader.names)}
        loss = self.targets.choose("inner_log_loss", "inner_relative_squared_error")
        score = {} if model.score is None else {loss: -model.score}
        return {"columns": model.encoder.n_features, **features, **model.choices, **score}

    @property
    def in_words(self) -> str:
        """The function, what it reads, and what was chosen."""
        model = self.model
        known = 0 if model.reader is None else len(model.reader.names)
        beside = f" and {plural(known, 'feature')}" if known else ""
        words = [f"{model.function.name} over {model.encoder.n_features:,} part counts{beside}"]
        words += [] if model.depth is None else [f"depth {model.depth}"]
        return ", ".join(words if model.C is None else [*words, f"C = {model.C:g}"])

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Columns, and the function of them."""
        document, tensors = self._pack_common()
        model, encoder = self.model, self.model.encoder
        document["counts"] = {
            "encoding": encoder.encoding,
            "norm": model.norm,
            "depth": model.depth,
            "C": model.C,
            "score": model.score,
        }
        tensors["counts.ids"] = encoder.ids.view(np.int64)
        tensors["counts.starts"] = encoder.starts
        tensors["counts.thresholds"] = encoder.thresholds
        if encoder.columns is not None and encoder.factors is not None:
            tensors["counts.columns"] = encoder.columns
            tensors["counts.factors"] = encoder.factors
        function, name = model.function, model.function.name
        tensors |= {
            f"{name}.{each.name}": getattr(function, each.name) for each in fields(function)
        }
        tensors["counts.typical"] = model.typical
        if model.reader is not None:
            document["features"], numbers = model.reader.pack()
            tensors |= numbers
        return document, tensors

    @classmethod
    def unpack(cls, document: dict[str, Any], tensors: Mapping[str, Array]) -> FittedCounts:
        """Checked against schema and targets."""
        common, known = unpack_common(document, tensors), document["counts"]
        own = {key: np.array(array) for key, array in under("counts.", tensors).items()}
        ids = own["ids"].view(np.uint64)
        joined = own.get("columns"), own.get("factors")
        encoder = Encoder(known["encoding"], ids, own["starts"], own["thresholds"], *joined)
        encoder.check()
        trees, linear = (under(f"{kind.name}.", tensors) for kind in (Forest, Linear))
        function: Linear | Forest = Forest(**trees) if trees else Linear(**linear)
        reader = None
        if "features" in document:
            reader = FeatureReader.unpack(document["features"], np.array(tensors["features"]))
        k = 0 if reader is None else len(reader.names)
        function.check(encoder.n_columns + (known["norm"] == SHARES) + k)
        typical = own["typical"]
        if (
            typical.shape != function.intercept.shape
            or typical.dtype != np.float64
            or not np.isfinite(typical).all()
            or known["norm"] not in ((None, SHARES) if trees else (None, "l2"))
            or type(known["depth"]) not in (int, type(None))
            or (known["depth"] or 0) < 0
            or not isinstance(known["C"], int | float | None)
            or (known["C"] is None) != bool(trees)
            or not isinstance(known["score"], int | float | None)
            or function.n_outputs != common["targets"].n_outputs
        ):
            raise InputError("the model does not match its columns")
        rest = known["depth"], known["C"], known["score"], typical, reader
        model = CountsModel(encoder, known["norm"], function, *rest)
        return cls(**common, model=model)


# -- fitting one fold ----------------------------------------------------------------------------


class _Trial(NamedTuple):
    """Inner folds with some settings: their score, outputs for held-out examples, and the factor
    that calibrates these."""

    score: float
    factor: float
    outputs: Floats


@dataclass(eq=False)
class _FoldProblem:
    """One fold: its features at every depth, choices, calibration and the final fit.

    `table` and `problem` are those of the training examples, followed by others that inner folds
    hold out (a published validation part); `n_train` is where these begin, `fold` counts them all.
    """

    arguments: CountsArguments
    solver: Solver
    table: PartTable
    tests: PartTable
    problem: Problem
    class_weight: Any
    n_train: int
    fold: Fold
    graded: bool
    features: Features | None
    test_features: Floats | None

    @staticmethod
    def of(
        learner: CountsLearner,
        problem: Problem,
        fold: Fold,
        table: PartTable,
        graded: bool,
        features: Features | None,
    ) -> _FoldProblem:
        """The part of the data that a fold needs."""
        arguments, targets = learner.arguments, problem.targets
        changes: dict[str, Any] = {}
        solver = Solver.of(targets, forest=arguments.model == "forest")
        if not solver.costs:  # a forest
            depth = MAX_FOREST_DEPTH if isinstance(arguments.depth, str) else arguments.depth
            if graded and depth is not None:
                table = table.up_to(depth)
            # A part of one example splits nothing off.
            fewest = max(arguments.min_graphs, MIN_LEAF)
            changes = {"encoding": "counts", "norm": solver.norm, "min_graphs": fewest}
        rows = np.concatenate([fold.train, np.setdiff1d(fold.held_out, fold.train)])
        own = Problem(targets, problem.values[rows], problem.weights[rows])
        order = np.argsort(rows, kind="stable")

        def places(examples: Ints) -> Ints:
            return order[np.searchsorted(rows[order], examples)]

        return _FoldProblem(
            clone_with(arguments, **changes),
            solver,
            table.take(rows),
            table.take(fold.test),
            own,
            learner.class_weight,
            len(fold.train),
            replace(fold, inner=tuple((places(a), places(b)) for a, b in fold.inner or ())),
            graded,
            None if features is None else replace(features, values=features.values[rows]),
            None if features is None else features.values[fold.test],
        )

    @quiet()
    def solve(self) -> tuple[CountsModel, Floats, Floats]:
        """The model, and outputs for the test examples and for the held-out ones."""
        train, self.y = np.arange(self.n_train), self.solver.shaped(self.problem.values)
        self.uses = np.bincount(self.table.top[train], minlength=self.table.n_rows)
        self.encoder = self.arguments._encoder(self.table, self.uses)  # noqa: SLF001
        encoded = self.encoder.encode(self.table)
        self.parts = feature_rows(encoded, self.table, self.encoder.n_columns)
        if self.solver.costs:  # linear
            self.encoder = self.encoder.joined(self.parts)
            encoded = self.encoder.in_columns(encoded)
            self.parts = feature_rows(encoded, self.table, self.encoder.n_columns)
        del encoded  # as large as the features
        self.reader, self.read = None, None
        if self.features is not None:
            known = replace(self.features, values=self.features.values[train])
            self.reader = FeatureReader.fit(known)
            self.read = sparse.csr_array(self.reader.read(self.features.values))
        depths, given = self._depths(), self.arguments.C
        C, depth, best, held_out = USUAL_C, depths[-1], None, None
        if not isinstance(given, str):
            C = float(given)
        if self.fold.inner:
            trials = {each: self._try(each, C) for each in depths}
            depth = max(depths, key=lambda each: trials[each].score)
            by_cost = {C: trials[depth]}
            if isinstance(given, str) and self.solver.costs:
                C = self._climb(depth, by_cost)
            best = by_cost[C]
            held_out = self._cross_fitted([*trials.values(), *by_cost.values()])
        encoder, X, scale = self._at(depth)
        X, y, weights = X[train], self.y[train], self._weights(train, train)
        function = self.solver.fit(X, y, weights, C).scaled(1.0 if best is None else best.factor)
        typical = _mean_output(function.outputs(X), weights)
        function = function.with_columns_scaled(scale)
        model = CountsModel(
            encoder,
            self.arguments.norm,
            function,
            depth,
            C if self.solver.costs else None,
            None if best is None else best.score,
            typical,
            self.reader,
        )
        tested = model.outputs(self.tests, self.test_features)
        return model, tested, tested[:0] if held_out is None else held_out

    def _weights(self, train: Ints, rows: Ints) -> Floats:
        """The weights of rows, with those of their classes among training examples."""
        return self.problem.targets.weighted(self.problem, train, rows, self.class_weight)

    def _cross_fitted(self, trials: Sequence[_Trial]) -> Floats:
        """Outputs for what each inner fold holds out, with settings that the others decide."""
        held_out = np.empty_like(trials[0].outputs)
        for part in self.fold.parts:
            rest = self.fold.others(part)
            judged = [self._judge(trial.outputs, rest) for trial in trials]
            best = max(range(len(trials)), key=lambda k: judged[k][0])
            held_out[part] = trials[best].outputs[part] * judged[best][1]
        return held_out

    def _judge(self, outputs: Floats, among: Any = slice(None)) -> tuple[float, float]:
        """The score of some held-out outputs, and the factor that calibrates them."""
        rows, inner = self.fold.held_out, self.fold.inner or ()
        weights = np.concatenate([self._weights(fit, check) for fit, check in inner])
        return self.solver.judge(outputs[among], self.y[rows][among], weights[among])

    def _climb(self, depth: int | None, by_cost: dict[float, _Trial]) -> float:
        """The best C, from the usual one in both directions as long as the score improves."""
        costs = self.solver.costs
        start = costs.index(USUAL_C)
        for way in (costs[start + 1 :], costs[:start][::-1]):
            score = by_cost[USUAL_C].score
            for cost in way:
                by_cost[cost] = self._try(depth, cost)
                if by_cost[cost].score <= score:
                    break
                score = by_cost[cost].score
        return max(by_cost, key=lambda cost: by_cost[cost].score)

    def _try(self, depth: int | None, C: float) -> _Trial:
        """Inner folds with some settings."""
        X, rows = self._at(depth)[1], []
        for fit, held_out in self.fold.inner or ():
            function = self.solver.fit(X[fit], self.y[fit], self._weights(fit, fit), C)
            rows.append(function.outputs(X[held_out]))
        raw = np.concatenate(rows)
        return _Trial(*self._judge(raw), raw)

    def _depths(self) -> list[int | None]:
        """The depths to choose from; None stands for all parts."""
        wanted = self.arguments.depth
        if wanted is None or not self.graded:
            return [None]
        n_roles = int(self.encoder.ids[:, 0].max(initial=0)) + 1
        if isinstance(wanted, str):
            return list(range(n_roles))
        return [min(wanted, n_roles - 1)]

    def _at(self, depth: int | None) -> tuple[Encoder, Any, Floats]:
        """The columns up to a depth, their values (n, columns), and the scale of each column."""
        encoder, parts = self.encoder, self.parts
        if depth is not None:
            # Sorted by role, so that smaller depths are the first parts and columns.
            encoder = encoder.first_parts(int((encoder.ids[:, 0] <= depth).sum()))
            parts = parts[:, : encoder.n_columns]
        norm = self.arguments.norm
        X = scaled_rows(parts, encoder, self.table, norm, depth)[self.table.top]
        if norm is not None or not self.solver.costs:  # trees compare counts as they are
            return encoder, self._beside(X), np.ones(1)
        # Without a norm of their own, rows have length 1 on average: C means the same.
        squares = encoder.squared_lengths(self.table, depth)[self.uses > 0]
        scale = 1 / float(np.sqrt(squares.mean() if squares.any() else 1.0))
        factors = np.full(X.shape[1], scale)
        X = self._beside(X * scale)
        return encoder, X, np.r_[factors, np.ones(X.shape[1] - len(factors))]

    def _beside(self, X: Any) -> Any:
        """The columns of parts, then those of features, if there are any."""
        if self.read is None:
            return X
        return narrow(sparse.hstack([X, self.read], format="csr"))


def _mean_output(outputs: Floats, weights: Floats) -> Floats:
    """The mean output, by weight; of several targets, over all examples, known or not."""
    mean: Floats = np.average(
        outputs, axis=0, weights=weights.reshape(len(outputs), -1) + np.zeros(outputs.shape[1])
    )
    return mean


def _sums(relation: Relation, values: Floats) -> Floats:
    """The sum over the entries of every part."""
    return np.bincount(relation.parts, values, minlength=relation.n_parts).astype(np.float64)
