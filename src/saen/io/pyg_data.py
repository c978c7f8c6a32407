"""`HierarchyData`: a PyG graph that carries its decomposition; needs PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data  # type: ignore[import-untyped]

PARTS, ROLES, COUNTS = "part_index_", "part_role_", "part_count_"
"""Attributes per level l ≥ 1, followed by its number."""
PREFIXES = (PARTS, ROLES, COUNTS, "bottom_", "level_sizes", "hierarchy_schema")
"""How the attributes start that `ToHierarchy` attaches."""


class HierarchyData(Data):  # type: ignore[misc]
    """A graph, and beside its own attributes those of its hierarchy.

    For n_l objects and E_l entries on level l = 1 … L:

    - `part_index_l`: (2, E_l), parents of level l over parts of level l - 1, `part_role_l`: (E_l,)
      numbers of roles, `part_count_l`: (E_l,) how often;
    - `bottom_codes`: (n_0,) and `bottom_vectors`: (n_0, p), where the bottom has them;
    - `level_sizes`: (1, L + 1), the objects of every level;
    - `hierarchy_schema`: names of levels and roles and the vocabulary as JSON.

    In a batch, numbers of objects go on from graph to graph, as those of nodes do.
    """

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if not key.startswith(PARTS):
            return super().__inc__(key, value, *args, **kwargs)
        level = int(key.removeprefix(PARTS))
        return self.level_sizes.sum(dim=0)[[level, level - 1]][:, None]


# Saved datasets name the class of their graphs; PyTorch reads only what it knows to be harmless.
torch.serialization.add_safe_globals([HierarchyData])
