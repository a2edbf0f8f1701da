"""Starting jobs of several ranks, and what their traces must agree with."""

import functools
import pathlib

import test_tools
from real_process import TORCH_PYTHON, environment, run

PROGRAMS = pathlib.Path(__file__).with_name("programs")
FOLDERS = {"accelerate": "transformers"}  # modules that come with another package


def torchrun(ranks, *command):
    """The command may begin with further options."""
    return [
        TORCH_PYTHON,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        ranks,
        *command,
    ]


@functools.cache
def beside_torch(module):
    """Environment variables with which PyTorch's interpreter finds a module of scripts/setup --tests.

    None if it cannot import the module.
    """
    folder = test_tools.folder_of(FOLDERS.get(module, module))
    variables = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
    if (
        folder is None
        or run([TORCH_PYTHON, "-c", f"import {module}"], env=environment(**variables)).returncode
    ):
        return None
    return variables


def differences(report):
    """What a report of a rank says about losses, and about placements that differ in the replay.

    The replay has the recorded settings.
    """
    used = [device["fidelity"] for device in report["devices"] if device["segments_allocated"]]
    if len(used) != 1 or used[0]["placements"] == 0:
        return [f"{len(used)} devices used"]
    fidelity = used[0]
    compared = {
        "events_lost": (report["source"]["events_lost"], 0),
        "placements_equal": (fidelity["placements_equal"], fidelity["placements"]),
        "segments_equal": (fidelity["segments_equal"], fidelity["segments"]),
    }
    return [f"{name} {found}, not {wanted}" for name, (found, wanted) in compared.items() if found != wanted]
