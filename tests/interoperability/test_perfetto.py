"""fraganalyze export --to perfetto, read with the message classes of Perfetto's own package."""

import gzip
import json
import pathlib
import re
import unittest

import perfetto_trace
import real_process
from perfetto_trace import PerfettoTrace
from real_process import ANALYZER, SOURCE, TORCH_PYTHON, environment

CARD = "1GiB,context=0"
PROGRAM = pathlib.Path(__file__).with_name("programs") / "train_in_phases.py"
MODULE = {"PYTHONPATH": SOURCE / "preload" / "python", "PYTHONDONTWRITEBYTECODE": 1}
WITHOUT_POOL = """
import ctypes, fragtrace
cuda = ctypes.CDLL("libcudart.so.13")
def allocate(size):
    place = ctypes.c_void_p()
    return place if cuda.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(size)) == 0 else None
with fragtrace.phase("outer"):
    with fragtrace.phase("inner"):
        first = allocate(300 << 20)
    fragtrace.mark("here")
    cuda.cudaFree(first)
    second = allocate(500 << 20)
    assert allocate(800 << 20) is None
fragtrace.begin("open at the end")
"""
REALTIME, BOOTTIME = 1, 6


class PerfettoTest(real_process.RealProcessTest):
    def setUp(self):
        if perfetto_trace.protos is None:
            self.skipTest(perfetto_trace.MISSING)
        super().setUp()

    def pid(self):
        """As in the trace's name, PROGRAM.PID.ftrace."""
        return int(self.trace.name.split(".")[-2])

    def export(self, trace, *options):
        """The trace in Perfetto's format, and what the command printed on standard error."""
        file = self.folder / "exported.perfetto-trace"
        done = self.run_well([ANALYZER, "export", trace, "--to", "perfetto", "-o", file, "--force", *options])
        exported = PerfettoTrace(file)
        self.assertEqual(exported.problems, [])
        return exported, done.stderr

    def count(self, exported, what):
        (track,) = exported.named(f"GPU 0 {what}")
        self.assertEqual(
            track.descriptor.counter.unit, perfetto_trace.protos.CounterDescriptor.UNIT_SIZE_BYTES
        )
        return track.counts

    def assert_counters_agree(self, exported, report, start):
        """Peaks and the state at each diagnosed failure are those of the report, to the byte."""
        (device,) = report["devices"]
        for what, peak in device["peak"].items():
            counts = self.count(exported, what)
            values = [value for _, value in counts]
            self.assertEqual(max(values), peak, what)
            self.assertTrue(all(a != b for a, b in zip(values, values[1:])), f"{what}: only changes")
        for failure in report["ooms"]:
            time = start + failure["time_ns"]
            for what in ("allocated", "reserved"):
                last = [value for at, value in self.count(exported, what) if at <= time][-1]
                self.assertEqual(last, failure[f"{what}_bytes"], what)

    def assert_failures_agree(self, exported, report, start):
        (track,) = exported.named("GPU 0 out of memory and retries")
        self.assertEqual(len(track.instants), report["devices"][0]["ooms"] + report["devices"][0]["retries"])
        for instant, failure in zip(track.instants, report["ooms"], strict=True):
            self.assertEqual(instant.name, "out of memory")
            self.assertEqual(instant.time, start + failure["time_ns"])
            for key in ("requested_bytes", "free_bytes", "verdict", "event", "device_free_bytes"):
                self.assertEqual(instant.arguments[key], failure[key], key)
            self.assertIn("Out of memory", instant.arguments["in words"])


class Plain(PerfettoTest):
    """A program without a caching pool."""

    def setUp(self):
        super().setUp()
        self.run_well(["/usr/bin/python3", "-c", WITHOUT_POOL], env=environment(CARD, self.folder, **MODULE))
        self.trace = self.only_trace()
        self.document = self.report(self.trace)
        self.exported, _ = self.export(self.trace)

    def test_the_file_has_the_process_its_clocks_and_its_counters(self):
        process = self.exported.process().descriptor.process
        source = self.document["source"]
        self.assertEqual(process.pid, self.pid())
        self.assertEqual(list(process.cmdline), [real_process.with_escapes(source["command_line"])])
        start = source["start_unix_ns"]
        self.assertEqual(self.exported.clocks, {REALTIME: start, BOOTTIME: start})
        defaults = [
            p.trace_packet_defaults for p in self.exported.packets if p.HasField("trace_packet_defaults")
        ]
        self.assertEqual([one.timestamp_clock_id for one in defaults], [REALTIME])
        self.assert_counters_agree(self.exported, self.document, start)
        self.assertEqual(
            [value >> 20 for _, value in self.count(self.exported, "allocated")], [0, 300, 0, 500]
        )
        self.assert_failures_agree(self.exported, self.document, start)

    def test_phases_nest_as_recorded(self):
        thread = self.exported.thread(self.pid())
        self.assertEqual(thread.descriptor.thread.pid, self.pid())
        self.assertEqual(
            [(one.name, one.depth, one.category) for one in thread.slices],
            [("outer", 0, "mark"), ("inner", 1, "mark"), ("open at the end", 0, "mark")],
        )
        outer, inner, still_open = thread.slices
        self.assertTrue(outer.begin <= inner.begin <= inner.end <= outer.end <= still_open.begin)
        self.assertIsNone(still_open.end)
        (mark,) = thread.instants
        self.assertEqual(mark.name, "here")
        self.assertTrue(inner.end <= mark.time <= outer.end)

    def test_a_bad_profile_is_refused_in_one_line_and_writes_nothing(self):
        event = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}
        good = json.dumps({"baseTimeNanoseconds": 1790857026000000000, "traceEvents": [event]})
        bad = {
            "no JSON": b"no JSON at all",
            "cut": good[:-5].encode(),
            "no events": b'{"traceEvents": []}',
            "other JSON": b'{"a": [1, 2]}',
            "no unix times": json.dumps([event]).encode(),
            "cut gzip": gzip.compress(good.encode())[:-12],
            "deep": b"[" * 100000,
            "a long text": b'["' + b"a" * (3 << 20) + b'"]',
            "a long text of escapes": b'["' + b'\\"' * (3 << 20) + b'"]',
            "a long number": b"[" + b"1" * (3 << 20) + b"]",
            "a bomb": gzip.compress(b" " * (100 << 20)),
            "empty": b"",
            "not UTF-8": b'["\xff"]',
        }
        output = self.folder / "none.perfetto-trace"
        for name, content in [*bad.items(), ("missing", None)]:
            with self.subTest(name):
                file = self.folder / "bad.json"
                file.unlink(missing_ok=True)
                if content is not None:
                    file.write_bytes(content)
                done = self.run_well(
                    [ANALYZER, "export", self.trace, "--to", "perfetto", "--with", file, "-o", output], 2
                )
                self.assertRegex(done.stderr, r"\Afraganalyze: .*bad\.json.*\n\Z")
                self.assertFalse(output.exists())

    def test_a_profile_with_kernels_gets_a_track_for_each_stream(self):
        start = self.document["source"]["start_unix_ns"]
        base = start // 10**9 * 10**9
        events = [
            {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python"}},
            {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
            {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
            {"ph": "s", "id": 1, "pid": 0, "tid": 7, "ts": 1, "cat": "ac2g", "name": "ac2g"},
            {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "name": "b\x1b[31m", "ts": 5.002, "dur": 1.001},
            {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "name": "a", "ts": 1.001, "dur": 4.001},
            {"ph": "X", "cat": "gpu_user_annotation", "pid": 0, "tid": 7, "name": "all", "ts": "1", "dur": 6},
            {
                "ph": "X",
                "cat": "gpu_memcpy",
                "pid": 0,
                "tid": 7,
                "name": "over",
                "ts": 6.5,
                "dur": 2,
                "args": {"bytes": 3},
            },
            {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "name": "backwards", "ts": 6.5, "dur": -2},
        ]
        file = self.folder / "kernels.json"
        for packed in (False, True):
            text = json.dumps({"traceEvents": events, "baseTimeNanoseconds": base}).encode()
            file.write_bytes(gzip.compress(text) if packed else text)
            exported, stderr = self.export(self.trace, "--with", file)
            self.assertIn(
                "4 slices on 1 track added; skipped: 1 flows, 1 slices without a readable time", stderr
            )
            tracks = exported.named("stream 7")
            self.assertEqual({tuple(one.path()) for one in tracks}, {("profiler: python GPU 0", "stream 7")})
            self.assertEqual(
                [
                    (one.name, one.category, one.begin - base, one.end - base, one.depth)
                    for one in tracks[0].slices
                ],
                [
                    ("all", "gpu_user_annotation", 1000, 7000, 0),
                    ("a", "kernel", 1001, 5002, 1),
                    ("b\\u001b[31m", "kernel", 5002, 6003, 1),
                ],
            )
            self.assertEqual([(one.name, one.depth) for one in tracks[1].slices], [("over", 0)])

    def test_help_lists_the_options_of_perfetto(self):
        done = self.run_well([ANALYZER, "export", "--help"])
        self.assertRegex(done.stdout, r"perfetto +memory over time")
        for option in ("--blocks", "--with"):
            self.assertIn(option, done.stdout)


@unittest.skipUnless(TORCH_PYTHON, "no interpreter with PyTorch (FRAGTRACE_PYTHON)")
class Torch(PerfettoTest):
    """A training that is profiled, runs out of memory and dumps PyTorch's own snapshot."""

    def setUp(self):
        super().setUp()
        self.run_training([PROGRAM, self.folder], env=environment(CARD, self.folder, **MODULE))
        self.trace = self.only_trace()

    def test_the_file_of_a_training_agrees_with_the_report(self):
        document = self.report(self.trace)
        exported, stderr = self.export(self.trace, "--blocks")
        self.assertEqual(stderr, "")
        start = document["source"]["start_unix_ns"]
        self.assert_counters_agree(exported, document, start)
        self.assert_failures_agree(exported, document, start)
        (failure,) = exported.named("GPU 0 out of memory and retries")[0].instants
        culprit = document["devices"][0]["conclusion"]["culprit"]
        self.assertTrue(culprit.startswith(failure.arguments["line to look at"] + ":"), culprit)
        self.assertIn("train_in_phases.py", failure.arguments["requested by"])
        self.assert_phases(exported, self.pid())
        (steps,) = exported.named("GPU 0 steps, from phases")
        self.assertEqual([one.name for one in steps.slices], [f"step {i}" for i in range(1, 9)])
        self.assert_blocks(exported)

    def assert_phases(self, exported, pid):
        thread = exported.thread(pid)
        expected = []
        for step in range(8):
            expected += [(f"step {step}", 0), ("forward", 1), ("backward", 1)]
        self.assertEqual([(one.name, one.depth) for one in thread.slices], [*expected, ("too large", 0)])
        self.assertEqual([one.name for one in thread.instants], ["stepped"] * 8)

    def assert_blocks(self, exported):
        slices = [one for track in exported.named("GPU 0 blocks") for one in track.slices]
        allocated = re.findall(
            r"block_alloc address=(\S+) requested=(\d+) bytes=(\d+)", "\n".join(self.events(self.trace))
        )
        self.assertGreater(len(slices), 400)
        self.assertEqual(
            sorted(
                (one.arguments["address"], one.arguments["requested_bytes"], one.arguments["bytes"])
                for one in slices
            ),
            sorted((int(address, 16), int(requested), int(size)) for address, requested, size in allocated),
        )
        self.assertTrue(all(one.depth == 0 for one in slices))
        # The blocks that are live at a time add up to the counters.
        changes = []
        for one in slices:
            changes.append((one.begin, one.arguments["bytes"]))
            if one.end is not None:
                changes.append((one.end, -one.arguments["bytes"]))
        for time, active in self.count(exported, "active")[::50]:
            later = [other for other, _ in self.count(exported, "active") if other > time]
            if not later or later[0] != time:
                self.assertEqual(sum(change for at, change in changes if at <= time), active)
        self.assertTrue(any("waited_for_streams_ns" in one.arguments for one in slices))
        holes = [one for one in slices if one.arguments["bytes"] == 9 << 20]
        self.assertEqual(len(holes), 80)
        for one in holes:
            self.assertIn("train_in_phases.py:", one.name)
            self.assertRegex(one.arguments["stack"], r"main.*\(.*train_in_phases\.py:\d+\)")

    def test_the_profile_of_pytorch_has_the_same_clock(self):
        for name in ("profile.json", "profile.json.gz"):
            exported, stderr = self.export(self.trace, "--with", self.folder / name)
            written = json.loads((self.folder / "profile.json").read_text())["traceEvents"]
            expected = sum(one["ph"] == "X" for one in written)
            self.assertIn(f"{name}: {expected:,} slices on", stderr)
            self.assertNotIn("overlap", stderr)
            thread = exported.thread(self.pid())
            profiled = [
                one
                for track in exported.tracks.values()
                if track.parent is thread and track.name.startswith("profiler: ")
                for one in track.slices
                if one.name == "profiled step"
            ]
            steps = [one for one in thread.slices if one.name.startswith("step ")]
            self.assertEqual(len(profiled), 8)
            # The profiler's range lies directly inside the phase.
            for outer, inner in zip(steps, profiled, strict=True):
                self.assertLess(abs(inner.begin - outer.begin), 2e6)
                self.assertLess(abs(inner.end - outer.end), 2e6)

    def test_the_file_of_a_snapshot_agrees_with_the_report(self):
        snapshot = self.folder / "snapshot.pickle"
        document = self.report(snapshot)
        exported, _ = self.export(snapshot, "--blocks")
        start = document["source"]["start_unix_ns"]
        self.assertEqual(exported.clocks[REALTIME], start)
        self.assert_counters_agree(exported, document, start)
        self.assert_failures_agree(exported, document, start)
        self.assertEqual(exported.named("snapshot.pickle")[0].path(), ["snapshot.pickle"])


if __name__ == "__main__":
    real_process.main()
