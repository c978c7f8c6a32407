"""Options in panels of `--help`, in the order of their use."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

PANELS = {
    "Data": "target id smiles features node_label node_attribute edge_label edge_weight task "
    "directed atom_labels largest_fragment word nodes_file targets_file skip_bad vectors",
    "Model": "preset budget decomposition node_labels radii epochs models n_models",
    "Training": "selection repeats folds test_size splits groups hold_out metric nearest",
    "Compute": "seed device parallel_models cluster cluster_timeout",
    "Output": "out page plot predictions keep force json help",
}
"""Names of parameters by panel; options that a single command has stand before them."""
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()}
_ORDER = [None, *PANELS]


class Command(TyperCommand):
    """A command whose options stand in panels; flags show no type, and paragraphs are filled."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.help = re.sub(r"(?<!\n)\n(?!\n)", " ", self.help or "")

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, those of a panel side by side."""
        parameters = without_types(super().get_params(ctx))
        for each in parameters:
            if each.param_type_name == "option":
                each.rich_help_panel = _PANEL_OF.get(each.name)
            else:
                each.metavar = each.metavar or each.name.upper()
        return sorted(parameters, key=_place)


def without_types(parameters: list[Any]) -> list[Any]:
    """The parameters; help shows no type after flags."""
    for each in parameters:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return parameters


def _place(parameter: Any) -> tuple[int, int]:
    """Arguments first, then options by panel and as the table above lists them."""
    if parameter.param_type_name != "option":
        return (-1, 0)
    panel = _PANEL_OF.get(parameter.name)
    names = PANELS[panel].split() if panel else []
    return (_ORDER.index(panel), names.index(parameter.name) if panel else 0)
