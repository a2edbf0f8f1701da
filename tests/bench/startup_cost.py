#!/usr/bin/env python3
"""What the shim costs a process that never touches CUDA: /bin/true, with and without it.

Interleaved runs, medians; the figures are of this machine, the difference is what matters.

    startup_cost.py --build build [--runs 400]
"""

import argparse
import os
import pathlib
import statistics
import time


def run(environment):
    start = time.perf_counter()
    pid = os.posix_spawn("/bin/true", ["/bin/true"], environment)
    os.waitpid(pid, 0)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--runs", type=int, default=400)
    args = parser.parse_args()
    library = (args.build / "lib/libfragtrace.so").resolve(strict=True)
    plain = {"PATH": "/usr/bin:/bin"}
    traced = {**plain, "LD_PRELOAD": str(library)}
    times = {"plain": [], "traced": []}
    for _ in range(args.runs):
        times["plain"].append(run(plain))
        times["traced"].append(run(traced))
    plain_us, traced_us = (statistics.median(times[name]) * 1e6 for name in ("plain", "traced"))
    print(f"/bin/true: {plain_us:.0f} us, under the shim {traced_us:.0f} us: "
          f"{traced_us - plain_us:+.0f} us, ratio {traced_us / plain_us:.2f} "
          f"({args.runs} interleaved runs, medians)")


if __name__ == "__main__":
    main()
