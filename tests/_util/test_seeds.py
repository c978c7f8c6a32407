from __future__ import annotations

from saen._util.seeds import derive_seed


def test_derived_seeds_depend_on_the_whole_purpose() -> None:
    purposes = [
        *(f"epoch {epoch}" for epoch in range(1200)),
        *(f"dropout {level}" for level in range(12)),
        *("weights", "run", "partition", "held out"),
    ]
    assert len({derive_seed(0, purpose) for purpose in purposes}) == len(purposes)
    assert derive_seed((3, 4), "run") == derive_seed([3, 4], "run")
    assert derive_seed((3, 4), "run") != derive_seed((4, 3), "run")
    assert all(0 <= derive_seed(seed, "run") < 2**63 for seed in range(50))
