"""Random jobs of eight ranks in which one runs out of memory, and what the view must say about each.

test_failed_jobs.py runs two of them, scripts/job-trials any number.
"""

import json
import random
import re

from real_process import ANALYZER, TORCH_PYTHON, environment, run, traces
from torch_jobs import PROGRAMS, torchrun

PROGRAM = PROGRAMS / "failing_ranks.py"
SOURCE = PROGRAM.read_text(encoding="utf-8").splitlines()
RANKS = 8
CONTEXT_MIB = 64
KINDS = ("leak", "batch", "fragmentation")
ENDS = ("raise", "raise", "abort", "exit", "kill", "hang", "normal")
LAUNCHERS = ("term", "kill", "wait", "wait", "torchrun")


def place(function):
    """How reports name the line of the program that allocates in this function, as a regular expression."""
    start = next(i for i, line in enumerate(SOURCE) if line.startswith(f"def {function}("))
    number = 1 + next(i for i in range(start, len(SOURCE)) if "torch.empty(" in SOURCE[i])
    return rf"programs/failing_ranks\.py:{number} {function}"


def plan_of(seed):
    choose = random.Random(seed)
    rank = choose.randrange(RANKS)
    kind = choose.choice(KINDS)
    card = choose.randrange(700, 2000)
    room = card - CONTEXT_MIB
    steps = choose.randrange(5, 12)
    step = choose.randrange(1, steps)
    others = [other for other in range(RANKS) if other != rank]
    blocks = 2 * int(0.8 * room / 20)
    plan = {
        "seed": seed,
        "ranks": RANKS,
        "rank": rank,
        "kind": kind,
        "card_mib": card,
        "width": choose.choice((768, 1024, 1280)),
        "batch": choose.choice((4, 16, 64)),
        "steps": steps,
        "step": step,
        "held_mib": room / (step + 0.5),
        "blocks": blocks,
        # The request of a batch misses its room by a little, so the rank's own parameters decide. That of
        # fragmentation is larger than the unreserved rest, and smaller than all that is free.
        "request_mib": 0.4 * room if kind == "fragmentation" else room - 12,
        "ends": choose.choice(ENDS),
        "launcher": choose.choice(LAUNCHERS),
        "stop_after_s": choose.choice((0, 0, 0.5)),
        "delays": [round(choose.random() * choose.choice((0, 0.5)), 2) for _ in range(RANKS)],
        "larger": choose.sample(others, choose.choice((0, 0, 1, 3))),
        "larger_mib": int(0.5 * room),
        "caught": [
            [other, choose.randrange(step + 1)] for other in choose.sample(others, choose.choice((0, 0, 1)))
        ],
        "saves": choose.sample(others, choose.choice((0, 0, 2))),
    }
    plan["timeout_s"] = 15 if plan["ends"] == "hang" else 60
    return plan


def told(plan):
    """Regular expressions for the first three lines of the view: rank and request, verdict, culprit."""
    request = "leak" if plan["kind"] == "leak" else "large_batch"
    at = place(request)
    # Another rank may have caught one in an earlier step.
    what = (
        "(ran out of memory first|failed first: out of memory)"
        if plan["caught"]
        else "ran out of memory first"
    )
    first = rf"^rank {plan['rank']} of {RANKS} {what}, .* after the job began, at {at}$"
    if plan["kind"] == "fragmentation":
        return first, "^  verdict    Out of memory despite free memory: ", place("scatter")
    return first, "^  verdict    Out of memory: ", at


def run_job(plan, folder):
    """Runs the job and records its ranks into the folder. Returns its output."""
    env = environment(
        f"{plan['card_mib']}MiB,count={RANKS},context={CONTEXT_MIB}MiB",
        folder,
        OMP_NUM_THREADS=1,
        TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC=100,
    )
    command = [PROGRAM, json.dumps(plan)]
    if plan["launcher"] == "torchrun":
        return run(torchrun(RANKS, *command), env=env, timeout=300)
    return run([TORCH_PYTHON, *command], env=env, timeout=300)


def wrong_lines(plan, folder):
    """What the view says that did not happen, one line each."""
    file = folder / "job.json"
    lines = [*run([ANALYZER, folder, "--json", file]).stdout.splitlines(), "", "", ""]
    wrong = [line for line, expected in zip(lines, told(plan)) if not re.search(expected, line)]
    cause = (json.loads(file.read_text(encoding="utf-8"))["first_failure"] or {}).get("cause") or {}
    verdicts = ("stitchable", "compaction_only") if plan["kind"] == "fragmentation" else ("genuine",)
    return wrong if cause.get("verdict") in verdicts else [*wrong, f"verdict {cause.get('verdict')}"]


def trial(seed, folder):
    """Runs the job of this seed. Returns what is wrong, one line each, and the output of the job."""
    plan = plan_of(seed)
    done = run_job(plan, folder)
    found = traces(folder)
    if done.returncode != 1 or len(found) != RANKS:
        return [f"exit code {done.returncode}, {len(found)} traces"], done.stdout + done.stderr
    return wrong_lines(plan, folder), done.stdout + done.stderr
