"""The Python package of the source tree, with the built programs and libraries."""

import os
import pathlib
import sys

import real_process
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


def main():
    """Like real_process.main(). A library with a sanitizer cannot be loaded into a Python without it."""
    options = (BUILD / "CMakeCache.txt").read_text().splitlines()
    if not any(line.rstrip() == "FRAGTRACE_SANITIZE:STRING=" for line in options):
        print("skipped: libfraganalyze.so was built with a sanitizer, and Python was not")
        sys.exit(77)
    real_process.main()
