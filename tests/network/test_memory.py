from __future__ import annotations

import pytest

from saen.network import memory


def test_reused_memory_restores_the_thresholds_also_after_an_error(monkeypatch):
    thresholds, trimmed = {}, []
    functions = {"mallopt": thresholds.__setitem__, "malloc_trim": trimmed.append}
    monkeypatch.setattr(memory, "_c_function", functions.get)
    monkeypatch.setattr(memory, "_ours", True)

    def fail() -> None:
        assert thresholds == {-3: memory.MAX_REUSED_BYTES, -1: -1}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), memory.reused_memory():
        fail()
    assert thresholds == {-3: 32 << 20, -1: 64 << 20}  # of glibc
    assert trimmed == [0]


def test_memory_is_reused_until_the_last_thread_leaves(monkeypatch):
    trimmed = []
    functions = {"mallopt": lambda *_: None, "malloc_trim": trimmed.append}
    monkeypatch.setattr(memory, "_c_function", functions.get)
    monkeypatch.setattr(memory, "_ours", True)
    first, second = memory.reused_memory(), memory.reused_memory()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert trimmed == []
    second.__exit__(None, None, None)
    assert trimmed == [0]


def test_reused_memory_leaves_the_process_of_another_program_alone(monkeypatch):
    monkeypatch.setattr(memory, "_c_function", lambda name: pytest.fail(name))
    monkeypatch.setattr(memory, "_ours", False)
    with memory.reused_memory():
        pass


def test_reused_memory_does_nothing_with_another_c_library(monkeypatch):
    assert memory._c_function("no_such_function_of_any_library") is None
    monkeypatch.setattr(memory, "_c_function", lambda name: None)
    monkeypatch.setattr(memory, "_ours", True)
    with memory.reused_memory():
        pass
