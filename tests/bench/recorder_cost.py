#!/usr/bin/env python3
"""What the recorder's core costs a host program, and its drain, without CUDA and without Python.

A loop of malloc and free ten calls deep, recorded by our core (two stacks of a pair: one) and, where
it is installed, by heaptrack (one stack a malloc). Interleaved repeats, medians; ratios of one run.

    recorder_cost.py --build build [--repeats 7]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

HEAPTRACK = [pathlib.Path(folder) / "heaptrack/libheaptrack_preload.so"
             for folder in ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu")]


def run(program, words, folder, preload=None):
    environment = {**os.environ, "FRAGTRACE_OUTPUT": str(folder)}
    if preload:
        environment |= {"LD_PRELOAD": str(preload),
                        "DUMP_HEAPTRACK_OUTPUT": str(pathlib.Path(folder) / "heaptrack.raw")}
    done = subprocess.run([program, *map(str, words)], env=environment, check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    program = args.build.resolve() / "bin/recorder_bench"
    heaptrack = next((path for path in HEAPTRACK if path.exists()), None)
    pairs = 500_000
    modes = {"plain": (1, pairs, 0), "recorded": (1, pairs, 1), "two threads": (2, pairs, 1),
             "two plain": (2, pairs, 0)}
    times = {name: [] for name in [*modes, "heaptrack"]}
    walls = {name: [] for name in modes}
    latencies = []
    sizes = []
    for _ in range(args.repeats):
        for name, words in modes.items():
            with tempfile.TemporaryDirectory() as folder:
                result = run(program, ["loop", *words], folder)
                times[name].append(result["processor_ns_per_pair"])
                walls[name].append(result["ns_per_pair"])
                if name == "recorded":
                    sizes.append(sum(f.stat().st_size for f in pathlib.Path(folder).iterdir()))
        with tempfile.TemporaryDirectory() as folder:
            if heaptrack:
                times["heaptrack"].append(
                    run(program, ["loop", 1, pairs, 0], folder,
                        heaptrack)["processor_ns_per_pair"])
        with tempfile.TemporaryDirectory() as folder:
            latencies.append(run(program, ["latency", 200_000], folder))
    with tempfile.TemporaryDirectory() as folder:
        paced = run(program, ["paced", 5], folder)
    with tempfile.TemporaryDirectory() as folder:
        memory = run(program, ["memory", 10_000_000], folder)

    ns = {name: statistics.median(values) for name, values in times.items() if values}
    ours = (ns["recorded"] - ns["plain"]) / 2
    print(f"added to an event: {ours:.0f} ns of the calling thread's processor time ({args.repeats} interleaved repeats, medians)")
    if heaptrack:
        theirs = (ns["heaptrack"] - ns["plain"]) / 2
        print(f"heaptrack's: {theirs:.0f} ns; ratio {ours / theirs:.2f}")
    else:
        print("heaptrack is not installed: not compared")
    wall = {name: statistics.median(values) for name, values in walls.items()}
    print(f"two threads against one: {wall['recorded'] / wall['two threads']:.2f} times the events a "
          f"second (the same loop unrecorded: {wall['plain'] / wall['two plain']:.2f}); processor "
          f"time of a pair: {ns['two threads'] / ns['recorded']:.2f} of one thread's")
    print("a recorded pair, clock included: "
          + ", ".join(f"{name} {statistics.median(one[name + '_ns'] for one in latencies) / 1e3:.2f} us"
                      for name in ("median", "p99", "p999")))
    print(f"at {paced['events_per_s']:.0f} events a second the drain takes "
          f"{100 * paced['drain_share']:.1f} % of a core")
    print("resident memory while 10 million events come (MiB): "
          + " ".join(f"{kib / 1024:.1f}" for kib in memory["resident_kib"]))
    print(f"ending the trace of 10 million events: {memory['end_ms']:.1f} ms")
    print(f"trace: {statistics.median(sizes) / (2 * pairs):.2f} bytes an event")


if __name__ == "__main__":
    main()
