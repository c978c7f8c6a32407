"""Seeds that are independent of each other, derived from one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def derive_seed(seed: int | Sequence[int], purpose: str) -> int:
    """A 63-bit seed for one purpose, from a seed or a tuple of them, independent of all others.

    >>> derive_seed(0, "weights") != derive_seed(0, "batches")
    True
    """
    parts = [seed] if isinstance(seed, int | np.integer) else list(seed)
    # The whole name counts: truncated, "epoch 100" and "epoch 101" would give the same seed.
    words = [*(int(part) % 2**32 for part in parts), int.from_bytes(purpose.encode(), "little")]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))


def integer_seed(random_state: int | np.random.RandomState | None) -> int:
    """A seed from scikit-learn's kinds of random state; the global state is left alone."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(random_state)
