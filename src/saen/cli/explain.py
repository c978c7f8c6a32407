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
    from saen.explanations.collection import CollectionExplanation
    from saen.explanations.explanation import Explanation


@options.reads_data
def command(
    model: options.ModelFile,
    data: options.Name,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph", "-g", help="Id of the example, or its index from 0. [default: all examples]"
        ),
    ] = None,
    explain_target: Annotated[
        str | None,
        typer.Option(
            help="The class to explain, or one of several targets. "
            "[default: the predicted class, the first target]"
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
    from saen.explanations.collection import explain_collection
    from saen.explanations.explanation import explain
    from saen.explanations.goal import explained_share
    from saen.io.result_tables import check_format
    from saen.jobs.predict import describe_use, load_examples, load_model
    from saen.report.explanation_page import SUFFIXES, write_explanation

    if out is not None:
        check_format(out, SUFFIXES)
        check_output(out, force=force, inputs=[model, data, vectors])
    loaded = load_model(model, "cpu", vectors=vectors)
    examples = load_examples(loaded, data, replace(reading, partial_targets=True), model)
    name = examples.name or data
    how: dict[str, Any] = {"target": explain_target, "k": parts}
    explanation: Explanation | CollectionExplanation
    if graph is None:
        with open_executor(cluster) if cluster else nullcontext() as executor:
            explanation = explain_collection(loaded, examples, executor=executor, **how)
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
        print_line(f"\nwritten    {out}")


def _print(explanation: Explanation | CollectionExplanation, name: str) -> None:
    from saen.explanations.explanation import Explanation
    from saen.report.explanation_page import explanation_title

    title = explanation_title(explanation, name)
    rows: list[tuple[Any, ...]] = []  # the part, then cells
    if isinstance(explanation, Explanation):
        probability = ""
        if explanation.probability is not None:
            other = explanation.target != explanation.prediction
            of = f" of {explanation.target}" if other else ""
            probability = f", probability{of} {explanation.probability:.3f}"
        # The probability of a blend is that of all members, the number below that of one.
        member = f" by {explanation.members[0].share}" if explanation.members else ""
        heading(f"{title}: predicted {explanation.predicted}{probability if member else ''}")
        line = f"{explanation.quantity}{member}: {explanation.output:.3f}"
        line += "" if member else probability
        print_line(f"{line} ({explanation.reference}: {explanation.baseline:.3f})")
        edges = any(one.edge is not None for one in explanation.parts)
        headers = ["contribution", "times", "edge" if edges else "node", "evidence"]
        for one in explanation.parts:
            place = explanation.decomposed.place(one)
            evidence = explanation.evidence(one.contribution)
            rows.append((one, f"{one.contribution:+.4f}", f"×{one.count}", place, evidence))
    else:
        heading(title)
        headers = ["contrast", "mean", "total", "occurrences", "examples", "evidence for"]
        for each in explanation.parts:
            numbers = f"{each.contrast:.4f}", f"{each.mean:+.4f}", f"{each.total:+.1f}"
            counts = f"{each.occurrences:,}", f"{each.examples:,}"
            rows.append((each.part, *numbers, *counts, each.towards))
    listed = table(*headers[:-1])
    for header in (headers[-1], "role", "made of"):
        listed.add_column(header, justify="left")
    for part, *cells in rows:
        listed.add_row(*cells, ", ".join(part.roles), part.what)
    if isinstance(explanation, Explanation):
        for feature in explanation.features[: explanation.k]:
            evidence = explanation.evidence(feature.contribution)
            made_of = f"{feature.name} = {feature.value:.4g}"
            listed.add_row(f"{feature.contribution:+.4f}", "", "", evidence, "feature", made_of)
    console().print(listed)
