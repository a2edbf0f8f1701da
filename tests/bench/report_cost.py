#!/usr/bin/env python3
"""What the report of a long trace takes on two cores: its first screen, and all of it.

Without --trace, ten million events of a training are recorded on the virtual GPU first (minutes).

    report_cost.py --build build [--trace TRACE] [--python PY] [--repeats 3]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from analysis_cost import ROOT, record

CORES = 2


def report(build, trace):
    """Seconds until the first screen stood, until the report did, of the processors, and rows."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    begin = time.monotonic()
    done = subprocess.Popen([build / "bin/fraganalyze", trace, "--progress", "--color", "never"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, cores))
    first, rows = None, 0
    for line in done.stderr:
        if first is None and "every request is replayed" in line:
            first = time.monotonic() - begin
        if line.startswith("replaying "):
            rows = int(line.rsplit("/", 1)[1])
    _, status, usage = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    if done.returncode != 0 or first is None:
        raise RuntimeError(f"fraganalyze ended with {done.returncode}")
    return first, time.monotonic() - begin, usage.ru_utime + usage.ru_stime, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--trace", type=pathlib.Path)
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / ".venv/bin/python")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    args = parser.parse_args()
    build = args.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        if args.trace is None and not args.python.exists():
            print(f"report_cost.py: {args.python} is not there (--python), and no --trace is given",
                  file=sys.stderr)
            return 2
        trace = args.trace or record(build, args.python.absolute(), folder)
        runs = [report(build, trace) for _ in range(args.repeats)]
    firsts, wholes, processors, rows = zip(*runs)
    figures = {"first_screen_s": statistics.median(firsts), "report_s": statistics.median(wholes),
               "processor_s": statistics.median(processors), "rows": max(rows)}
    for name, value in figures.items():
        print(f"{name:<20} {value:.3g}")
    if args.json:
        args.json.write_text(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
