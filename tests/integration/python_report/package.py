"""The Python package of the source tree, with the built programs and libraries."""

import os
import pathlib

from real_process import BUILD, SOURCE

PACKAGE = SOURCE / "preload" / "python"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fragtrace"


def variables(*tools, **others):
    """Environment variables for a program that imports the package, and tools of scripts/setup."""
    folders = [PACKAGE]
    for tool in tools:
        beside = sorted(CACHE.glob(f"{tool}-*"))
        inside = sorted(CACHE.glob(f"{tool}-*/lib/python3*/site-packages"))
        folders += inside or beside
    return {
        "PYTHONPATH": ":".join(str(folder) for folder in folders),
        "PYTHONDONTWRITEBYTECODE": 1,
        "FRAGTRACE_PREFIX": BUILD,
        **others,
    }


def tool_python(tool):
    """The interpreter of a tool with its own virtual environment. None if it is not installed."""
    found = sorted(CACHE.glob(f"{tool}-*/bin/python"))
    return found[-1] if found else None
