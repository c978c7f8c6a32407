"""Tables of results that are written as they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from saen.io.result_tables import open_table


def test_csv_is_written_as_pandas_writes_it(tmp_path: Path) -> None:
    columns = {
        "id": np.array(["a", 'say "b"', "c,d", "", " e\nf"]),
        "count, n": np.array([0, -1, 2**62, 3, 4]),
        "probability": np.array([1 / 3, 1e-12, 1.0, 12345678.9, 100.0]),
        "gaps": np.array([np.nan, np.inf, -np.inf, -0.0, 2.5e30]),
        "single": np.array([0.1, 1 / 3, 1e-7, 3, 4], dtype=np.float32),
        "flag": np.array([True, False, True, True, False]),
        "mixed": np.array(["x", None, 3, float("nan"), True], dtype=object),
    }
    with open_table(tmp_path / "out.csv") as write:
        write({name: column[:2] for name, column in columns.items()})
        write({name: column[2:] for name, column in columns.items()})
    expected = pd.DataFrame(columns).to_csv(index=False, float_format="%.7g", lineterminator="\n")
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == expected
