"""Measures the cost of the shim for a process that never uses CUDA: /bin/true, with and without it.

A preloaded library without contents gives the lower limit. Runs are interleaved, and results are medians. The
figures depend on the machine. The difference is what matters.

    startup_cost.py --build build [--runs 400]
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
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
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    args = parser.parse_args()
    library = (args.build / "lib/libfragtrace.so").resolve(strict=True)
    plain = {"PATH": "/usr/bin:/bin"}
    with tempfile.TemporaryDirectory() as folder:
        environments = {"plain": plain, "traced": {**plain, "LD_PRELOAD": str(library)}}
        empty = pathlib.Path(folder) / "empty.so"
        compiler = shutil.which("cc")
        if compiler:
            subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", empty], check=True)
            environments["empty"] = {**plain, "LD_PRELOAD": str(empty)}
        times = {name: [] for name in environments}
        for _ in range(args.runs):
            for name, environment in environments.items():
                times[name].append(run(environment))
    us = {name: statistics.median(values) * 1e6 for name, values in times.items()}
    added = us["traced"] - us["plain"]
    floor = us["empty"] - us["plain"] if compiler else None
    print(
        f"/bin/true: {us['plain']:.0f} us, under the shim {us['traced']:.0f} us: "
        f"{added:+.0f} us, ratio {us['traced'] / us['plain']:.2f} "
        f"({args.runs} interleaved runs, medians)"
    )
    print(
        "a preloaded library with nothing in it: "
        + (f"{floor:+.0f} us" if compiler else "not measured, there is no cc")
    )
    if args.json:
        args.json.write_text(json.dumps({"added_us": added, "floor_us": floor}))


if __name__ == "__main__":
    main()
