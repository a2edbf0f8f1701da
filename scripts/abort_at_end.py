"""PyTorch's own abort at the end of a training, recorded or not: who runs trainings bears it, by this rule.

A thread of a backward pass that wants the interpreter once the program has ended is ended by Python
(before 3.14) in a way that C++ forbids: std::terminate. All was done and printed by then but for the
end itself, so that a trace tells of a process that was killed, and has every event.

    abort_at_end.py STATUS STDERR ANALYZER TRACE    exit status 0: a program that ended with STATUS,
                                                    said what is in STDERR and left TRACE did that
"""

import json
import pathlib
import subprocess
import sys

LINE = "terminate called without an active exception"
STATUSES = (-6, 128 + 6)  # of the process itself, and told by a shell or a launcher


def status_but_for_abort(status, stderr):
    """What the program would have ended with, had it not aborted so: 1 after an exception, else 0.
    None: it did not abort so."""
    if status not in STATUSES or LINE not in stderr.splitlines():
        return None
    return 1 if "Traceback" in stderr else 0


def aborted_at_end(status, stderr):
    return status_but_for_abort(status, stderr) == 0


def trace_ends_killed(analyzer, trace):
    """Whether the trace says of its process what is true of one that aborted."""
    told = subprocess.run(
        [str(analyzer), "list", str(trace), "--json", "-"], capture_output=True, text=True, check=False
    )
    return told.returncode == 0 and json.loads(told.stdout)["traces"][0]["ended"] == "killed"


if __name__ == "__main__":
    code, said, tool, recorded = sys.argv[1:]
    text = pathlib.Path(said).read_text(errors="replace")
    sys.exit(not (aborted_at_end(int(code), text) and trace_ends_killed(tool, recorded)))
