"""Measures the cost of recording a GPT training step, and compares it with PyTorch's own recorder.

On the virtual GPU kernels do nothing, so a step consists of allocations and Python: the worst case for any
recorder. Each mode has its own process. All processes live at the same time and run a few steps in turn,
round after round. Ratios are of neighbours in a round, as medians over the rounds. Absolute times depend on
the machine. Processor time is given for the program's threads (the backward pass has its own) and for all
threads including the recorder's. Other running programs do not change it.

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
import json, os, sys, time
import torch
sys.path.insert(0, sys.argv[2])
import gpt

mode, steps = sys.argv[1], int(sys.argv[3])
torch.manual_seed(1)
model = gpt.GPT(12, 768, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
text = torch.randint(1000, (8, 513)).cuda()

def step():
    loss = model(text[:, :-1], text[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def processor_s():
    times = {"main": 0, "program": 0, "recorder": 0}
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/comm") as name:
            ours = name.read().strip() == "fragtrace"
        with open(f"/proc/self/task/{task}/schedstat") as file:
            spent = int(file.read().split()[0]) / 1e9
        times["recorder" if ours else "program"] += spent
        times["main"] += spent if int(task) == os.getpid() else 0
    return times

def allocated():
    return torch.cuda.memory_stats()["allocation.all.allocated"]

for _ in range(6):
    step()
if mode.startswith("torch-"):
    torch.cuda.memory._record_memory_history("all", stacks=mode[len("torch-"):])
begin = processor_s()
done = 0
print("ready", flush=True)
for _ in sys.stdin:
    step()  # what the other processes left of the caches is not measured
    blocks = allocated()
    before = processor_s()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    after = processor_s()
    done += steps + 1
    times.sort()
    # The recorder's thread writes what earlier steps left, so its share is that of all steps.
    print(json.dumps({"elapsed": times[len(times) // 2],
                      "main": (after["main"] - before["main"]) / steps,
                      "program": (after["program"] - before["program"]) / steps,
                      "recorder": (after["recorder"] - begin["recorder"]) / done,
                      "allocations": (allocated() - blocks) / steps}), flush=True)
"""

STACKS = {"no-stacks": "none", "python-stacks": "python", "native-stacks": "native", "fragtrace": "all"}
MODES = ["off", "stopped", *STACKS, "torch-python", "torch-all"]
STEPS = 12


def start(args, mode, folder):
    fragtrace = args.build / "bin/fragtrace"
    command = [fragtrace, "run", "--virtual-gpu", "80GiB", "-o", folder, "--quiet"]
    environment = dict(os.environ)
    if mode in STACKS:
        environment["FRAGTRACE_STACKS"] = STACKS[mode]
    elif mode == "stopped":
        environment["FRAGTRACE_START"] = "off"
    else:
        command.append("--no-record")
    demos = pathlib.Path(__file__).resolve().parents[2] / "scripts/demos"
    command += ["--", args.python, "-c", CLIENT, mode, demos, str(STEPS)]
    errors = open(folder / "errors", "w+")  # noqa: SIM115  (open as long as the process)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
    )
    process.errors = errors
    return process


def answer(mode, process):
    line = process.stdout.readline()
    if not line:
        process.errors.seek(0)
        sys.exit(f"{mode}: {process.errors.read()[-2000:]}")
    return line


def one_round(mode, process):
    process.stdin.write("steps\n")
    process.stdin.flush()
    result = json.loads(answer(mode, process))
    result["all"] = result["program"] + result["recorder"]
    return result


def measure(args, folder):
    """A list of rounds for each mode, and the size of the trace with both stacks."""
    folders = {mode: folder / mode for mode in MODES}
    for place in folders.values():
        place.mkdir()
    processes = {mode: start(args, mode, folders[mode]) for mode in MODES}
    try:
        for mode, process in processes.items():
            answer(mode, process)
        rounds = {mode: [] for mode in MODES}
        for i in range(args.repeats):
            for mode in MODES if i % 2 == 0 else MODES[::-1]:
                rounds[mode].append(one_round(mode, processes[mode]))
        for process in processes.values():
            process.stdin.close()
            process.wait(timeout=60)
    finally:
        for process in processes.values():
            process.kill()
    return rounds, sum(f.stat().st_size for f in folders["fragtrace"].glob("*.ftrace"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--python", default=".venv/bin/python")
    parser.add_argument("--repeats", type=int, default=5, help="rounds")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        rounds, trace_bytes = measure(args, pathlib.Path(folder))

    def median(mode, figure):
        return statistics.median(one[figure] for one in rounds[mode])

    def ratios(mode, figure):
        return [one[figure] / off[figure] for one, off in zip(rounds[mode], rounds["off"])]

    def added(mode, figure):
        return statistics.median(one[figure] - off[figure] for one, off in zip(rounds[mode], rounds["off"]))

    allocations = median("off", "allocations")
    print(
        f"{allocations:.0f} allocations and as many frees a step; {args.repeats} rounds of {STEPS} "
        f"steps, medians; slow-down: of elapsed time, and of processor time of the main thread, of "
        f"the program's threads (least and most) and of all threads"
    )
    print(
        f"{'':<14} {'elapsed':>8} {'program':>8} {'recorder':>8} | {'elapsed':>7} {'main':>5} "
        f"{'program':>7} {'':>12} {'all':>5} | per alloc+free (elapsed, all threads), of torch-all"
    )
    for mode in MODES:
        spread = ratios(mode, "program")
        print(
            f"{mode:<14} "
            + " ".join(
                f"{median(mode, figure) * 1e3:>5.2f} ms" for figure in ("elapsed", "program", "recorder")
            )
            + f" | {statistics.median(ratios(mode, 'elapsed')):>7.2f} "
            f"{statistics.median(ratios(mode, 'main')):>5.2f} {statistics.median(spread):>7.2f} "
            f"({min(spread):.2f}..{max(spread):.2f}) {statistics.median(ratios(mode, 'all')):>5.2f} | "
            + ", ".join(
                f"{added(mode, figure) / allocations * 1e6:.2f} us "
                f"({added(mode, figure) / added('torch-all', figure):.2f})"
                for figure in ("elapsed", "all")
            )
        )
    events = (6 + args.repeats * (STEPS + 1)) * allocations * 2
    print(
        f"trace: {trace_bytes} bytes for about {events:.0f} block events of steps alone: at most "
        f"{trace_bytes / events:.1f} bytes an event"
    )
    if args.json:
        args.json.write_text(
            json.dumps(
                {
                    "slow_down": statistics.median(ratios("fragtrace", "elapsed")),
                    "slow_down_program": statistics.median(ratios("fragtrace", "program")),
                    "slow_down_all_threads": statistics.median(ratios("fragtrace", "all")),
                    "of_torch": added("fragtrace", "elapsed") / added("torch-all", "elapsed"),
                    "of_torch_all_threads": added("fragtrace", "all") / added("torch-all", "all"),
                    "trace_bytes": trace_bytes / events,
                }
            )
        )


if __name__ == "__main__":
    main()
