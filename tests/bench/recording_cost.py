#!/usr/bin/env python3
"""What recording costs on a GPT training step, against PyTorch's own recorder in the same run.

On the virtual GPU kernels do nothing, so a step is allocations and Python: the worst case for any
recorder. Interleaved repeats, medians, and ratios; absolute times are of this machine.

    recording_cost.py --build build --python .venv/bin/python [--repeats 5]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

CLIENT = r"""
import json, os, sys, time, resource
import torch
sys.path.insert(0, sys.argv[2])
import gpt

mode = sys.argv[1]
torch.manual_seed(1)
model = gpt.GPT(12, 768, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
text = torch.randint(1000, (8, 513)).cuda()

def step():
    loss = model(text[:, :-1], text[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

for _ in range(5):
    step()
if mode.startswith("torch-"):
    torch.cuda.memory._record_memory_history("all", stacks=mode[len("torch-"):])
before = torch.cuda.memory_stats()["allocation.all.allocated"]
times = []
for _ in range(40):
    start = time.perf_counter()
    step()
    times.append(time.perf_counter() - start)
events = (torch.cuda.memory_stats()["allocation.all.allocated"] - before) / 40
times.sort()
torch.cuda.synchronize()
print(json.dumps({"step_s": times[len(times) // 2], "allocations": events,
                  "rss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""

MODES = ["off", "fragtrace", "fragtrace-python", "torch-python", "torch-all"]


def run(args, mode, folder):
    fragtrace = args.build / "bin/fragtrace"
    command = [fragtrace, "run", "--virtual-gpu", "80GiB", "-o", folder, "--quiet"]
    environment = dict(os.environ)
    if not mode.startswith("fragtrace"):
        command.append("--no-record")
    elif mode == "fragtrace-python":
        environment["FRAGTRACE_STACKS"] = "python"
    demos = pathlib.Path(__file__).resolve().parents[2] / "scripts/demos"
    command += ["--", args.python, "-c", CLIENT, mode, demos]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{mode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--python", default=".venv/bin/python")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    args = parser.parse_args()

    steps = {mode: [] for mode in MODES}
    trace_bytes = 0
    allocations = 0
    for _ in range(args.repeats):
        for mode in MODES:
            with tempfile.TemporaryDirectory() as folder:
                result = run(args, mode, folder)
                steps[mode].append(result["step_s"])
                allocations = result["allocations"]
                if mode == "fragtrace":
                    trace_bytes = sum(f.stat().st_size for f in pathlib.Path(folder).iterdir())
    off = statistics.median(steps["off"])
    peer = statistics.median(steps["torch-all"]) - off
    print(f"{allocations:.0f} allocations and as many frees a step; step without recording "
          f"{off * 1e3:.2f} ms; {args.repeats} interleaved repeats, medians")
    print(f"{'recorder':<18} {'step':>9} {'slow-down':>9} {'per alloc+free':>14} {'of torch-all':>12}")
    for mode in MODES:
        step = statistics.median(steps[mode])
        print(f"{mode:<18} {step * 1e3:>6.2f} ms {step / off:>9.2f} "
              f"{(step - off) / allocations * 1e6:>11.2f} us {(step - off) / peer:>12.2f}")
    events = 45 * allocations * 2
    print(f"trace: {trace_bytes} bytes for about {events:.0f} block events of steps alone: at most "
          f"{trace_bytes / events:.1f} bytes an event")
    if args.json:
        step = statistics.median(steps["fragtrace"])
        args.json.write_text(json.dumps({"slow_down": step / off,
                                         "of_torch": (step - off) / peer,
                                         "trace_bytes": trace_bytes / events}))


if __name__ == "__main__":
    main()
