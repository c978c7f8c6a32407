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
from saen.explanations.dataset import DatasetExplanation
from saen.explanations.describe import DecomposedExample, Part, singular
from saen.explanations.explanation import Explanation
from saen.io.result_tables import check_format
from saen.report.explanation_drawing import (
    can_draw,
    draw_as_molecule,
    draw_dataset,
    draw_explanation,
    draw_part,
)
from saen.report.figures import FORMATS, save_figure
from saen.report.molecule_drawing import SMALL_SIZE
from saen.report.page import Picture, Table, format_number, in_words, write_page
from saen.report.palette import contribution_colours

SUFFIXES = (".html", ".json", *FORMATS)


def write_explanation(
    path: str | Path,
    explanation: Explanation | DatasetExplanation,
    *,
    name: str = "data",
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write an explanation atomically, in the format that the suffix of the file names.

    Parameters
    ----------
    path : str | Path
        `.html` for a page, `.json` for all numbers, `.svg`, `.png` or `.pdf` for a picture.
    explanation : Explanation | DatasetExplanation
        What `explain` or `explain_dataset` returned.
    name : str, default='data'
        Of the data, for the title.
    about : Mapping[str, Any] | None, default=None
        How the explanation was made, such as the model and versions, for pages and JSON.

    Raises
    ------
    InputError
        For another suffix, and for a picture of an example that is not a graph.
    FileError
        Where the file cannot be written.
    MissingExtraError
        Without matplotlib.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(30, average_nodes=12, seed=1)
    >>> model = saen.SAENClassifier(epochs=1).fit(threads, threads.targets)
    >>> folder = getfixture("tmp_path")
    >>> write_explanation(folder / "one.html", saen.explain(model, threads, 3))
    >>> write_explanation(folder / "all.json", saen.explain_dataset(model, threads))
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
        _write_dataset_page(path, explanation, title, about or {})
    else:
        save_figure(draw_dataset(explanation, title), path)


def explanation_title(explanation: Explanation | DatasetExplanation, name: str) -> str:
    """What an explanation is about: `MUTAG, graph 17`."""
    if isinstance(explanation, DatasetExplanation):
        return f"{name}: the parts that tell predictions apart"
    return f"{name}, {explanation.decomposed.noun} {explanation.id}"


# -- pages -------------------------------------------------------------------------------------


def _write_explanation_page(
    path: str | Path, explanation: Explanation, title: str, about: Mapping[str, Any]
) -> None:
    graph = None
    if can_draw(explanation.decomposed):
        molecule = draw_as_molecule(explanation)
        bottom, node = explanation.decomposed.hierarchy.names[0], "node"
        if molecule is not None:
            bottom, node = "atoms", "atom"
        caption = (
            f"Contributions of the {bottom}, over all parts that contain them. The small figures "
            f"are {node} numbers."
        )
        if len(explanation.members) > 1:
            caption += " For this blend: the sum over its members by weight."
        graph = Picture(molecule or draw_explanation(explanation), caption)
    explained = abs(explanation.output - explanation.baseline)
    share = f" ({explanation.gap / explained:.1e} of what is explained)" if explained else ""
    write_page(
        path,
        "explanation.html",
        title,
        explanation=explanation,
        output=format_number(explanation.output),
        baseline=format_number(explanation.baseline),
        positive=f"are evidence {explanation.evidence(1.0)}" if explanation.classes else "raise it",
        graph=graph,
        text=_coloured_words(explanation),
        probability=""
        if explanation.probability is None
        else f" with probability {explanation.probability:.3f}",
        table=_part_table(explanation, pictures=graph is not None),
        members=_members(explanation),
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


def _part_table(explanation: Explanation, pictures: bool) -> Table:
    """The strongest parts, each once however many depths it is found in."""
    example, parts = explanation.decomposed, explanation.parts
    # The contribution comes first: on a phone, the columns to the right have to be scrolled to.
    columns: dict[str, list[Any]] = {"contribution": [part.contribution for part in parts]}
    if pictures:
        columns["picture"] = _part_pictures(explanation)
    columns["part"] = [part.name for part in parts]
    columns["times"] = [part.count for part in parts]
    if example.graph is None:
        columns["role"] = [_unbroken(", ".join(part.roles)) for part in parts]
    else:
        places = [_unbroken(example.place(part)) for part in parts]
        columns[example.place_noun(parts)] = places
    columns["evidence"] = [explanation.evidence(part.contribution) for part in parts]
    rows = list(zip(*columns.values(), strict=True))
    blank: dict[str, Any] = dict.fromkeys(columns)
    for each in explanation.features[: explanation.n_parts]:
        own = {"contribution": each.contribution, "part": each.in_words}
        evidence = {"evidence": explanation.evidence(each.contribution)}
        rows.append(tuple((blank | own | evidence).values()))
    return Table(list(columns), rows)


def _part_pictures(explanation: Explanation) -> list[Picture]:
    """Pictures of the strongest parts, all on one scale of colours."""
    parts = explanation.parts
    strengths = [np.abs(part.inside).max() for part in parts if part.inside is not None]
    if explanation.decomposed.molecule is not None:
        strengths = [abs(part.contribution) for part in parts]
    scale = float(max(strengths, default=0.0))
    return [_part_picture(explanation.decomposed, part, scale) for part in parts]


def dataset_table(explanation: DatasetExplanation) -> Table:
    """The parts that tell predictions apart, with pictures where the examples are graphs."""
    parts = explanation.parts
    columns: dict[str, list[Any]] = {
        "contribution": [each.mean for each in parts],
        "evidence for": [each.towards for each in parts],
    }
    if any(can_draw(each.decomposed) for each in parts):
        scale = max(abs(each.mean) for each in parts)
        columns["picture"] = [_part_picture(e.decomposed, e.part, scale) for e in parts]
    columns |= {
        "part": [each.part.name for each in parts],
        "contrast": [each.contrast for each in parts],
        "times": [each.occurrences for each in parts],
        f"{explanation.noun}s": [each.examples for each in parts],
        "for instance": [str(each.id) for each in parts],
    }
    return Table(list(columns), list(zip(*columns.values(), strict=True)))


def _write_dataset_page(
    path: str | Path, explanation: DatasetExplanation, title: str, about: Mapping[str, Any]
) -> None:
    write_page(
        path,
        "dataset.html",
        title,
        explanation=explanation,
        examples=plural(explanation.n_examples, "example"),
        parts=plural(int(explanation.occurrences.sum()), "part"),
        unique=f"{len(explanation.means):,}",
        table=dataset_table(explanation),
        gap=f"{explanation.gap:.1e}",
        settings=_settings(explanation.settings, about),
    )


def _part_name(example: DecomposedExample, part: Part) -> str:
    name, atoms = singular(example.hierarchy.names[part.level]), example.molecule is not None
    if part.edge is not None:
        return _unbroken(f"{name} {example.place(part)}")
    if part.level and part.node is not None:
        return _unbroken(f"{name} of {'atom' if atoms else 'node'} {part.node}")
    return _unbroken(f"{'atom' if atoms and not part.level else name} {part.number}")


def _part_picture(example: DecomposedExample, part: Part, scale: float = 0.0) -> Picture:
    caption = f"{_part_name(example, part)}: {part.name}"
    return Picture(draw_part(example, part, scale), caption, SMALL_SIZE[0])


def _unbroken(words: str) -> str:
    """Words that stay on one line."""
    return words.replace(" ", "\N{NO-BREAK SPACE}")


def _settings(decomposition: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, str]:
    settings = {f"decomposition: {key}": value for key, value in decomposition.items()}
    return {key: in_words(value) for key, value in {**about, **settings}.items()}
