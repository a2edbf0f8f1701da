"""Simulates a job of weeks in minutes: as many events, with a size limit, so that parts are added and
removed.

    test_soak.py [EVENTS]     4 million by default; 100,000,000 took 255 s

Checks the process every second. After the first quarter its memory, descriptors, threads and trace files must
not grow any more. The files never exceed the limit.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import test_client

LIMIT_BYTES = 16 << 20
LIMIT = "16MiB"
MIB = 1 << 20
# After so many events the stand-in runtime gives the same addresses again.
EVENTS_PER_ROUND = 2 * (4 << 30) // (512 * 33 // 2)


def look(pid, traces):
    """The current memory and files. None if the process has ended."""
    try:
        status = dict(
            line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        if "VmRSS" not in status:
            return None
        return {
            "memory": int(status["RssAnon"].split()[0]) << 10,
            "ring": int(status["RssShmem"].split()[0]) << 10,
            "threads": int(status["Threads"]),
            "descriptors": len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())),
            "files": size_of(traces),
        }
    except (OSError, ValueError):
        return None


def size_of(folder):
    total = 0
    for path in folder.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            pass  # an old part that was just removed
    return total


def watch(process, traces, every_s):
    seen = []
    while process.poll() is None:
        now = look(process.pid, traces)
        if now:
            seen.append(now)
        time.sleep(every_s)
    return seen


def check(seen, events, lost):
    """The live table keeps an allocation whose free was lost until its memory comes again: one round of
    addresses. It takes 105 bytes per entry, twice that after it grew, and losses come in bursts."""
    assert len(seen) >= 8, f"only {len(seen)} looks: the run was too short"
    first, rest = seen[: len(seen) // 4], seen[len(seen) // 4 :]
    table = 400 * lost * min(1, EVENTS_PER_ROUND / events)
    for what, slack in (("memory", MIB + table), ("ring", MIB), ("threads", 0), ("descriptors", 1)):
        before, after = max(s[what] for s in first), max(s[what] for s in rest)
        print(f"{what}: {before:,} at most in the first quarter, {after:,} later")
        assert after <= before + slack, f"{what} grows: {before:,}, later {after:,}"
    most = max(s["files"] for s in seen)
    print(f"files: {most:,} bytes at most, {LIMIT_BYTES:,} allowed")
    assert LIMIT_BYTES // 2 < most <= LIMIT_BYTES, f"the files took {most:,} bytes"


def main():
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000
    with tempfile.TemporaryDirectory(prefix="fragtrace-soak-") as holder:
        folder = pathlib.Path(holder)
        traces = folder / "traces"
        traces.mkdir()
        options = argparse.Namespace(
            first=[],
            then=["./libplain_runtime.so"],
            set=[],
            no_virtual_gpu=False,
            recorder=[f"FRAGTRACE_SIZE_LIMIT={LIMIT}", "FRAGTRACE_RING_DIRECTORY="],
        )
        begin = time.monotonic()
        process = subprocess.Popen(
            [f"{test_client.PROGRAMS}/soak", str(events)],
            cwd=folder,
            env=test_client.environment(options, folder, recorded=True),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        seen = watch(process, traces, 1 if events > 100_000_000 else 0.05)
        output, said = process.communicate()
        took_s = time.monotonic() - begin
        assert process.returncode == 0 and output == b"done\n", (process.returncode, output, said)
        facts = {}
        for trace in sorted(traces.glob("*.ftrace")):
            for line in test_client.analyze("dump", "--facts", trace).splitlines():
                key, _, value = line.partition("\t")
                facts[key] = value
        lost = {key: int(value) for key, value in facts.items() if key.startswith("lost.")}
        print(f"{events:,} events in {took_s:.0f} s, lost {lost}, {len(seen)} looks")
        check(seen, events, sum(lost.values()))


if __name__ == "__main__":
    main()
