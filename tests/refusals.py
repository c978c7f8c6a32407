"""Errors with exactly the message that users are to read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from saen.errors import InputError, SaenError


@contextmanager
def refuses(message: str, kind: type[SaenError] = InputError) -> Iterator[None]:
    """Fails unless the block raises an error of this kind that says just this."""
    with pytest.raises(kind) as error:
        yield
    assert str(error.value) == message
