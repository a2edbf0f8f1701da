#!/usr/bin/env python3
"""Measures reading, replaying, sweeping and summarizing a long trace: time and memory.

Without --trace, ten million events of a training are recorded on the virtual GPU first (minutes).
In the same run the allocator of an installed PyTorch serves the same requests. This needs PyTorch's headers,
those of CUDA (they come with Triton) and a compiler.

    analysis_cost.py --build build [--trace TRACE] [--python PY] [--repeats 5]
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 4300
SUMMARY_MIB = 256


def record(build, python, folder):
    subprocess.run(
        [
            build / "bin/fragtrace",
            "run",
            "--virtual-gpu",
            "16GiB",
            "-o",
            folder,
            "--quiet",
            "--",
            python,
            ROOT / "scripts/demos/gpt.py",
            "--steps",
            str(STEPS),
        ],
        check=True,
        capture_output=True,
    )
    return next(pathlib.Path(folder).glob("*.ftrace"))


def bench(build, trace, pattern):
    """The results of the named benchmarks, and the peak memory of the process."""
    done = subprocess.Popen(
        [build / "bin/replay_bench", f"--benchmark_filter={pattern}", "--benchmark_format=json"],
        env={**os.environ, "FRAGTRACE_BENCH_TRACE": str(trace)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    text = done.stdout.read()
    _, status, usage = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    if done.returncode != 0:
        raise RuntimeError(f"replay_bench ended with {done.returncode}")
    results = {
        one["name"].replace("/process_time/real_time", ""): one for one in json.loads(text)["benchmarks"]
    }
    return results, usage.ru_maxrss * 1024


def torch_allocator(build, python, trace, folder):
    """Nanoseconds per request of PyTorch's own allocator. None if it cannot be compiled."""
    packages = subprocess.run(
        [python, "-c", "import torch, os; print(os.path.dirname(torch.__file__))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    torch = pathlib.Path(packages)
    runtimes = sorted(torch.parent.glob("nvidia/*/lib/libcudart.so.*"))
    headers = torch.parent / "triton/backends/nvidia/include"
    if not runtimes or not headers.exists():
        return None
    program = pathlib.Path(folder) / "torch_allocator_bench"
    compiled = subprocess.run(
        [
            os.environ.get("CXX", "c++"),
            "-std=c++20",
            "-O2",
            "-isystem",
            torch / "include",
            "-isystem",
            headers,
            ROOT / "tests/bench/torch_allocator_bench.cpp",
            "-o",
            program,
            torch / "lib/libc10_cuda.so",
            torch / "lib/libc10.so",
            runtimes[-1],
            f"-Wl,-rpath,{torch}/lib:{runtimes[-1].parent}",
        ],
        capture_output=True,
        check=False,
    )
    if compiled.returncode != 0:
        return None
    requests = pathlib.Path(folder) / "requests"
    subprocess.run(
        [build / "bin/replay_bench"],
        check=True,
        capture_output=True,
        env={**os.environ, "FRAGTRACE_BENCH_TRACE": str(trace), "FRAGTRACE_BENCH_REQUESTS": str(requests)},
    )
    done = subprocess.run(
        [build / "bin/fragtrace", "run", "--virtual-gpu", "16GiB", "--quiet", "--", program, requests],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "FRAGTRACE_OFF": "1"},
    )
    return float(done.stdout.split()[-1])


def summarize(build, trace):
    """Whether the summary works with SUMMARY_MIB of address space."""
    limit = SUMMARY_MIB << 20
    done = subprocess.run(
        [build / "bin/fraganalyze", "summarize", "--no-stacks", trace],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0


def arguments(description):
    """A parser with the options of every benchmark that reads a long trace."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--trace", type=pathlib.Path)
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / ".venv/bin/python")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    return parser


def trace_of(args, folder):
    """The named trace, or one that is recorded now."""
    if args.trace is None and not args.python.exists():
        print(
            f"{pathlib.Path(sys.argv[0]).name}: {args.python} is not there (--python), and no "
            "--trace is given",
            file=sys.stderr,
        )
        sys.exit(2)
    return args.trace or record(args.build.resolve(), args.python.absolute(), folder)


def tell(figures, args):
    for name, value in figures.items():
        print(f"{name:<20} {value:.3g}")
    if args.json:
        args.json.write_text(json.dumps(figures))


def main():
    parser = arguments(__doc__)
    parser.add_argument("--no-sweep", action="store_true", help="two minutes less")
    args = parser.parse_args()
    build = args.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        trace = trace_of(args, folder)
        reads, replays, torch, memory = [], [], [], 0
        for _ in range(args.repeats):
            # Reading runs after the replay, in memory that the process has already touched. On a virtual
            # machine the first touch of memory may take as long as the reading.
            results, _ = bench(build, trace, "read_events|default_settings")
            _, memory = bench(build, trace, "default_settings")  # for one reading and one replay
            events = results["read_events"]["items_per_second"] * results["read_events"]["real_time"] / 1e3
            reads.append(results["read_events"]["items_per_second"] / 1e6)
            replays.append(1e3 / results["replay_pytorch/default_settings"]["items_per_second"] * 1e6)
            if args.python.exists():
                torch.append(torch_allocator(build, args.python.absolute(), trace, folder))
        figures = {
            "read_millions": statistics.median(reads),
            "replay_millions": 1e3 / statistics.median(replays),
            "event_bytes": memory / events,
            "summary_in_limit": 1 if summarize(build, trace) else 0,
        }
        if torch and None not in torch:
            figures["of_torch_allocator"] = statistics.median(replays) / statistics.median(torch)
        if not args.no_sweep:
            results, _ = bench(build, trace, "sweep_settings")
            one = results["sweep_settings/1/iterations:1"]["real_time"]
            two = results["sweep_settings/2/iterations:1"]["real_time"]
            figures |= {"sweep_s": two, "sweep_ratio": one / two}
    tell(figures, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
