"""Recordings and snapshots for the tests of formats."""

import pathlib
import pickle
import sys

from real_process import LAUNCHER, MIB, SOURCE, environment

HERE = pathlib.Path(__file__).resolve().parent
TWO_DEVICES = HERE / "programs" / "two_devices.py"
TORCH_PROGRAM = SOURCE / "tests" / "frameworks" / "programs" / "snapshot.py"
NO_TORCH = "no PyTorch: configure with -DFRAGTRACE_PYTHON"


def two_devices(test):
    """The trace of programs/two_devices.py."""
    test.run_well(
        [LAUNCHER, "run", "--virtual-gpu", "1GiB,count=2,context=0", "-o", test.folder / "two", "--",
         sys.executable, TWO_DEVICES, "two\nlines"],
        env=environment(),
    )  # fmt: skip
    return test.only_trace(test.folder / "two")


def torch_training(test):
    """A trace of PyTorch with retries and an out-of-memory, and the snapshots that PyTorch wrote, by name."""
    folder = test.folder / "torch"
    folder.mkdir()
    test.run_training([TORCH_PROGRAM, folder], env=environment("16GiB", record_to=folder))
    return test.only_trace(folder), {path.stem: path for path in folder.glob("*.pickle")}


def snapshot(test):
    """A snapshot without a history: a live block of 3 MiB, one of 2 MiB that waits, 15 MiB free.

    The live block has a stack, the other one has none.
    """
    address = 0x7F0000000000
    frames = [
        {"name": "allocate", "filename": "/made up/model.py", "line": 12},
        {"name": "main", "filename": "/made up/train.py", "line": 34},
    ]
    states = [("active_allocated", 3, frames), ("active_pending_free", 2, []), ("inactive", 15, [])]
    blocks = []
    for state, mib, stack in states:
        before = sum(block["size"] for block in blocks)
        blocks.append(
            {"address": address + before, "size": mib * MIB, "requested_size": mib * MIB, "state": state,
             "frames": stack}
        )  # fmt: skip
    segment = {
        "device": 0,
        "address": address,
        "total_size": 20 * MIB,
        "stream": 0,
        "segment_type": "large",
        "allocated_size": 3 * MIB,
        "active_size": 5 * MIB,
        "requested_size": 3 * MIB,
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }
    path = test.folder / "made_up.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [[]]}))
    return path
