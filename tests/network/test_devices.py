from __future__ import annotations

import pytest
import torch

from saen.network import devices
from saen.network.devices import _has_driver, choose_device, device_name
from tests.refusals import refuses


@pytest.mark.parametrize(
    ("driver", "available", "device"),
    [(False, True, "cpu"), (True, False, "cpu"), (True, True, "cuda")],
)
def test_device_auto_is_a_gpu_if_there_are_a_driver_and_a_device(
    driver: bool, available: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_has_driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert choose_device("auto") == device


def test_device_without_a_driver_is_one_that_torch_does_not_see_either() -> None:
    assert _has_driver() or not torch.cuda.is_available()
    assert device_name(choose_device("cpu")) == "cpu"


def test_device_of_an_unknown_name_is_refused() -> None:
    with refuses("unknown device 'gpu': use auto, cpu or cuda"):
        choose_device("gpu")
