#!/usr/bin/env python3
"""Measures the report of a long trace on two cores: its first screen, and the complete report.

Without --trace, ten million events of a training are recorded on the virtual GPU first (minutes).

    report_cost.py --build build [--trace TRACE] [--python PY] [--repeats 3]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from analysis_cost import arguments, tell, trace_of

CORES = 2


def report(build, trace):
    """Seconds until the first screen, until the report, of processor time, and the number of rows."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    begin = time.monotonic()
    done = subprocess.Popen(
        [build / "bin/fraganalyze", trace, "--progress", "--color", "never"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    first, rows = None, 0
    for line in done.stderr:
        if first is None and "replay every request" in line:
            first = time.monotonic() - begin
        if line.startswith("replaying "):
            rows = int(line.rsplit("/", 1)[1])
    _, status, usage = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    if done.returncode != 0 or first is None:
        raise RuntimeError(f"fraganalyze ended with {done.returncode}")
    return first, time.monotonic() - begin, usage.ru_utime + usage.ru_stime, rows


def main():
    args = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = trace_of(args, folder)
        runs = [report(args.build.resolve(), trace) for _ in range(args.repeats)]
    firsts, wholes, processors, rows = zip(*runs)
    tell(
        {
            "first_screen_s": statistics.median(firsts),
            "report_s": statistics.median(wholes),
            "processor_s": statistics.median(processors),
            "rows": max(rows),
        },
        args,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
