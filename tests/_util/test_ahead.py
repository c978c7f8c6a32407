"""Items that a thread computes ahead."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from saen._util.ahead import ahead


def test_an_iterator_that_is_left_in_the_middle_does_not_wait_for_its_thread() -> None:
    ended, closed = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield 1
        ended.wait(20)
        yield 2

    iterator = ahead(items())
    assert next(iterator) == 1  # the thread is waiting for the second item

    def close() -> None:
        iterator.close()  # type: ignore[attr-defined]
        closed.set()

    closing = threading.Thread(target=close)
    closing.start()
    try:
        assert closed.wait(10)
    finally:
        ended.set()
        closing.join()


def test_errors_arrive_with_their_item() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("two")

    iterator = ahead(items())
    assert next(iterator) == 1
    with pytest.raises(ValueError, match="two"):
        next(iterator)
