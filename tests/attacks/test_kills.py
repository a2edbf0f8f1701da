"""Kills recorded programs at any moment and compares their traces with the programs' own logs.

    test_kills.py [KILLS]

programs/killed.c logs each allocation after its call has returned and each free before its call, in memory
that survives the kill. After SIGKILL the trace and its ring must have every allocation of the log, and every
free except the last one of a thread. Only the last allocation of a thread may be missing in the log. With a
size limit old parts are removed: then everything that is live by the log must be there. Prints the counts.
"""

import argparse
import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import test_client

THREADS = 4
LONGEST_S = 0.2
SETTINGS = [
    {},
    {"FRAGTRACE_RING_DIRECTORY": ""},
    {"FRAGTRACE_RING_DIRECTORY": "", "FRAGTRACE_RING_EVENTS": "4096"},
    {"FRAGTRACE_SIZE_LIMIT": "1MiB"},
    {"FRAGTRACE_STACKS": "none"},
]


def wait_for_call(folder, process):
    log = os.open(folder / "log", os.O_RDONLY)
    while not any(os.pread(log, 8, 0)) and process.poll() is None:
        time.sleep(0.0005)
    os.close(log)


def kill_one(folder, settings, after_first_call, after_s):
    """Starts the program, kills it, and returns its log in order."""
    (folder / "traces").mkdir()
    with open(folder / "log", "wb") as log:
        log.truncate(test_client.LOG_HEADER.size + test_client.LOG_ENTRIES * test_client.LOG_ENTRY.size)
    options = argparse.Namespace(
        first=[], then=[], set=[], no_virtual_gpu=False, recorder=[f"{k}={v}" for k, v in settings.items()]
    )
    process = subprocess.Popen(
        [f"{test_client.PROGRAMS}/killed"],
        cwd=folder,
        env=test_client.environment(options, folder, recorded=True),
        stderr=subprocess.PIPE,
    )
    if after_first_call:
        wait_for_call(folder, process)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, f"ended by itself: {process.returncode} {said}"
    return (folder / "log").read_bytes()


def read_ledger(data):
    """(kind, address, bytes) in the order of the log. The last entries may be unfinished."""
    count = test_client.LOG_HEADER.unpack_from(data)[0]
    for i in range(min(count, test_client.LOG_ENTRIES)):
        _, kind, address, size = test_client.LOG_ENTRY.unpack_from(
            data, test_client.LOG_HEADER.size + i * test_client.LOG_ENTRY.size
        )
        if kind in test_client.KINDS and address:
            yield test_client.KINDS[kind], address, size


def check(data, folder, in_parts):
    """Compares a trace with the allocations and frees of the log. Raises AssertionError if one is missing."""
    ledger = list(read_ledger(data))
    logged = collections.Counter(ledger)
    events, losses = collections.Counter(), collections.Counter()
    traces = sorted((folder / "traces").glob("*.ftrace"))
    for trace in traces:
        ended = test_client.read_trace(trace, events, losses)
        assert ended == "killed" or in_parts, f"{trace.name} ended {ended}"
    # A thread that was killed after it took its number and before it wrote its event.
    unfinished = losses.pop("unfinished_in_ring", 0)
    assert not losses and unfinished <= THREADS, f"lost {dict(losses)}, {unfinished} unfinished"
    if in_parts:
        held = {}
        for kind, address, size in ledger:
            if kind == "device_alloc":
                held[address] = size
            else:
                held.pop(address, None)
        missing = [entry for entry in held.items() if ("device_alloc", *entry) not in events]
        assert not missing, f"{len(missing)} held allocations are missing: {missing[:3]}"
        return logged
    missing, more = logged - events, events - logged
    allocations = {entry for entry in missing if entry[0] == "device_alloc"}
    assert not allocations, f"{len(allocations)} allocations are missing of {len(ledger)} calls"
    assert missing.total() <= THREADS, f"{missing.total()} frees are missing"
    assert more.total() <= THREADS, f"{more.total()} events beyond the log"
    return logged


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    seed = int(os.environ.get("KILLS_SEED", "1"))
    chance = random.Random(seed)
    calls, wrong, before_first_call = 0, 0, 0
    for number in range(kills):
        settings = SETTINGS[number % len(SETTINGS)]
        # One in four kills comes anywhere during the start.
        after_first_call = number % 4 != 0
        after_s = chance.uniform(0, LONGEST_S)
        with tempfile.TemporaryDirectory(prefix="fragtrace-kills-") as holder:
            folder = pathlib.Path(holder)
            data = kill_one(folder, settings, after_first_call, after_s)
            try:
                logged = check(data, folder, "FRAGTRACE_SIZE_LIMIT" in settings)
                calls += logged.total()
                before_first_call += not logged
            except AssertionError as failure:
                wrong += 1
                print(f"kill {number} after {after_s:.3f} s, {settings}: {failure}", flush=True)
    print(
        f"{kills} kills (seed {seed}), {before_first_call} of them before the first call; "
        f"{calls:,} calls were logged, {wrong} traces lack one"
    )
    assert calls > 0
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
