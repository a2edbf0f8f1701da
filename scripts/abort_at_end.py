"""Recognises a known PyTorch bug: an abort at the end of a training. It happens with and without fragtrace.

A thread of the backward pass may need the interpreter after the program has ended. Python before 3.14 ends
that thread in a way that C++ forbids, so C++ calls std::terminate. All work and output were complete by then.
The trace has every event, but it says that the process was killed.
"""

import json
import subprocess

LINE = "terminate called without an active exception"
STATUSES = (-6, 128 + 6)  # as the process reports it, and as a shell or a launcher does


def status_but_for_abort(status, stderr):
    """Returns the exit status that the program would have had without the abort: 1 after an exception, else
    0. None if it did not abort in this way."""
    if status not in STATUSES or LINE not in stderr.splitlines():
        return None
    return 1 if "Traceback" in stderr else 0


def aborted_at_end(status, stderr):
    return status_but_for_abort(status, stderr) == 0


def trace_ends_killed(analyzer, trace):
    """Whether the trace says that its process was killed, as it does after an abort."""
    told = subprocess.run(
        [str(analyzer), "list", str(trace), "--json", "-"], capture_output=True, text=True, check=False
    )
    return told.returncode == 0 and json.loads(told.stdout)["traces"][0]["ended"] == "killed"
