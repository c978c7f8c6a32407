"""Warnings that point at the user's line, however deep they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, with the line outside of this package that led here.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_caller("careful")
    >>> str(caught[0].message), caught[0].filename == __file__
    ('careful', False)
    """
    frame, level = sys._getframe(), 1  # noqa: SLF001 - as warnings themselves do
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
