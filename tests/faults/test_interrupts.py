"""Ctrl-C at random moments: see `interrupts`."""

from __future__ import annotations

import os

import pytest

from tests.faults.interrupts import campaign


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="SIGINT cannot be sent to one process")
def test_ctrl_c_at_random_moments_ends_the_command_at_once() -> None:
    assert campaign(20, seed=1)[1] == []
