"""Counts the instructions that recording adds to a GPT training step, and those of each part.

The step of recording_cost.py runs under callgrind, with and without recording. Other programs on the machine
do not change the counts. It takes some minutes and needs valgrind.

    recording_instructions.py --build build --python .venv/bin/python
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

STEPS = 4
CLIENT = r"""
import os, subprocess, sys
import torch
sys.path.insert(0, sys.argv[1])
import gpt

torch.manual_seed(1)
model = gpt.GPT(12, 768, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
text = torch.randint(1000, (8, 513)).cuda()

def steps(count):
    for _ in range(count):
        loss = model(text[:, :-1], text[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def count_instructions(switch):
    subprocess.run(["callgrind_control", "-i", switch, str(os.getpid())], check=True,
                   stdout=subprocess.DEVNULL,
                   env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})

steps(3)
count_instructions("on")
steps(int(sys.argv[2]))
count_instructions("off")
"""

# The first pattern that matches the name of one of our functions.
PARTS = [
    (
        "writing the file (recorder's thread)",
        (
            r"write_events|write_chunk|flush|drain_main|write_nodes|encode|advance_tail|limit_part|"
            r"LiveTable|update_live_table"
        ),
    ),
    (
        "native stacks",
        r"walk_stack|native_stack|recurring_stack|RecurringStacks|read_unwind|UnwindRules|thread_stack",
    ),
    (
        "Python stacks",
        (
            r"python_stack|python_code|hash_of_code|frame_lasti|line_in_|code_line|append_code|"
            r"::stack_of<|::intern_frame|on_code_freed|StackTable::insert"
        ),
    ),
    ("the event", r"::record\(|monotonic_ns|now_ns|session_for_event|capture_stacks"),
    ("hooks", r""),
]
CALLED = "the program's functions that hooks call"


def instructions(args, folder, recording, stacks):
    """Instructions of all steps, by function and library."""
    out = folder / f"{recording}.{stacks}"
    command = [args.build / "bin/fragtrace", "run", "--virtual-gpu", "80GiB", "-o", folder, "--quiet"]
    command += [] if recording else ["--no-record"]
    demos = pathlib.Path(__file__).resolve().parents[2] / "scripts/demos"
    command += [
        "--",
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        f"--callgrind-out-file={out}",
        args.python,
        "-c",
        CLIENT,
        demos,
        str(STEPS),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "FRAGTRACE_STACKS": stacks}, check=False
    )
    if done.returncode != 0:
        sys.exit(done.stderr[-2000:])
    text = subprocess.run(
        ["callgrind_annotate", "--threshold=100", "--show-percs=no", out],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    counts = collections.Counter()
    for line in text.splitlines():
        match = re.match(r"\s*([\d,]+)\s+\S*?:(.*?)(?: \[(.*)\])?$", line)
        if match:
            library = pathlib.Path(match[3] or "").name
            counts[match[2].strip(), library] += int(match[1].replace(",", ""))
    return counts


def part_of(function, library):
    if library.startswith("libzstd"):
        return PARTS[0][0]
    if not library.startswith("libfragtrace"):
        return CALLED
    return next(name for name, pattern in PARTS if re.search(pattern, function))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--python", default=".venv/bin/python")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        before = instructions(args, pathlib.Path(folder), False, "none")
        after = instructions(args, pathlib.Path(folder), True, "all")
    parts = collections.Counter()
    for key in before.keys() | after.keys():
        parts[part_of(*key)] += after[key] - before[key]
    step = sum(before.values()) / STEPS
    print(f"{step / 1e6:.1f} million instructions a step without recording; added, in thousands:")
    for part, count in parts.most_common():
        print(f"{part:<40} {count / STEPS / 1e3:>7.0f} {count / STEPS / step:>6.1%}")
    print(
        f"{'together':<40} {sum(parts.values()) / STEPS / 1e3:>7.0f} "
        f"{sum(parts.values()) / STEPS / step:>6.1%}"
    )


if __name__ == "__main__":
    main()
