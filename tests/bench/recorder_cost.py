"""Measures the cost of the recorder's core and its drain for a host program, without CUDA and Python.

A loop of malloc and free ten calls deep, recorded by our core (two stacks of a pair: one) and, if it is
installed, by heaptrack (one stack per malloc). Repeats are interleaved, results are medians, and ratios are
of one run.

    recorder_cost.py --build build [--repeats 7]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

HEAPTRACK = [
    pathlib.Path(folder) / "heaptrack/libheaptrack_preload.so"
    for folder in ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu")
]


def run(program, words, folder, preload=None):
    environment = {**os.environ, "FRAGTRACE_OUTPUT": str(folder)}
    if preload:
        environment |= {
            "LD_PRELOAD": str(preload),
            "DUMP_HEAPTRACK_OUTPUT": str(pathlib.Path(folder) / "heaptrack.raw"),
        }
    done = subprocess.run(
        [program, *map(str, words)], env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    args = parser.parse_args()
    program = args.build.resolve() / "bin/recorder_bench"
    heaptrack = next((path for path in HEAPTRACK if path.exists()), None)
    pairs = 500_000
    modes = {
        "plain": (1, pairs, 0),
        "recorded": (1, pairs, 1),
        "two threads": (2, pairs, 1),
        "two plain": (2, pairs, 0),
    }
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
                    run(program, ["loop", 1, pairs, 0], folder, heaptrack)["processor_ns_per_pair"]
                )
        with tempfile.TemporaryDirectory() as folder:
            latencies.append(run(program, ["latency", 200_000], folder))
    bursts = {(threads, record): [] for threads in (1, 2) for record in (0, 1)}
    for _ in range(args.repeats):
        for (threads, record), runs in bursts.items():
            with tempfile.TemporaryDirectory() as folder:
                runs.append(run(program, ["burst", threads, 50, record], folder)["ns_per_pair"])
    crowds = {record: [] for record in (0, 1)}
    for _ in range(args.repeats):
        for record, runs in crowds.items():
            with tempfile.TemporaryDirectory() as folder:
                runs.append(run(program, ["crowd", 64, 1500, record], folder))
    crowd = {record: statistics.median(one["ns_per_pair"] for one in runs) for record, runs in crowds.items()}
    lost = sum(one["lost"] for one in crowds[1])
    burst = {key: statistics.median(values) for key, values in bursts.items()}
    with tempfile.TemporaryDirectory() as folder:
        paced = run(program, ["paced", 5], folder)
    with tempfile.TemporaryDirectory() as folder:
        memory = run(program, ["memory", 10_000_000], folder)

    ns = {name: statistics.median(values) for name, values in times.items() if values}
    ours = (ns["recorded"] - ns["plain"]) / 2
    print(
        f"added to an event: {ours:.0f} ns of the calling thread's processor time "
        f"({args.repeats} interleaved repeats, medians)"
    )
    if heaptrack:
        theirs = (ns["heaptrack"] - ns["plain"]) / 2
        print(f"heaptrack's: {theirs:.0f} ns; ratio {ours / theirs:.2f}")
    else:
        print("heaptrack is not installed: not compared")
    wall = {name: statistics.median(values) for name, values in walls.items()}
    print(
        f"two threads against one: {wall['recorded'] / wall['two threads']:.2f} times the events a "
        f"second (the same loop unrecorded: {wall['plain'] / wall['two plain']:.2f}); processor "
        f"time of a pair: {ns['two threads'] / ns['recorded']:.2f} of one thread's"
    )
    print(
        f"the same in bursts while the drain sleeps: {burst[1, 1] / burst[2, 1]:.2f} times "
        f"(unrecorded: {burst[1, 0] / burst[2, 0]:.2f})"
    )
    print(
        f"64 threads at the rate of a training: {crowd[1] / crowd[0]:.3f} of their time unrecorded, "
        f"{lost} of {args.repeats * 64 * 3000:,} events lost"
    )
    print(
        "a recorded pair, clock included: "
        + ", ".join(
            f"{name} {statistics.median(one[name + '_ns'] for one in latencies) / 1e3:.2f} us"
            for name in ("median", "p99", "p999")
        )
    )
    print(
        f"at {paced['events_per_s']:.0f} events a second the drain takes "
        f"{100 * paced['drain_share']:.1f} % of a core"
    )
    # Two cores do the work of both threads and of the drain. A single thread has its own core.
    event_ns = ns["recorded"] / 2
    drain_ns = 1e9 * paced["drain_share"] / paced["events_per_s"]
    most = min(2.0, 2 * event_ns / (event_ns + drain_ns))
    print(
        f"an event takes its thread {event_ns:.0f} ns and the drain {drain_ns:.0f} ns: on two cores "
        f"two threads can reach {most:.2f} times the rate of one, sustained"
    )
    print(
        "resident memory while 10 million events come (MiB): "
        + " ".join(f"{kib / 1024:.1f}" for kib in memory["resident_kib"])
    )
    print(f"ending the trace of 10 million events: {memory['end_ms']:.1f} ms")
    print(f"trace: {statistics.median(sizes) / (2 * pairs):.2f} bytes an event")
    if args.json:
        args.json.write_text(
            json.dumps(
                {
                    "added_ns": ours,
                    "of_heaptrack": ours / theirs if heaptrack else None,
                    "threads_sustained": wall["recorded"] / wall["two threads"],
                    "threads_most": most,
                    "threads_unrecorded": burst[1, 0] / burst[2, 0],
                    "threads_in_bursts": burst[1, 1] / burst[2, 1],
                    "crowd": crowd[1] / crowd[0],
                    "crowd_lost": lost,
                    "p999_us": statistics.median(one["p999_ns"] for one in latencies) / 1e3,
                    "drain_percent": 100 * paced["drain_share"],
                    "resident_mib": max(memory["resident_kib"]) / 1024,
                    "end_s": memory["end_ms"] / 1e3,
                }
            )
        )


if __name__ == "__main__":
    main()
