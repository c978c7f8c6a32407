"""`make lint`: are there known vulnerabilities in the installed packages? Fails if there are.

`pip-audit` has a line for every package that the index does not know; here they are one line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

COMMAND = ("-m", "pip_audit", "--skip-editable", "--progress-spinner", "off", "--format", "json")


def vulnerabilities(report: Mapping[str, Any]) -> list[str]:
    """One line for each that `pip-audit` found."""
    return [
        f"{package['name']} {package['version']}: {each['id']}, "
        f"fixed in {', '.join(each['fix_versions']) or 'no version yet'}"
        for package in report["dependencies"]
        for each in package.get("vulns", ())
    ]


def main() -> int:
    """Print what was found, or why nothing could be."""
    done = subprocess.run([sys.executable, *COMMAND], capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        reason = done.stderr.strip().rpartition("\n")[2]
        print(f"pip-audit: {reason}")
        offline = any(word in reason for word in ("Connection", "Proxy", "Timeout"))
        return 0 if offline else 1
    lines = vulnerabilities(report)
    total = len(report["dependencies"])
    unknown = sum("skip_reason" in package for package in report["dependencies"])
    print(*lines, sep="\n", end="\n" if lines else "")
    print(
        f"pip-audit: {total - unknown} packages audited, {len(lines)} known vulnerabilities"
        + (f"; {unknown} unknown to the index" if unknown else "")
    )
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
