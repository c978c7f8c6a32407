"""The folder of downloads and parsed copies."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from saen._util.atomic import expand_user


def cache_folder() -> Path:
    """Where downloads and parsed copies are kept: `$SAEN_CACHE`, or the system's cache folder."""
    if os.environ.get("SAEN_CACHE"):
        return expand_user(os.environ["SAEN_CACHE"])
    return Path(platformdirs.user_cache_dir("saen"))
