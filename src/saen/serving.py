"""A saved model behind HTTP: the application that `saen serve` runs.

A request holds what a line of an input file holds, and is read by the readers of files; rows of the
answer have the columns that `saen predict` writes.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any, TypeVar

from saen._util.json_files import finite
from saen._util.memory import resident_memory
from saen._util.strings import plural
from saen._version import __version__
from saen.errors import FileError, InputError, MissingExtraError, SaenError
from saen.explanations.explanation import explain
from saen.io.formats.molecules import SMILES
from saen.io.libraries.rdkit import from_smiles
from saen.io.loading import load_data
from saen.io.options import ReadOptions
from saen.jobs.predict import load_model, nearest_columns
from saen.learning.estimators import Estimator
from saen.learning.prediction import predict_chunks

try:
    import anyio
    from fastapi import FastAPI, HTTPException, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse, PlainTextResponse
    from pydantic import BaseModel, ConfigDict, Field
except ImportError:
    raise MissingExtraError("FastAPI and uvicorn", extra="serve") from None

Answer = TypeVar("Answer")

MAX_EXAMPLES = 10_000
"""Of one request."""
MAX_ENTRIES = 20_000_000
"""Of the hierarchy of one example: about two seconds, and a gigabyte."""
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Upper ends of the histogram of seconds in `/metrics`."""

Example = dict[str, Any] | str


class Examples(BaseModel):
    """What to predict: objects as in a line of JSON lines, or texts.

    A text is the SMILES of a molecule, or a document in CoNLL-U. `{"smiles": …, "id": …}` is a
    molecule with an id.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"examples": [{"id": "a", "nodes": 3, "edges": [[0, 1], [1, 2]]}]}]
        }
    )
    examples: Annotated[list[Example], Field(min_length=1, max_length=MAX_EXAMPLES)]


class Question(BaseModel):
    """Whose prediction to explain, for which class (of several targets: which), by how many parts.

    By default the predicted class, or the first target.
    """

    example: Example
    target: str | None = None
    parts: Annotated[int, Field(ge=1, le=1000)] = 10


class Predictions(BaseModel):
    """One row per example, and the share of nodes (or other objects) with labels new to the model.

    A row has the columns of `saen predict`: `id`, `prediction`, probabilities `p_CLASS` or the
    interval from `lower` to `upper`, the nearest training graph if the model knows these, …
    """

    predictions: list[dict[str, Any]]
    unseen: float


class Problem(BaseModel):
    """Why there is no answer."""

    detail: str


@dataclass(frozen=True)
class Limits:
    """What a request may cost.

    - `n_bytes`: of its body;
    - `seconds`: from its first byte to the answer, waiting included. A prediction that is being
      computed stops between two chunks of a million entries;
    - `threads`: how many requests are computed at a time; others wait.
    """

    n_bytes: int = 16_000_000
    seconds: float = 30.0
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)


def make_app(
    model_file: str | Path,
    limits: Limits | None = None,
    *,
    device: str = "auto",
    vectors: str | Path | None = None,
) -> FastAPI:
    """The application that serves a saved model.

    Parameters
    ----------
    model_file : str | Path
        The file of the model.
    limits : Limits | None, default=None
        Limits of requests. None: those of `saen serve`.
    device : str, default='auto'
        Where to compute: `auto`, `cpu` or `cuda`.
    vectors : str | Path | None, default=None
        The file of word vectors that the model was trained with, if any.

    Raises
    ------
    SaenError
        If the file is not a model, or needs an extra that is not installed.
    """
    limits = limits or Limits()
    model = load_model(model_file, device, vectors=vectors)
    takes, name = model.fitted_.takes, Path(model_file).name
    if "atom_labels" in model.origin_.reading:
        from_smiles(["C"])  # or else every request would say that RDKit is missing
    problems: dict[int | str, dict[str, Any]] = {
        code: {"model": Problem, "description": what}
        for code, what in (
            (400, "The body is not JSON"),
            (413, f"More than {limits.n_bytes:,} bytes"),
            (503, f"No answer within {limits.seconds:g} seconds"),
        )
    }
    app = FastAPI(
        title="saen",
        version=__version__,
        description=f"Predictions of {name}, a model of {takes}.",
        docs_url=None,  # these pages would load scripts from elsewhere
        redoc_url=None,
        default_response_class=_Json,
    )
    metrics = _Metrics()
    app.add_middleware(_Guard, limits=limits, metrics=metrics)
    slots = anyio.CapacityLimiter(limits.threads)

    async def computed(work: Callable[[float], Answer]) -> Answer:
        deadline = perf_counter() + limits.seconds
        return await anyio.to_thread.run_sync(work, deadline, limiter=slots)

    @app.post("/predict", responses=problems, response_model=Predictions)
    async def predict(body: Examples) -> Any:
        """Predict a batch."""
        answer = await computed(lambda until: _predict(model, body.examples, until))
        metrics.examples += len(body.examples)
        return _Json(answer)

    @app.post("/explain", responses=problems, response_model=dict[str, Any])
    async def explain_one(body: Question) -> Any:
        """Explain one prediction: what `saen explain --json` prints."""

        def work(_: float) -> dict[str, Any]:
            data = _read(model, [body.example])
            return explain(model, data, target=body.target, n_parts=body.parts).to_json()

        return _Json(await computed(work))

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Whether the server answers, and with which model."""
        about = {"estimator": type(model).__name__, "takes": takes, "version": __version__}
        return {"status": "ok", "model": name, **about}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def show_metrics() -> str:
        """Counters for Prometheus."""
        return metrics.text()

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> _Json:
        # Without what was sent: that may be long, or text that cannot be written.
        keys = ("type", "loc", "msg")
        detail = [{key: each[key] for key in keys} for each in error.errors()[:10]]
        return _Json({"detail": detail}, status_code=422)

    @app.exception_handler(SaenError)
    async def refused(_: Request, error: SaenError) -> _Json:
        loc: list[str | int] = ["body"]
        message = str(error)
        if isinstance(error, FileError):  # about the file that the request became
            message = error.reason
            line = None if error.line is None or takes == "documents" else error.line - 1
            number = line if error.record is None else error.record
            loc += [] if number is None else ["examples", number]
        return _Json(
            {"detail": [{"type": "invalid_data", "loc": loc, "msg": message}]}, status_code=422
        )

    return app


# -- examples and predictions --------------------------------------------------------------------


def _predict(model: Estimator, examples: Sequence[Example], until: float) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []
    unseen = objects = 0
    data = _read(model, examples)
    for chunk in predict_chunks(model.fitted_, data):
        rows = data[chunk.start : chunk.start + len(next(iter(chunk.columns.values())))]
        columns = {"id": rows.ids, **chunk.columns, **nearest_columns(model, rows)}
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        answers += (dict(zip(columns, row, strict=True)) for row in values)
        unseen, objects = unseen + chunk.unseen, objects + chunk.objects
        if perf_counter() > until:
            raise TimeoutError
    return {"predictions": answers, "unseen": unseen / objects if objects else 0.0}


def _read(model: Estimator, examples: Sequence[Example]) -> Any:
    """The examples of a request as data for a model, read as those that it was trained on."""
    takes = model.fitted_.takes
    text, suffix = _file(takes, examples)
    options = ReadOptions(like=model.origin_.reading, partial_targets=True, progress=False)
    with TemporaryDirectory(prefix="saen-") as folder:
        file = Path(folder) / f"request{suffix}"
        file.write_bytes(text.encode("utf-8", "surrogatepass"))  # the reader says what is wrong
        data: Any = load_data(str(file), takes, options)
    if len(data) != len(examples):
        raise InputError(f"{plural(len(data), 'example')} in a list of {len(examples):,}")
    assert model.decomposition_ is not None
    costs = model.decomposition_.costs(data)
    if int(costs.max()) > MAX_ENTRIES:
        worst = int(costs.argmax())
        raise InputError(
            f"example {worst} is too large: about {costs[worst]:,} entries, at most {MAX_ENTRIES:,}"
        )
    return data


def _file(takes: str, examples: Sequence[Example]) -> tuple[str, str]:
    """The content of a file with these examples, and its suffix."""
    texts = [each if isinstance(each, str) else each.get(SMILES) for each in examples]
    if takes == "documents":
        if not all(isinstance(each, str) for each in examples):
            raise InputError("this model reads documents: each example is a text in CoNLL-U")
        return "".join(f"# newdoc\n{str(each).strip()}\n\n" for each in examples), ".conllu"
    if takes == "graphs" and any(isinstance(text, str) for text in texts):
        if not all(isinstance(text, str) for text in texts):
            raise InputError("either all examples are SMILES, or none")
        ids = [None if isinstance(each, str) else each.get("id") for each in examples]
        rows = [(text, text if own is None else own) for own, text in zip(ids, texts, strict=True)]
        table = io.StringIO()
        csv.writer(table).writerows([(SMILES, "id"), *rows])
        return table.getvalue(), ".csv"
    if any(isinstance(each, str) for each in examples):
        raise InputError(f"this model reads {takes}: each example is an object")
    return "".join(json.dumps(each) + "\n" for each in examples), ".jsonl"


class _Json(JSONResponse):
    """JSON in ASCII, whatever the text is; what is not finite is null."""

    def render(self, content: Any) -> bytes:
        try:
            return json.dumps(content, allow_nan=False).encode()
        except ValueError:
            return json.dumps(finite(content)).encode()


# -- limits and counters -------------------------------------------------------------------------


class _Guard:
    """ASGI middleware: bounds the bytes and the seconds of every request, and counts it."""

    def __init__(self, app: Any, limits: Limits, metrics: _Metrics) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, received, status = perf_counter(), 0, 0

        async def bounded() -> Any:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limits.n_bytes:
                raise HTTPException(413, f"at most {self.limits.n_bytes:,} bytes")
            return message

        async def noted(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        self.metrics.active += 1
        try:
            with anyio.fail_after(self.limits.seconds):
                await self.app(scope, bounded, noted)
        except TimeoutError:
            if not status:
                text = f"no answer within {self.limits.seconds:g} seconds"
                await _Json({"detail": text}, status_code=503)(scope, receive, noted)
        finally:
            self.metrics.active -= 1
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.count(path, status or 500, perf_counter() - start)


class _Metrics:
    """What happened since the start."""

    def __init__(self) -> None:
        self.active = self.examples = 0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        self._requests[path, status] += 1
        self._buckets[path, next((end for end in BUCKETS if seconds <= end), math.inf)] += 1
        self._seconds[path] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        lines = ["# TYPE saen_requests_total counter"]
        for (path, status), count in sorted(self._requests.items()):
            lines.append(f'saen_requests_total{{path="{path}",status="{status}"}} {count}')
        lines.append("# TYPE saen_request_seconds histogram")
        for path, seconds in sorted(self._seconds.items()):
            total = 0
            for end in (*BUCKETS, math.inf):
                total += self._buckets[path, end]
                shown = "+Inf" if end == math.inf else f"{end:g}"
                lines.append(f'saen_request_seconds_bucket{{path="{path}",le="{shown}"}} {total}')
            lines.append(f'saen_request_seconds_sum{{path="{path}"}} {seconds:.6f}')
            lines.append(f'saen_request_seconds_count{{path="{path}"}} {total}')
        for name, kind, value in (
            ("saen_examples_total", "counter", self.examples),
            ("saen_requests_active", "gauge", self.active),
            ("process_resident_memory_bytes", "gauge", resident_memory() or 0),
        ):
            lines += [f"# TYPE {name} {kind}", f"{name} {value}"]
        return "\n".join(lines) + "\n"
