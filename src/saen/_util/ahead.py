"""Work that is done in a thread before its result is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each computed in a thread while the caller works on the one before.

    >>> [*ahead(n * n for n in range(4))]
    [0, 1, 4, 9]
    """
    iterator = iter(items)
    pool = ThreadPoolExecutor(1)
    try:
        future = pool.submit(_next, iterator)
        while item := future.result():
            future = pool.submit(_next, iterator)
            yield item[0]
    finally:
        # Not waiting: an iterator that was left in the middle may be collected anywhere, even in a
        # thread that is about to start and holds the lock that joining another one takes.
        pool.shutdown(wait=False, cancel_futures=True)


def _next(iterator: Iterator[T]) -> tuple[T] | None:
    for item in iterator:
        return (item,)
    return None
