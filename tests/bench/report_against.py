#!/usr/bin/env python3
"""Compares the report of this build with that of another build, on the same trace or snapshot.

Both programs run in turn, on the same two cores. The result is the ratio of the medians: elapsed time,
processor time of all threads, and peak memory. record_snapshot.py makes a snapshot with as many entries as
wanted.

    report_against.py --build build --other OTHER/bin/fraganalyze --trace FILE [--repeats 5]
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

CORES = 2


def report(program, trace):
    """Elapsed seconds, seconds of processor time, and the peak memory in MB of one report."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    begin = time.monotonic()
    done = subprocess.Popen(
        [program, trace],
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    _, status, usage = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    if done.returncode != 0:
        raise RuntimeError(f"{program} ended with {done.returncode}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--other", type=pathlib.Path, required=True, help="fraganalyze of the other build")
    parser.add_argument("--trace", type=pathlib.Path, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    runs = {args.build / "bin/fraganalyze": [], args.other: []}
    for _ in range(args.repeats):
        for program, results in runs.items():
            results.append(report(program, args.trace))
    this, other = ([statistics.median(column) for column in zip(*results)] for results in runs.values())
    names = ("elapsed s", "processor s", "memory MB")
    for name, ours, theirs in zip(names, this, other):
        print(f"{name:12} {ours:8.2f} {theirs:8.2f}  ratio {ours / theirs:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
