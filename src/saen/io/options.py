"""`ReadOptions`: what a user says about data beside their name or path."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from saen.errors import InputError

if TYPE_CHECKING:
    from saen.io.parsing.records import Report

TaskName = Literal["classification", "regression"]
AtomLabels = Literal["smiles", "element"]
WordColumn = Literal["form", "lemma", "upos"]

REMEMBERED = {"atom_labels": ("smiles", "element"), "word": ("form", "lemma", "upos")}
"""Options that decide what labels mean, the usual choice first: models remember them."""
REMEMBERED_NAMES = ("features", "node_label", "node_attribute", "edge_label", "edge_weight")
"""Options that name columns, which models remember, too."""
USUAL_NAMES = ("smiles", "id", "target")
"""Of these, other data may have other names: those of a model's data are looked for first."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read data: which columns hold what, and what to do with bad graphs.

    Parameters
    ----------
    target : str | None, default=None
        Columns of a table (keys of a JSON line) with the targets, separated by commas. None:
        `target`. For TUDataset files the graph `"labels"` or the graph `"attributes"`; None: the
        labels, or else the attributes.
    id : str | None, default=None
        The column or key with the ids. None: `id` or `name`.
    smiles : str | None, default=None
        The column of a table with molecules. None: `smiles`.
    features : str | None, default=None
        Numeric columns or keys, separated by commas, that models read in addition to the parts;
        `rdkit` stands for descriptors of molecules.
    task : TaskName | None, default=None
        Classification or regression. None: integers and text are classes.
    directed : bool, default=False
        Whether edges of TUDataset files, edge lists and edge tables are directed. Other formats
        state it themselves.
    atom_labels : AtomLabels | None, default=None
        The node labels of molecules: atoms in `"smiles"`, with charge, aromaticity and
        stereochemistry (the default; see `from_rdkit`), or the `"element"` alone.
    largest_fragment : bool, default=False
        Whether to read only the fragment with most heavy atoms of salts and mixtures.
    word : WordColumn | None, default=None
        What the words of CoNLL-U are: the `"form"` (the default), the `"lemma"` or the part of
        speech (`"upos"`).
    node_label : str | None, default=None
        Columns of nodes (attributes of GraphML, GML) with labels, separated by commas; each is a
        label of its own. None: `label` and all others of text.
    node_attribute : str | None, default=None
        Columns of nodes with real attributes. None: all other numeric columns.
    edge_label : str | None, default=None
        Columns of edges with labels. None: `label` and all others of text.
    edge_weight : str | None, default=None
        Columns of edges with weights. None: all other numeric columns.
    nodes_file : str | os.PathLike[str] | None, default=None
        The table of nodes of an edge table. None: the one next to it.
    targets_file : str | os.PathLike[str] | None, default=None
        The table of targets of an edge table or a folder. None: the one next to it.
    skip_bad : bool, default=False
        Whether to skip records that cannot be read.
    partial_targets : bool, default=False
        Whether examples may lack a target that others have, as when a model predicts them. Such a
        target is NaN or empty, and so is one that cannot be read.
    all_columns : bool, default=False
        Whether `extra` has all columns of tables (keys of JSON lines), including targets and ids.
    report : Report | None, default=None
        Called with the error of each record that is skipped.
    notify : Callable[[str], object] | None, default=None
        Called with one line for each column that was found by name.
    progress : bool | None, default=None
        Whether to show a progress bar. None: on a terminal.
    cache : bool, default=True
        Whether to keep parsed TUDataset files, keyed by content, under `$SAEN_CACHE` (by default
        the system's cache folder).
    like : Mapping[str, str], default={}
        How the data of a model were read (its `origin_.reading`): `atom_labels`,
        `largest_fragment`, `word` and the names of columns with features, labels and attributes are
        the same. Columns of tables with molecules, ids and targets may have other names.
    remember : Callable[[str, str], object] | None, default=None
        Called with the name and the choice of each of these, where there is one.
    """

    target: str | None = None
    id: str | None = None
    smiles: str | None = None
    features: str | None = None
    task: TaskName | None = None
    directed: bool = False
    atom_labels: AtomLabels | None = None
    largest_fragment: bool = False
    word: WordColumn | None = None
    node_label: str | None = None
    node_attribute: str | None = None
    edge_label: str | None = None
    edge_weight: str | None = None
    nodes_file: str | os.PathLike[str] | None = None
    targets_file: str | os.PathLike[str] | None = None
    skip_bad: bool = False
    partial_targets: bool = False
    all_columns: bool = False
    report: Report | None = None
    notify: Callable[[str], object] | None = None
    progress: bool | None = None
    cache: bool = True
    like: Mapping[str, str] = field(default_factory=dict, hash=False)
    remember: Callable[[str, str], object] | None = None

    def __post_init__(self) -> None:
        for key, choices in (
            ("task", ("classification", "regression")),
            *REMEMBERED.items(),
        ):
            if getattr(self, key) not in (None, *choices):
                listed = " or ".join(choices)
                raise InputError(f"{key} must be {listed}, not {getattr(self, key)!r}")

    def choice(self, option: Literal["atom_labels", "word"]) -> str:
        """How to read data that have this option: as given, as a model's were, or the usual way.

        Raises `InputError` if it is given otherwise than for the model.

        >>> ReadOptions().choice("atom_labels")
        'smiles'
        >>> ReadOptions(like={"atom_labels": "element"}).choice("atom_labels")
        'element'
        """
        given, before = getattr(self, option), self.like.get(option)
        if None not in (given, before) and given != before:
            raise InputError(
                f"option {option!r} is {given}, but the data of the model were read with {before}: "
                "omit it"
            )
        choice: str = given or before or REMEMBERED[option][0]
        if self.remember is not None:
            self.remember(option, choice)
        return choice

    def keeps_largest(self) -> bool:
        """Whether the largest fragment of a molecule is read: as given, or as a model's were."""
        largest = self.largest_fragment or self.like.get("largest_fragment") == "yes"
        if largest and self.remember is not None:
            self.remember("largest_fragment", "yes")
        return largest

    def names(self, option: str) -> list[str] | None:
        """The names of columns: as given, or as a model's were; None if they are not chosen.


        >>> ReadOptions(like={"features": "pH, rdkit"}).names("features")
        ['pH', 'rdkit']
        """
        given = getattr(self, option)
        names = self.like.get(option) if given is None else given
        if names is None:
            return None
        if self.remember is not None:
            self.remember(option, names)
        from saen.io.parsing.tables import split_names  # which needs these options

        return split_names(names)

    def usual(self, option: str, names: Sequence[str]) -> tuple[str, ...]:
        """The columns to look for where none is given: that of a model's data, then these.

        >>> ReadOptions(like={"smiles": "Structure"}).usual("smiles", ["smiles"])
        ('Structure', 'smiles')
        """
        given, before = getattr(self, option), self.like.get(option)
        if given is not None and self.remember is not None:
            self.remember(option, given)
        return (*names,) if before is None else (before, *names)

    def found(self, file: str, **columns: str | None) -> None:
        """Say which columns were found by name, where `notify` wants to know.

        Parameters
        ----------
        file : str
            The name of the file.
        **columns : str | None
            What each column holds, and its name, if it was found.

        Examples
        --------
        >>> ReadOptions(notify=print).found("acids.csv", molecules="smiles", ids=None)
        acids.csv: column 'smiles' read as molecules
        """
        lines = [f"{name!r} as {what}" for what, name in columns.items() if name is not None]
        if lines and self.notify is not None:
            lines[0] = lines[0].replace(" as ", " read as ", 1)
            self.notify(f"{file}: column {', '.join(lines)}")
