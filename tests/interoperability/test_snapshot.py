"""Exports to PyTorch's memory snapshots, opened by PyTorch's own tool, by pt-snap-cli and by fraganalyze."""

import collections
import glob
import gzip
import importlib.util
import io
import json
import os
import pathlib
import pickle
import pickletools
import re
import sqlite3
import subprocess
import sys
import unittest

import real_process
from real_process import ANALYZER, DEMOS, MIB, SOURCE, TORCH_PYTHON, environment

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fragtrace"
SHARED = pathlib.Path(os.environ.get("FRAGTRACE_SHARED_TRACES") or SOURCE.parent / "shared" / "traces")
PT_SNAP = next(iter(sorted(CACHE.glob("pt-snap-cli-*/bin/pt-snap"))), None)
CLIENT = SOURCE / "tests" / "integration" / "json_schema" / "client.py"
PLAIN = (dict, list, tuple, str, int, float, bool)


def visualizers():
    """torch.cuda._memory_viz of each installed PyTorch, by path. It needs nothing else of PyTorch."""
    folders = {pathlib.Path(TORCH_PYTHON).parent.parent} if TORCH_PYTHON else set()
    folders |= set(CACHE.glob("python-torch-*"))
    files = {}
    for folder in sorted(folders):
        for file in glob.glob(f"{folder}/lib/python3*/site-packages/torch/cuda/_memory_viz.py"):
            files[os.path.realpath(file)] = folder.name
    found = {}
    for file, name in files.items():
        spec = importlib.util.spec_from_file_location(re.sub(r"\W", "_", name), file)
        found[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[name])
    return found


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"{module}.{name} in the pickle")


def load(path):
    """The snapshot. It must be a pickle of plain types, of protocol 4 or less."""
    data = path.read_bytes()
    protocols = [number for code, number, _ in pickletools.genops(data) if code.name == "PROTO"]
    assert protocols and max(protocols) <= 4, protocols
    return PlainUnpickler(io.BytesIO(data)).load()


def odd_types(value):
    """Types beyond those of a snapshot; every object is visited once."""
    seen, found, open_values = set(), set(), [value]
    while open_values:
        one = open_values.pop()
        if type(one) not in PLAIN:
            found.add(type(one))
        if id(one) in seen or not isinstance(one, (dict, list, tuple)):
            continue
        seen.add(id(one))
        open_values += [*one.keys(), *one.values()] if isinstance(one, dict) else one
    return found


def lines_of(report):
    """Bytes by line at the moments of a report, as far as a snapshot has the stacks."""
    moments = []
    for moment in (*report["ooms"], *report["retries"]):
        moments.append(
            collections.Counter(
                {place["line"]: place["bytes"] for place in moment["holders"]["places"]}
            )
        )
    return moments


class Snapshot(real_process.RealProcessTest):
    def export(self, trace, name="exported.pickle"):
        path = self.folder / name
        self.run_well([ANALYZER, "export", trace, "--to", "snapshot", "-o", path, "--force"])
        return path


if __name__ == "__main__":
    real_process.main()
