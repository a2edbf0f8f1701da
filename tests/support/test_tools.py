"""The tests' tools from PyPI, which scripts/setup --tests installs into folders of their own."""

import os
import pathlib

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fragtrace"


def folder_of(name):
    """The newest installed version of a tool; None if there is none."""
    found = sorted(CACHE.glob(f"{name}-[0-9]*/.complete"))
    return found[-1].parent if found else None


def missing(name):
    return f"the Python package {name} is not installed (scripts/setup --tests)"
