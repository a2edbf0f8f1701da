"""Tests of the trace format: a reader written only from docs/trace-format.md, and files of each version.

Files of each version stay readable. FRAGTRACE_APPROVE=1 writes the expected output for the files of this
version, never of an earlier one.
"""

import gzip
import os
import pathlib
import re
import shutil
import sys
import time

import real_process
import trace_reader
from real_process import ANALYZER, environment
from trace_reader import COLUMNS, Damaged, Trace

GOLDEN = pathlib.Path(__file__).parent / "golden"
CLIENT = real_process.SOURCE / "tests" / "integration" / "process_life" / "client.py"
CARD = "1GiB,context=0"


def lines_of(trace):
    """The output of the reader as text."""
    yield f"version {trace.version} pid {trace.pid} part {trace.part} end {trace.end}"
    yield from (f"fact {key}\t{value}" for key, value in sorted(trace.facts.items()))
    yield from (f"node {number} {node}" for number, node in enumerate(trace.nodes))
    yield from (f"code {number} {code}" for number, code in sorted(trace.codes.items()))
    yield from (
        f"module {begin:#x} {length} {bias:#x} {path} {build_id.hex()}"
        for begin, length, bias, path, build_id in trace.modules
    )
    for event in trace.events:
        yield " ".join(f"{name}={event[name]}" for name in COLUMNS)


class Format(real_process.RealProcessTest):
    def approved(self, name, text):
        path = GOLDEN / name
        if os.environ.get("FRAGTRACE_APPROVE"):
            path.write_text(text)
        self.assertEqual(text, path.read_text())

    def versions(self):
        found = sorted(GOLDEN.glob("*.ftrace"))
        self.assertEqual(
            [path.name for path in found], ["v1-ended.ftrace", "v1-killed.ftrace", "v1-pools.ftrace"]
        )
        return found

    def golden(self, name):
        """A copy of a trace with its ring, because a report may absorb the ring."""
        shutil.copy(GOLDEN / f"{name}.ftrace", self.folder)
        trace = Trace(self.folder / f"{name}.ftrace")
        packed = GOLDEN / f"{name}.ring.gz"
        if packed.exists():
            ring = self.folder / pathlib.Path(trace.ring_path).name
            ring.write_bytes(gzip.decompress(packed.read_bytes()))
            trace.add_ring(ring)
        return trace, self.folder / f"{name}.ftrace"

    def dumped(self, path):
        """(sequence order, address, bytes) of the allocations in `fraganalyze dump`."""
        text = self.run_well([ANALYZER, "dump", path, "--no-stacks"]).stdout
        return [
            (int(found[1], 16), int(found[2]))
            for found in re.finditer(r" device_alloc address=0x([0-9a-f]+) bytes=(\d+)", text)
        ]

    def assert_same_events(self, trace, path):
        self.assertEqual(
            [(event["address"], event["size"]) for event in trace.events if event["kind"] == 1],
            self.dumped(path),
        )
        text = self.run_well([ANALYZER, "dump", path, "--no-stacks"]).stdout
        self.assertEqual(len(trace.events), text.count("\n"))

    def test_files_of_each_version_are_read_as_approved(self):
        for path in self.versions():
            with self.subTest(path.stem):
                trace, copy = self.golden(path.stem)
                self.approved(f"{path.stem}.reader", "\n".join(lines_of(trace)) + "\n")
                self.approved(
                    f"{path.stem}.dump", self.run_well([ANALYZER, "dump", copy, "--no-stacks"]).stdout
                )
                self.assert_same_events(trace, copy)

    def test_the_reader_is_short_enough_to_be_compared_with_its_page(self):
        text = pathlib.Path(trace_reader.__file__).read_text()
        self.assertLess(len([line for line in text.splitlines() if line.strip()]), 200)

    def test_an_anonymous_copy_equals_the_approved_copy(self):
        trace, copy = self.golden("v1-killed")
        sent = self.folder / "sent"
        self.run_well([ANALYZER, "anonymize", copy, sent])
        self.approved("v1-killed.anonymous", "\n".join(lines_of(Trace(sent))) + "\n")
        self.assertEqual(len(Trace(sent).events), len(trace.events))

    def test_a_baseline_of_each_version_can_be_compared(self):
        for path in self.versions():
            _, copy = self.golden(path.stem)
            baseline = GOLDEN / f"{path.stem}.summary.json"
            if os.environ.get("FRAGTRACE_APPROVE"):
                baseline.write_text(
                    self.run_well(
                        [ANALYZER, "summarize", copy, "--json", "-"], cwd=self.folder
                    ).stdout.replace(str(self.folder), ".")
                )
            self.run_well([ANALYZER, "check", copy, "--baseline", baseline])

    def test_a_new_trace_is_read_by_a_reader_written_from_the_page(self):
        for compression in (0, 3):
            for ending, code in (("return", 0), ("kill", -9)):
                folder = self.folder / f"{compression}-{ending}"
                folder.mkdir()
                self.run_well(
                    [sys.executable, CLIENT, folder / "log", "3000", ending],
                    code,
                    env=environment(CARD, record_to=folder, FRAGTRACE_COMPRESSION=compression),
                )
                path = self.only_trace(folder)
                trace = Trace(path)
                if ending == "kill":
                    trace.add_ring(trace.ring_path)
                    self.assertTrue(0 < trace.alive_ns <= time.monotonic_ns(), trace.alive_ns)
                    self.assertEqual(trace.next_program_ns, 0)
                self.assertEqual(trace.has_trailer, ending == "return")
                self.assertEqual(
                    [event["sequence"] for event in trace.events], list(range(1, len(trace.events) + 1))
                )
                self.assert_same_events(trace, path)
                logged = real_process.read_log(folder / "log")
                self.assertEqual(len([1 for event in trace.events if event["kind"] == 1]), len(logged))
                deepest = max(event["python_stack"] for event in trace.events)
                names = set()
                while deepest:
                    deepest, _, frame = trace.nodes[deepest]
                    names.add(trace.codes[frame >> 32 & 0x3FFFFFFF][0])
                self.assertIn("work", names)

    def test_a_flipped_bit_is_noticed(self):
        for name in ("v1-ended", "v1-killed"):
            data = (GOLDEN / f"{name}.ftrace").read_bytes()
            whole = list(lines_of(Trace(GOLDEN / f"{name}.ftrace")))
            for at in (30, 100, 520, len(data) // 2):
                changed = bytearray(data)
                changed[at] ^= 1
                (self.folder / "changed").write_bytes(changed)
                try:
                    seen = list(lines_of(Trace(self.folder / "changed")))
                except Damaged:
                    continue
                self.assertNotEqual(seen, whole)  # a chunk's magic: the file seems to end there


if __name__ == "__main__":
    real_process.main()
