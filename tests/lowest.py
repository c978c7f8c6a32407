"""The oldest versions that pyproject.toml allows, as constraints for pip; torch excepted.

`make test-lowest` installs them in an environment of its own and runs the tests there.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TOOLS = ("dev", "docs", "bench")
"""Extras that users do not install."""


def constraints(text: str) -> list[str]:
    """One line per dependency with a lower bound.

    >>> constraints('[project]\\ndependencies = ["numpy>=2.1", "rich[all]>=15.0", "torch>=2"]')
    ['numpy==2.1', 'rich==15.0']
    """
    project = tomllib.loads(text)["project"]
    extras = project.get("optional-dependencies", {})
    used = [each for name in extras if name not in TOOLS for each in extras[name]]
    listed = [*project["dependencies"], *used]
    bounds = (re.match(r"([\w-]+)(?:\[.*?\])?>=([\w.]+)", each) for each in listed)
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound and bound[1] != "torch"]


if __name__ == "__main__":
    print("\n".join(constraints(Path("pyproject.toml").read_text(encoding="utf-8"))))
