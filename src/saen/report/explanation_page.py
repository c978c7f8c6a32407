"""`write_explanation`: an explanation as a page, a picture or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from saen._util.atomic import atomic_write
from saen._util.json_files import write_json
from saen._util.strings import plural
from saen.explanations.collection import CollectionExplanation
from saen.explanations.describe import DecomposedExample, Part, singular
from saen.explanations.explanation import Explanation
from saen.io.result_tables import check_format
from saen.report.explanation_drawing import (
    can_draw,
    draw_as_molecule,
    draw_collection,
    draw_explanation,
    draw_part,
)
from saen.report.figures import FORMATS, save_figure
from saen.report.page import Picture, Table, in_words, write_page
from saen.report.palette import contribution_colours

SUFFIXES = (".html", ".json", *FORMATS)


def write_explanation(
    path: str | Path,
    explanation: Explanation | CollectionExplanation,
    *,
    name: str = "data",
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write an explanation atomically, in the format that the suffix of the file names.

    Parameters
    ----------
    path
        `.html` for a page, `.json` for all numbers, `.svg`, `.png` or `.pdf` for a picture.
    explanation
        What `explain` or `explain_collection` returned.
    name
        Of the data, for the title.
    about
        How the explanation was made, such as the model and versions, for pages and JSON.

    Raises `InputError` for another suffix, and for a picture of an example that is not a graph;
    `FileError` where the file cannot be written; `MissingExtraError` without matplotlib.

    >>> import saen
    >>> threads = saen.generate_threads(30, average_nodes=12, seed=1)
    >>> model = saen.SAENClassifier(epochs=1).fit(threads, threads.targets)
    >>> folder = getfixture("tmp_path")
    >>> write_explanation(folder / "one.html", saen.explain(model, threads, 3))
    >>> write_explanation(folder / "all.json", saen.explain_collection(model, threads))
    """
    suffix, title = check_format(Path(path), SUFFIXES), explanation_title(explanation, name)
    if suffix == ".json":
        document = {"about": dict(about or {}), **explanation.to_json()}
        write_json(Path(path), document)
    elif isinstance(explanation, Explanation):
        if suffix == ".html":
            _write_explanation_page(path, explanation, title, about or {})
        elif suffix != ".pdf" and (drawn := draw_as_molecule(explanation, png=suffix == ".png")):
            with atomic_write(path) as temporary:
                temporary.write_bytes(drawn)
        else:
            figure = draw_explanation(explanation, f"{title}: {explanation.predicted}")
            save_figure(figure, path)
    elif suffix == ".html":
        _write_collection_page(path, explanation, title, about or {})
    else:
        save_figure(draw_collection(explanation, title), path)


def explanation_title(explanation: Explanation | CollectionExplanation, name: str) -> str:
    """What an explanation is about: `MUTAG, graph 17`."""
    if isinstance(explanation, CollectionExplanation):
        of = f" for the {explanation.quantity}" if explanation.quantity else ""
        return f"{name}: most influential {explanation.name}{of}"
    return f"{name}, {singular(explanation.decomposed.hierarchy.names[-1])} {explanation.id}"


# -- pages -------------------------------------------------------------------------------------


def _write_explanation_page(
    path: str | Path, explanation: Explanation, title: str, about: Mapping[str, Any]
) -> None:
    names = explanation.decomposed.hierarchy.names
    graph = None
    if can_draw(explanation.decomposed):
        caption = (
            f"Contributions of the {names[0]}, over all parts that contain them. The small figures "
            "are node numbers."
        )
        molecule = draw_as_molecule(explanation)
        if len(explanation.members) > 1:
            caption += " Of a blend, they are summed over its members by weight."
        graph = Picture(molecule or draw_explanation(explanation), caption)
    explained = abs(explanation.output - explanation.baseline)
    share = f" ({explanation.gap / explained:.1e} of what is explained)" if explained else ""
    rows = [
        (*level, level.attributed + level.not_attributed, explanation.output)
        for level in explanation.balance()
    ]
    write_page(
        path,
        "explanation.html",
        title,
        explanation=explanation,
        output=f"{explanation.output:.4g}",
        baseline=f"{explanation.baseline:.4g}",
        positive=f"are evidence {explanation.evidence(1.0)}" if explanation.classes else "raise it",
        graph=graph,
        text=_coloured_words(explanation),
        probability=""
        if explanation.probability is None
        else f" with probability {explanation.probability:.3f}",
        tables=_part_tables(explanation, pictures=graph is not None),
        members=_members(explanation),
        balance=Table(["level", "attributed", "not attributed", "sum", "output"], rows),
        gap=f"{explanation.gap:.1e}{share}",
        steps=plural(explanation.steps, "step"),
        settings=_settings(explanation.settings, about),
    )


def _members(explanation: Explanation) -> Table | None:
    """What every model of a blend says by itself."""
    if not explanation.members:
        return None
    rows: list[tuple[Any, ...]] = [
        (
            each.name,
            f"{100 * each.weight:.0f} %",
            each.explanation.predicted if explanation.target_names else each.explanation.prediction,
            each.explanation.output,
            each.explanation.probability,
        )
        for each in explanation.members
    ]
    columns = ["member", "weight", "prediction", explanation.quantity, "probability"]
    if not explanation.classes:
        columns, rows = columns[:3], [row[:3] for row in rows]
    return Table(columns, rows)


def _coloured_words(explanation: Explanation) -> list[list[tuple[str, float, str]]]:
    """Per sentence of a document its words, with their contributions and colours."""
    example = explanation.decomposed
    if example.document is None:
        return []
    sentences = example.document.sentences
    values, _ = explanation.on_graph()
    shares = contribution_colours(values / (np.abs(values).max(initial=0.0) or 1.0))
    colours = [f"rgb({', '.join(f'{255 * c:.0f}' for c in row[:3])})" for row in shares.tolist()]
    words = [*zip(example.document.words.tolist(), values.tolist(), colours, strict=True)]
    starts = sentences.node_offsets.tolist()
    return [words[start:stop] for start, stop in pairwise(starts)]


def _part_tables(explanation: Explanation, pictures: bool) -> list[tuple[str, Table]]:
    """The strongest objects of every level below the top, from the top down."""
    names = explanation.decomposed.hierarchy.names
    # The contribution comes first: on a phone, the columns to the right have to be scrolled to.
    columns = ["contribution", "part", "times", "role", "evidence", "made of"]
    first = Table(columns, [_part_row(explanation, part) for part in explanation.parts])
    if pictures:
        rows = zip(_part_pictures(explanation), first.rows, strict=True)
        shown = [(row[0], picture, *row[1:]) for picture, row in rows]
        first = Table([columns[0], "picture", *columns[1:]], shown)
    tables = [(names[-2], first)]
    for level in range(len(names) - 3, -1, -1):
        parts = explanation.top_parts(level, explanation.k)
        tables.append((names[level], Table(columns, [_part_row(explanation, p) for p in parts])))
    return tables


def _part_pictures(explanation: Explanation) -> list[Picture]:
    """Pictures of the strongest parts, all on one scale of colours."""
    parts = explanation.parts
    strengths = [np.abs(part.inside).max() for part in parts if part.inside is not None]
    scale = float(max(strengths, default=0.0))
    return [_part_picture(explanation.decomposed, part, scale) for part in parts]


def _part_row(explanation: Explanation, part: Part) -> tuple[Any, ...]:
    return (
        part.contribution,
        _part_name(explanation.decomposed, part),
        part.count,
        _unbroken(", ".join(part.roles)),
        explanation.evidence(part.contribution),
        part.what,
    )


def _write_collection_page(
    path: str | Path, explanation: CollectionExplanation, title: str, about: Mapping[str, Any]
) -> None:
    columns = ["mean", "evidence for", "picture", "contrast", "total", "occurrences", "examples"]
    rows = [
        (
            each.mean,
            each.towards,
            _part_picture(each.decomposed, each.part) if can_draw(each.decomposed) else None,
            each.contrast,
            each.total,
            each.occurrences,
            each.examples,
            _unbroken(", ".join(each.part.roles)),
            each.part.what,
            f"{each.id}, {_part_name(each.decomposed, each.part)}",
        )
        for each in explanation.parts
    ]
    table = Table([*columns, "role", "made of", "for instance"], rows)
    if not any(row[2] for row in rows):
        without = [(*row[:2], *row[3:]) for row in rows]
        table = Table([*table.columns[:2], *table.columns[3:]], without)
    write_page(
        path,
        "collection.html",
        title,
        explanation=explanation,
        examples=plural(explanation.n_examples, "example"),
        parts=plural(int(explanation.occurrences.sum()), "part"),
        unique=f"{len(explanation.means):,}",
        table=table,
        gap=f"{explanation.gap:.1e}",
        settings=_settings(explanation.settings, about),
    )


def _part_name(example: DecomposedExample, part: Part) -> str:
    name = singular(example.hierarchy.names[part.level])
    if part.edge is not None:
        return _unbroken(f"{name} {example.place(part)}")
    centred = part.level and part.node is not None
    return _unbroken(f"{name} of node {part.node}" if centred else f"{name} {part.number}")


def _part_picture(example: DecomposedExample, part: Part, scale: float = 0.0) -> Picture:
    return Picture(draw_part(example, part, scale), f"{_part_name(example, part)}: {part.what}")


def _unbroken(words: str) -> str:
    """Words that stay on one line."""
    return words.replace(" ", "\N{NO-BREAK SPACE}")


def _settings(decomposition: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, str]:
    settings = {f"decomposition: {key}": value for key, value in decomposition.items()}
    return {key: in_words(value) for key, value in {**about, **settings}.items()}
