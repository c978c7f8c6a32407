"""`saen explain`: which parts drive one prediction, or all predictions."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saen._util.atomic import check_output
from saen.cli import options
from saen.cli.output import console, heading, print_json, print_line, say, table
from saen.io.options import ReadOptions

if TYPE_CHECKING:
    from saen.explanations.dataset import DatasetExplanation
    from saen.explanations.explanation import Explanation


@options.reads_data
def command(
    model: options.ModelFile,
    data: options.Name,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            "-g",
            help="Id of the example, or its index from 0.",
            show_default="all examples",
        ),
    ] = None,
    explain_target: Annotated[
        str | None,
        typer.Option(
            help="The class to explain, or one of several targets.",
            show_default="the predicted class, the first target",
        ),
    ] = None,
    parts: Annotated[int, typer.Option(min=1, help="How many of the strongest parts.")] = 10,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="An .html page, a .json file, or an .svg, .png or .pdf picture."
        ),
    ] = None,
    vectors: options.VectorsFile = None,
    force: options.Force = False,
    cluster: options.Cluster = None,
    cluster_timeout: options.ClusterTimeout = 300,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Explain a model's prediction for one example by the contributions of its parts.

    Without --graph: explain all predictions by the unique parts of the data.

    Example: saen explain model.saen MUTAG --graph 17 --out report.html
    """
    options.import_estimators()
    from saen.cluster.executors import open_executor
    from saen.explanations.dataset import explain_dataset
    from saen.explanations.explanation import explain
    from saen.explanations.goal import explained_share
    from saen.io.result_tables import check_format
    from saen.jobs.predict import describe_use, load_for_model, load_model
    from saen.report.explanation_page import SUFFIXES, write_explanation

    if out is not None:
        check_format(out, SUFFIXES)
        check_output(out, force=force, inputs=[model, data, vectors])
    loaded = load_model(model, "cpu", vectors=vectors)
    examples = load_for_model(loaded, data, replace(reading, partial_targets=True), model)
    name = examples.name or data
    how: dict[str, Any] = {"target": explain_target, "n_parts": parts}
    explanation: Explanation | DatasetExplanation
    if graph is None:
        with open_executor(cluster, cluster_timeout) if cluster else nullcontext() as executor:
            explanation = explain_dataset(loaded, examples, executor=executor, **how)
    else:
        explanation = explain(loaded, examples, graph, **how)
    if share := explained_share(loaded.fitted_):
        say(f"note: parts and their contributions are those of {share}")
    about = describe_use(loaded, model, name)
    if out is not None:
        write_explanation(out, explanation, name=name, about=about)
    if json:
        print_json({"about": about, **explanation.to_json()})
        return
    _print(explanation, name)
    if out is not None:
        print_line(f"saved      {out}")


def _print(explanation: Explanation | DatasetExplanation, name: str) -> None:
    from saen.explanations.explanation import Explanation
    from saen.report.explanation_page import explanation_title

    if isinstance(explanation, Explanation):
        _print_one(explanation, explanation_title(explanation, name))
    else:
        heading(explanation_title(explanation, name))
        print_line(explanation.sentence)
        print_line(f"contributions to the {explanation.quantity}, per occurrence")
    columns = explanation.table()
    listed = table(*list(columns)[:-2])
    for header in list(columns)[-2:]:
        listed.add_column(header, justify="left")
    for row in zip(*columns.values(), strict=True):
        listed.add_row(*row)
    console().print(listed)


def _print_one(explanation: Explanation, title: str) -> None:
    probability = ""
    if explanation.probability is not None:
        other = explanation.target != explanation.prediction
        of = f" of {explanation.target}" if other else ""
        probability = f", probability{of} {explanation.probability:.3f}"
    # The probability of a blend is that of all members, the number below that of one.
    member = f" by {explanation.members[0].share}" if explanation.members else ""
    heading(f"{title}: predicted {explanation.predicted}{probability if member else ''}")
    print_line(explanation.sentence)
    line = f"{explanation.quantity}{member}: {explanation.output:.3f}"
    line += "" if member else probability
    print_line(f"{line} ({explanation.reference}: {explanation.baseline:.3f})")
