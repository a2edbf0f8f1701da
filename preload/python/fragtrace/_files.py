"""Where the programs and libraries of fragtrace are: beside this package, or in the folder that it was
installed into or built in."""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Iterator

HERE = pathlib.Path(__file__).resolve().parent


def _prefixes() -> Iterator[pathlib.Path]:
    """Folders with `bin` and `lib`, the likely ones first."""
    named = os.environ.get("FRAGTRACE_PREFIX")
    if named:
        yield pathlib.Path(named)
        return
    yield HERE
    if HERE.parent.name == "python" and HERE.parents[1].name == "fragtrace":
        yield HERE.parents[3]  # PREFIX/share/fragtrace/python/fragtrace
    if HERE.parents[1].name == "preload":
        yield HERE.parents[2] / "build"
    for name in ("fragtrace", "fraganalyze"):
        program = shutil.which(name)
        if program:
            yield pathlib.Path(program).resolve().parents[1]


def library(name: str) -> pathlib.Path | None:
    """The path of a shared library. None if it is not there."""
    for prefix in _prefixes():
        for folder in ("lib", "lib64", "lib/*-linux-gnu"):
            for found in sorted(prefix.glob(f"{folder}/{name}")):
                return found
    return None


def program(name: str) -> pathlib.Path | None:
    """The path of a program. None if it is not there."""
    for prefix in _prefixes():
        found = prefix / "bin" / name
        if found.is_file():
            return found
    return None
