"""The values for KubeRay in docs/cluster.md, merged with the chart's defaults as Helm does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
DOCS = Path(__file__).parents[2] / "docs"
DEFAULTS = """
head:
  rayStartParams: {}
  resources: {limits: {cpu: "1", memory: 2G}, requests: {cpu: "1", memory: 2G}}
  volumes: [{name: log-volume, emptyDir: {}}]
  volumeMounts: [{name: log-volume, mountPath: /tmp/ray}]
worker:
  replicas: 1
  minReplicas: 1
  maxReplicas: 3
  resources: {limits: {cpu: "1", memory: 1G}, requests: {cpu: "1", memory: 1G}}
  volumes: [{name: log-volume, emptyDir: {}}]
  volumeMounts: [{name: log-volume, mountPath: /tmp/ray}]
"""
"""Of the chart `ray-cluster`, as far as our values touch them."""
UNITS = {"": 1, "G": 10**9, "Gi": 2**30}


def merged(defaults: Any, values: Any) -> Any:
    """Helm merges maps, and replaces lists and scalars."""
    if not (isinstance(defaults, dict) and isinstance(values, dict)):
        return values
    shared = {key: merged(defaults[key], values[key]) for key in values if key in defaults}
    return defaults | values | shared


def quantity(text: str) -> float:
    number, unit = re.fullmatch(r"([0-9]+)(G|Gi|)", str(text)).groups()  # type: ignore[union-attr]
    return int(number) * UNITS[unit]


@pytest.mark.parametrize("group", ["head", "worker"])
def test_kuberay_values_give_pods_that_kubernetes_admits(group: str) -> None:
    page = (DOCS / "cluster.md").read_text(encoding="utf-8")
    values = merged(
        yaml.safe_load(DEFAULTS), yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    )
    pod = values[group]
    limits, requests = pod["resources"]["limits"], pod["resources"]["requests"]
    for resource, requested in requests.items():
        assert quantity(requested) <= quantity(limits[resource])
    mounted = {mount["name"] for mount in pod["volumeMounts"]}
    assert mounted <= {volume["name"] for volume in pod["volumes"]}
    assert all(isinstance(value, str) for value in pod.get("rayStartParams", {}).values())
    if group == "worker":
        assert pod["minReplicas"] <= pod["replicas"] <= pod["maxReplicas"]
