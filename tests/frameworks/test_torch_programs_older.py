"""The programs of test_torch_programs.py on an older release of PyTorch.

FRAGTRACE_OLDER_PYTHON names the interpreter. Without it the newest of these in the cache of scripts/setup is
used.
"""

import os
import pathlib
import sys

import real_process
import test_torch_programs

RELEASES = ("2.6.0", "2.9.1", "2.13.0", "2.4.1", "2.1.2")


def older_python():
    named = os.environ.get("FRAGTRACE_OLDER_PYTHON")
    if named:
        return named
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    found = [cache / "fragtrace" / f"python-torch-{release}" / "bin" / "python" for release in RELEASES]
    return next((str(python) for python in found if python.exists()), "")


class OlderPrograms(test_torch_programs.Programs):
    python = older_python()


class OlderPoolsForOthers(test_torch_programs.PoolsForOthers):
    python = older_python()


if __name__ == "__main__":
    if not OlderPrograms.python:
        print("skipped: no older PyTorch (FRAGTRACE_OLDER_PYTHON=PATH)")
        sys.exit(77)
    real_process.main()
