"""`saen decompositions`: ways to decompose data, and their parameters."""

from __future__ import annotations

from typing import Any

from saen.cli import options
from saen.cli.output import console, heading, print_json, table


def command(json: options.AsJson = False) -> None:
    """List the decompositions, installed ones included, and their parameters.

    Give one to --decomposition by name, or with parameters, quoted for the shell. A class of your
    own is named as package.module:Class.

    Example: saen compress MUTAG --decomposition "neighbourhoods(depth=4, node_labels=degree)"
    """
    from saen.decompositions.registry import installed_decompositions, parameters

    listed: list[dict[str, Any]] = [
        {
            "name": name,
            "takes": cls.takes,
            "what": (cls.__doc__ or "").partition("\n")[0],
            "parameters": [
                {
                    "name": field.name,
                    "default": list(field.default)
                    if isinstance(field.default, tuple)
                    else field.default,
                    "help": field.metadata.get("help", ""),
                }
                for field in parameters(cls)
            ],
        }
        for name, cls in installed_decompositions().items()
    ]
    if json:
        print_json({"decompositions": listed})
        return
    for entry in listed:
        heading(entry["name"])
        console().print(f"{entry['what']} Input: {entry['takes']}.", soft_wrap=True)
        out = table("  parameter")
        out.add_column("default", justify="left")
        out.add_column("meaning", justify="left")
        for parameter in entry["parameters"]:
            shown = parameter["default"]
            shown = tuple(shown) if isinstance(shown, list) else shown
            out.add_row(f"  {parameter['name']}", str(shown), parameter["help"])
        console().print(out)
        console().print()
