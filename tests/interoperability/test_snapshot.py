"""Exports to PyTorch's memory snapshots, opened by PyTorch's own tool, by pt-snap-cli and by fraganalyze."""

import collections
import glob
import gzip
import importlib.util
import io
import json
import os
import pathlib
import pickle
import pickletools
import re
import sqlite3
import sys
import unittest

import real_process
from real_process import ANALYZER, BUILD, SOURCE, TORCH_PYTHON, environment

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fragtrace"
SHARED = pathlib.Path(os.environ.get("FRAGTRACE_SHARED_TRACES") or SOURCE.parent / "shared" / "traces")
SNAPSHOTS = sorted((SHARED / "pytorch").glob("*.pickle.gz"))
PT_SNAP = next(iter(sorted(CACHE.glob("pt-snap-cli-*/bin/pt-snap"))), None)
TORCH_CLIENT = pathlib.Path(__file__).with_name("snapshot_client.py")
CUDA_CLIENT = SOURCE / "tests" / "integration" / "json_schema" / "client.py"
CONTROL_CLIENT = SOURCE / "tests" / "integration" / "control" / "client.py"
NO_POOL_CLIENT = BUILD / "tests" / "integration" / "no_pool" / "no_pool_client"
PLAIN = (dict, list, tuple, str, int, float, bool)
# Figures that a snapshot holds: of a device, and of a request that failed or was refused at first.
FIGURES = ("peak", "waste_at_peak", "segments_allocated", "segments_freed", "retries")
REQUEST_FIGURES = ("requested_bytes", "allocated_bytes", "reserved_bytes", "largest_free_bytes", "requester")


def visualizers():
    """torch.cuda._memory_viz of each installed PyTorch, by folder. It needs nothing else of PyTorch."""
    folders = {pathlib.Path(TORCH_PYTHON).parent.parent} if TORCH_PYTHON else set()
    found = {}
    for folder in sorted(folders | set(CACHE.glob("python-torch-*"))):
        for file in glob.glob(f"{folder}/lib/python3*/site-packages/torch/cuda/_memory_viz.py"):
            spec = importlib.util.spec_from_file_location(re.sub(r"\W", "_", folder.name), file)
            found[folder.name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found[folder.name])
    return found


def requests_of(report, moments):
    """Without failed calls that allocate nothing, which a snapshot does not hold."""
    return [one for one in report[moments] if one["verdict"] != "not_judged"]


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"{module}.{name} in the pickle")


def load(path):
    """The snapshot. It must be a pickle of plain types that every reader knows."""
    data = path.read_bytes()
    protocols = [number for code, number, _ in pickletools.genops(data) if code.name == "PROTO"]
    assert protocols == [4], protocols
    snapshot = PlainUnpickler(io.BytesIO(data)).load()
    seen, open_values = set(), [snapshot]
    while open_values:
        one = open_values.pop()
        assert type(one) in PLAIN, type(one)
        if isinstance(one, (dict, list, tuple)) and id(one) not in seen:
            seen.add(id(one))
            open_values += [*one.keys(), *one.values()] if isinstance(one, dict) else one
    return snapshot


def play(entries):
    """Peaks of reserved and requested memory of a history that begins with nothing, checked on the way.

    Each block must lie in a segment, each free must have its block, and each release its segment.
    """
    reserved, blocks, peaks = {}, {}, collections.Counter()
    for entry in entries:
        action, address, size = entry["action"], entry.get("addr"), entry["size"]
        if action in ("segment_alloc", "segment_map"):
            assert address not in reserved, entry
            reserved[address] = size
        elif action == "segment_free":
            assert reserved.pop(address) == size, entry
        elif action == "alloc":
            assert address not in blocks, entry
            blocks[address] = size
        elif action == "free_requested":
            assert blocks[address] == size, entry
        elif action == "free_completed":
            assert blocks.pop(address) == size, entry
        elif action == "segment_unmap":
            continue  # a part of several ranges
        peaks["reserved"] = max(peaks["reserved"], sum(reserved.values()))
        peaks["requested"] = max(peaks["requested"], sum(blocks.values()))
    return peaks, sum(blocks.values())


class Snapshot(real_process.RealProcessTest):
    def export(self, trace):
        path = self.folder / "exported.pickle"
        self.run_well([ANALYZER, "export", trace, "--to", "snapshot", "-o", path, "--force"])
        return path

    def record(self, command, card, **variables):
        env = environment(card, record_to=self.folder, PYTHONPATH=SOURCE / "preload/python", **variables)
        self.run_well(command, env=env)
        return self.only_trace()

    def assert_opens(self, path, report):
        """Opens the file in all tools. Returns its content."""
        snapshot = load(path)
        for name, viz in visualizers().items():
            with self.subTest(name):
                summary = viz.segsum(snapshot)  # checks the sums of each segment
                self.assertIn(f"segments: {len(snapshot['segments'])}\n", summary)
                text = viz.trace(snapshot)
                entries = sum(map(len, snapshot["device_traces"]))
                self.assertEqual(sum(map(int, re.findall(r"(?m)^(\d+) entries$", text))), entries)
                self.assertEqual(text.count("raise OutOfMemoryError"), len(requests_of(report, "ooms")))
                for page in (
                    viz.trace_plot(snapshot),
                    viz.trace_plot(snapshot, plot_segments=True),
                    viz.segment_plot(snapshot),
                ):
                    self.assertIn('"name": "snapshot.pickle"', page)
                held = sum(int(line.rsplit(" ", 1)[1]) for line in viz.memory(snapshot, str).splitlines())
                self.assertEqual(held, sum(segment["total_size"] for segment in snapshot["segments"]))
        return snapshot

    def assert_reads_back(self, path, report):
        back = self.report(path)
        self.assertEqual(len(back["devices"]), len(report["devices"]))
        for then, now in zip(report["devices"], back["devices"], strict=True):
            for figure in FIGURES:
                self.assertEqual(now[figure], then[figure], figure)
            self.assertEqual(now["violations"], 0)
            self.assertEqual(*(self.lines(one["holders_at_peak"]) for one in (now, then)))
        for moments in ("ooms", "retries"):
            before, after = requests_of(report, moments), requests_of(back, moments)
            self.assertEqual(len(after), len(before))
            for then, now in zip(before, after, strict=True):
                for figure in REQUEST_FIGURES:
                    self.assertEqual(now[figure], then[figure], figure)
                self.assertEqual(*(self.lines(one["holders"]["places"]) for one in (now, then)))
        self.assertEqual(back["memory"]["pinned"], report["memory"]["pinned"])
        return back

    @staticmethod
    def lines(rows):
        return [(row["label"], row["bytes"], row["blocks"]) for row in rows]

    def pt_snap(self, path, device=0):
        """The rows of pt-snap's table of entries: (action, allocated, reserved)."""
        if PT_SNAP is None:
            self.skipTest("pt-snap-cli is not installed (scripts/setup --tests)")
        env = environment(HOME=str(self.folder))
        done = self.run_well(
            [PT_SNAP, "import", path, "-o", self.folder / "database", "--no-focus", "--force", "--json"],
            env=env,
        )
        self.assertNotIn("Failed to", done.stdout + done.stderr)
        database = json.loads(done.stdout)["db_path"]
        with sqlite3.connect(database) as connection:
            return connection.execute(
                f"select allocated, active, reserved from trace_entry_{device}"
            ).fetchall()

    # ---- a program without PyTorch ----

    def test_a_program_without_pytorch_keeps_its_figures(self):
        trace = self.record([sys.executable, CUDA_CLIENT, 1000003], "1GiB")
        report = self.report(trace)
        path = self.export(trace)
        snapshot = self.assert_opens(path, report)
        self.assert_reads_back(path, report)
        (entries,) = snapshot["device_traces"]
        peaks, left = play(entries)
        (device,) = report["devices"]
        self.assertEqual(peaks["reserved"], device["peak"]["reserved"])
        self.assertEqual(peaks["requested"], device["peak"]["requested"])
        blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
        self.assertEqual(sum(block["size"] for block in blocks), left)
        self.assertIn(1000003, [block["requested_size"] for block in blocks])
        self.assertEqual(snapshot["allocator_settings"], {})
        names = {frame["name"] for block in blocks for frame in block["frames"]}
        self.assertIn("remember", names)
        # Phases are annotations.
        told = collections.Counter((one["name"], one["stage"]) for one in snapshot["external_annotations"])
        for phase in report["phases"]:
            self.assertEqual(told[phase["name"], "START"], phase["count"])
            self.assertEqual(told[phase["name"], "END"], phase["count"])
        times = [entry["time_us"] for entry in entries]
        self.assertEqual(times, sorted(times))

    def test_pt_snap_reads_a_program_without_pytorch(self):
        trace = self.record([sys.executable, CUDA_CLIENT, 1000003], "1GiB")
        (device,) = self.report(trace)["devices"]
        rows = self.pt_snap(self.export(trace))
        self.assertEqual(max(row[0] for row in rows), device["peak"]["allocated"])
        self.assertEqual(max(row[2] for row in rows), device["peak"]["reserved"])

    def test_memory_without_addresses_is_shown(self):
        trace = self.record([NO_POOL_CLIENT, "created"], "2GiB")
        report = self.report(trace)
        path = self.export(trace)
        snapshot = self.assert_opens(path, report)
        self.assert_reads_back(path, report)
        self.assertTrue(all(segment["address"] >= 2**56 for segment in snapshot["segments"]))

    def test_equal_stacks_are_written_once(self):
        trace = self.record([sys.executable, CUDA_CLIENT, 1000], "1GiB")
        (entries,) = load(self.export(trace))["device_traces"]
        stacks = {}
        for entry in entries:
            text = json.dumps(entry["frames"])
            self.assertEqual(stacks.setdefault(text, id(entry["frames"])), id(entry["frames"]))
        self.assertGreater(len(entries), 3 * len(stacks))

    def test_a_pause_becomes_the_differences_that_it_made(self):
        steps = ("alloc=4194304", "alloc=1000", "stop", "free", "alloc=8192", "start", "alloc=100")
        path = self.export(self.record([sys.executable, CONTROL_CLIENT, *steps], "4GiB"))
        snapshot = load(path)
        (entries,) = snapshot["device_traces"]
        self.assertEqual(
            [(entry["action"], entry["size"]) for entry in entries if entry["action"].startswith("segment")],
            [
                ("segment_alloc", 4194304),
                ("segment_alloc", 1000),
                ("segment_free", 1000),
                ("segment_alloc", 8192),
                ("segment_alloc", 100),
            ],
        )
        play(entries)
        self.assertEqual([one["total_size"] for one in snapshot["segments"]], [4194304, 8192, 100])
        self.assertEqual(self.report(path)["devices"][0]["violations"], 0)

    # ---- PyTorch ----

    def record_torch(self, conf):
        if not TORCH_PYTHON:
            self.skipTest("no PyTorch (FRAGTRACE_PYTHON)")
        return self.record(
            [TORCH_PYTHON, TORCH_CLIENT],
            "1GiB,context=0",
            PYTORCH_CUDA_ALLOC_CONF=conf or "max_split_size_mb:512",
        )

    def check_torch(self, conf):
        trace = self.record_torch(conf)
        report = self.report(trace)
        self.assertEqual((report["devices"][0]["ooms"], report["devices"][0]["retries"]), (1, 1))
        path = self.export(trace)
        snapshot = self.assert_opens(path, report)
        self.assert_reads_back(path, report)
        entries = snapshot["device_traces"][0]
        self.assertTrue({"pool_id"} <= set().union(*entries))
        pending = [
            one
            for one, following in zip(entries, entries[1:])
            if one["action"] == "free_requested" and following["action"] != "free_completed"
        ]
        self.assertGreaterEqual(len(pending), 8)
        self.assertGreater(len({entry["stream"] for entry in entries}), 1)
        return snapshot

    def test_a_pytorch_program_keeps_its_figures(self):
        snapshot = self.check_torch("")
        self.assertEqual(snapshot["allocator_settings"]["max_split_size"], 512 * real_process.MIB)

    def test_expandable_segments_keep_their_figures(self):
        snapshot = self.check_torch("expandable_segments:True")
        self.assertIs(snapshot["allocator_settings"]["expandable_segments"], True)
        maps = [entry for entry in snapshot["device_traces"][0] if entry["action"] == "segment_map"]
        self.assertGreaterEqual(max(entry["size"] for entry in maps), 400 * real_process.MIB)  # many pages

    def test_pt_snap_reads_a_pytorch_program(self):
        for conf in ("", "expandable_segments:True"):
            with self.subTest(conf):
                trace = self.record_torch(conf)
                (device,) = self.report(trace)["devices"]
                rows = self.pt_snap(self.export(trace))
                self.assertEqual(max(row[2] for row in rows), device["peak"]["reserved"])
                trace.unlink()

    # ---- snapshots ----

    def test_snapshots_by_others_come_back_with_equal_figures(self):
        if not SNAPSHOTS:
            self.skipTest(f"snapshots by others: {SHARED / 'pytorch'} is not here")
        for original in SNAPSHOTS:
            with self.subTest(original.name):
                report = self.report(original)
                path = self.export(original)
                snapshot = self.assert_opens(path, report)
                back = self.assert_reads_back(path, report)
                self.assertEqual(back["assumptions"], report["assumptions"])
                self.assertEqual(back["whatif"], report["whatif"])
                with gzip.open(original) as file:
                    first = PlainUnpickler(file).load()
                self.assert_same_items(*(self.history(one) for one in (snapshot, first)))
                self.assert_same_items(
                    *(sorted(map(self.place, one["segments"])) for one in (snapshot, first))
                )

    def assert_same_items(self, now, then):
        """Shows the first difference. The difference of long lists takes minutes."""
        for one, other in zip(now, then):
            self.assertEqual(one, other)
        self.assertEqual(len(now), len(then))

    @staticmethod
    def history(snapshot):
        """All entries but those of dumps, and without the times at which frees completed."""
        entries = []
        for entry in (entry for device in snapshot["device_traces"] for entry in device):
            keys = ("action", "addr", "size", "stream", "time_us")
            if entry["action"] == "free_completed":
                keys = keys[:-1]
            # PyTorch writes an unknown file as "" or "??".
            frames = [
                (frame["name"], frame["filename"] or "??", frame["line"]) for frame in entry.get("frames", [])
            ]
            if entry["action"] != "snapshot":
                entries.append((*(entry.get(key) for key in keys), frames))
        return entries

    @staticmethod
    def place(segment):
        blocks = [(block["size"], block["state"]) for block in segment["blocks"]]
        keys = ("device", "address", "total_size", "stream", "segment_type", "allocated_size", "active_size")
        return *(segment[key] for key in keys), blocks

    def test_a_snapshot_of_nothing_is_refused_or_empty(self):
        empty = self.folder / "empty.pickle"
        empty.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}, protocol=4))
        snapshot = load(self.export(empty))
        self.assertEqual((snapshot["segments"], snapshot["device_traces"]), ([], []))


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    real_process.main()
