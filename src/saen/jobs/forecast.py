"""What a training will take, told before it begins if that is long."""

from __future__ import annotations

import numpy as np
from joblib import cpu_count

from saen._util.memory import peak_memory, resident_memory
from saen.learning.models.base import Learner, Study
from saen.learning.splits import Fold

LONG = 10.0
"""Seconds from which on a training is announced."""
GAIN_PER_CORE = 0.6
"""Of twice as many cores, as a power: steps of networks and fits of counts do not all share."""


def forecast(learner: Learner, study: Study, times: int = 1) -> tuple[float, int | None]:
    """Seconds, for so many folds, and peak memory in bytes, None if the system does not say.

    Of training on all examples, which this decomposes.
    """
    cost = learner.cost(study, [Fold(np.arange(len(study.data)), np.arange(0))])
    seconds = times * cost.seconds / cpu_count() ** GAIN_PER_CORE
    now, peak = resident_memory(), peak_memory()
    if now is None or peak is None:
        return seconds, None
    return seconds, max(peak, int(now + cost.kept + cost.working))


def forecast_line(learner: Learner, study: Study, times: int = 1) -> str | None:
    """The same in words, None for a short training."""
    seconds, memory = forecast(learner, study, times)
    if seconds < LONG:
        return None
    time = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
    space = "" if memory is None else f" and {max(memory / 1e9, 0.1):.1f} GB of memory"
    return f"training will take about {time}{space}"
