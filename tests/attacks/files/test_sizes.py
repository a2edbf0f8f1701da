"""Sizes, settings and numbers that no program has: they are refused, or read within bounds.

Each test makes its file itself, so that the code shows why the file is hostile.
"""

import json
import os
import pickle
import shutil
import struct
import subprocess
import unittest

from hostile import ANALYZER, BASE, Attacks, run
from trace_bytes import *


class Settings(Attacks):
    """Numbers in settings, from the command line, a trace or a snapshot."""

    def setUp(self):
        super().setUp()
        self.trace = self.small_trace()

    def test_sizes_beyond_all_memory_are_refused_or_mean_never(self):
        for conf in (
            "large_segment_size_mb:17592186044416",
            "large_segment_size_mb:-1",
            "large_segment_size_mb:18446744073709551615",
        ):
            self.refused("replay", self.trace, "--conf", conf, saying=b"large_segment_size_mb")
        for conf in (
            "max_split_size_mb:17592186044416",
            "max_non_split_rounding_mb:-1",
            "max_split_size_mb:18446744073709551615",
            "roundup_power2_divisions:-1",
            "roundup_power2_divisions:[1:9223372036854775808,>:4]",
            "garbage_collection_threshold:nan",
            "garbage_collection_threshold:1e999",
            "per_process_memory_fraction:nan",
            "per_process_memory_fraction:-1",
            "expandable_segments:True,expandable_segments_reserve:1e300G",
            "expandable_segments:True,expandable_segments_reserve:nan",
            "expandable_segments:True,large_segment_size_mb:1048576",
        ):
            self.bounded("replay", self.trace, "--conf", conf, statuses=(0, 2))

    def test_pools_survive_sizes_of_zero_and_of_petabytes(self):
        self.refused("replay", self.trace, "--pool", "best-fit", "--conf", "grow_by:0", saying=b"grow_by")
        self.refused("replay", self.trace, "--pool", "best-fit", "--conf", "round_to:0", saying=b"round_to")
        for pool, confs in (
            ("best-fit", ("round_to:1PiB,grow_by:1PiB", "grow_by:1e30GiB")),
            (
                "bfc",
                ("preallocate:nan", "limit:0,preallocate:0", "fragmentation_fraction:1e-300", "limit:inf"),
            ),
            (
                "rmm-pool",
                (
                    "initial_pool_size:1PiB",
                    "maximum_pool_size:256",
                    "initial_pool_size:0%",
                    "initial_pool_size:100%",
                ),
            ),
            ("cupy", ("limit:0", "limit:1PiB", "limit:nan%", "limit:101%")),
            ("rmm-arena", ("arena_size:0", "arena_size:1e-300%", "arena_size:1PiB")),
        ):
            for conf in confs:
                self.bounded("replay", self.trace, "--pool", pool, "--conf", conf, statuses=(0, 2))

    def test_invalid_settings_and_fractions_in_a_trace_change_nothing(self):
        nan = struct.unpack("<Q", struct.pack("<d", float("nan")))[0]
        minus = struct.unpack("<Q", struct.pack("<d", -1e300))[0]
        trace = self.card(session=(3, 4))
        trace.facts(
            text__1="large_segment_size_mb:17592186044416",
            allocator_conf="large_segment_size_mb:17592186044416",
        )
        trace.events(
            Event(SETTINGS, size=1),
            Event(MEMORY_FRACTION, size=nan),
            Event(MEMORY_FRACTION, size=minus),
            Event(DEVICE_ALLOC, BASE, 20 << 20, flags=FROM_ALLOCATOR),
            Event(BLOCK_ALLOC, BASE, 5 << 20, 5 << 20),
            Event(BLOCK_FREE, BASE),
        )
        self.read_by_all(trace.save(self.folder / "settings.ftrace"))


class Unbounded(Attacks):
    """Single numbers that cause endless work or use all memory."""

    def test_a_snapshot_with_a_mapping_of_2_to_the_59_bytes_is_bounded(self):
        for size in (2**59, 2**50, 2**40):
            segment = {
                "address": BASE,
                "total_size": size,
                "stream": 0,
                "device": 0,
                "segment_type": "large",
                "is_expandable": True,
                "blocks": [],
            }
            path = self.folder / f"{size}.pickle"
            path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [[]]}, 4))
            self.bounded(path)
            self.bounded("dump", path, "--no-stacks") if size > 2**50 else None

    def test_many_physical_handles_of_one_byte_are_read_within_bounds(self):
        trace = self.card()
        trace.events(
            Event(ADDRESS_RESERVE, BASE, 18 << 30, flags=FROM_ALLOCATOR),
            Event(PHYSICAL_CREATE, 77, 1, flags=FROM_ALLOCATOR),
            Event(MAP, BASE, 8 << 30, 77, flags=FROM_ALLOCATOR),
            Event(PHYSICAL_CREATE, 78, 1, flags=FROM_ALLOCATOR),
            Event(MAP, BASE + (8 << 30), 1, 78, flags=FROM_ALLOCATOR),
            Event(BLOCK_ALLOC, BASE, 1 << 30, 1 << 30),
            Event(OUT_OF_MEMORY, size=12 << 30, extra=0),
        )
        self.read_by_all(trace.save(self.folder / "t.ftrace"))

    def test_memory_at_the_end_of_the_address_space_is_read_within_bounds(self):
        trace = self.card()
        trace.events(
            Event(DEVICE_ALLOC, MASK - 4095, 1 << 40, flags=FROM_ALLOCATOR),
            Event(ADDRESS_RESERVE, MASK - (2 << 20) + 1, 2 << 20, flags=FROM_ALLOCATOR),
            Event(PHYSICAL_CREATE, 5, 2 << 20, flags=FROM_ALLOCATOR),
            Event(MAP, MASK - (2 << 20) + 1, 2 << 20, 5, flags=FROM_ALLOCATOR),
            Event(BLOCK_ALLOC, MASK - (2 << 20) + 1, 512, 512),
            Event(BLOCK_ALLOC, BASE, 2**63, 2**63),
            Event(MEMORY_INFO, 0, MASK, MASK),
            Event(OUT_OF_MEMORY, size=4 << 20, extra=0),
        )
        path = trace.save(self.folder / "t.ftrace")
        self.read_by_all(path)
        self.assertIn(b"events are left out", self.bounded("dump", path).err)

    def test_a_ring_with_the_largest_possible_head_is_read_within_bounds(self):
        for head, tail in ((MASK, 0), (MASK, MASK - 1), (2**62 + 1, 2**62)):
            ring = self.folder / "t.ring"
            trace = self.card(ring_path=ring)
            trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20))
            ring.write_bytes(trace.ring(head=head, tail=tail))
            path = trace.save(self.folder / "t.ftrace")
            self.bounded("dump", path)
            self.bounded("list", path)

    def test_a_ring_file_with_holes_of_gigabytes_is_read_within_bounds(self):
        ring = self.folder / "t.ring"
        trace = self.card(ring_path=ring)
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20))
        data = bytearray(trace.ring(slots=64))
        data[32:36] = struct.pack("<I", 1 << 30)  # slots
        with ring.open("wb") as file:
            file.write(data)
            file.truncate(100 << 30)
        self.bounded("dump", trace.save(self.folder / "t.ftrace"))

    def test_the_tables_of_a_ring_may_not_lie_in_holes(self):
        ring = self.folder / "t.ring"
        trace = self.card(ring_path=ring)
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20))
        data = bytearray(trace.ring(slots=64))
        for capacity, used, most in ((56, 256, 1 << 27), (60, 264, (1 << 32) - 1), (80, 276, (1 << 32) - 1)):
            for at in (capacity, used):  # stack nodes, code, facts
                data[at : at + 4] = struct.pack("<I", most)
        with ring.open("wb") as file:
            file.write(data)
            file.truncate(100 << 30)
        path = trace.save(self.folder / "t.ftrace")
        for command in (["dump"], ["dump", "--facts"], ["list"], ["summarize"]):
            result = self.bounded(*command, path, statuses=(0,))
            if command == ["dump"]:
                self.assertIn(b"is ignored: it is damaged", result.err)

    def test_only_regular_files_with_absolute_paths_are_opened_as_rings(self):
        (self.folder / "sub").mkdir()
        (self.folder / "sub" / "there.ring").write_bytes(b"ring")
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        # Ends as soon as somebody opens the pipe.
        writer = subprocess.Popen(["/bin/sh", "-c", ": >pipe"], cwd=self.folder)
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        for name in (str(pipe), "/dev/ptmx", "sub/there.ring"):
            trace = self.card(ring_path=name).events(Event(DEVICE_ALLOC, BASE, 2 << 20))
            result = self.bounded("dump", trace.save(self.folder / "t.ftrace"), statuses=(0,))
            self.assertNotIn(b"is ignored", result.err)
        self.assertIsNone(writer.poll(), "the pipe was opened")
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        self.assertEqual(writer.wait(timeout=60), 0)

    def test_special_or_damaged_module_files_named_by_a_trace_do_no_harm(self):
        pipe = self.folder / "pipe.so"
        os.mkfifo(pipe)
        evil = self.folder / "evil.so"
        evil.write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\xff" * 4000)
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        trace = self.card()
        trace.modules(
            (0x1000, 0x2000, 0, str(pipe), b""),
            (0x2000, 0x3000, 0, "evil.so", b""),
            (0x3000, 0x4000, 0, str(evil), b""),
            (0x4000, 0x5000, 0, "/dev/zero", b""),
            (0x5000, 0x6000, 0, str(self.folder), b""),
        )
        first = trace.stack_nodes([(0, 0x1000 * k + 0x800) for k in range(1, 6)])
        trace.events(
            *[Event(DEVICE_ALLOC, BASE + k * (2 << 20), 2 << 20, native=first + k) for k in range(5)]
        )
        self.read_by_all(trace.save(self.folder / "t.ftrace"))

    @unittest.skipUnless(os.geteuid() == 0, "changes owners")
    def test_root_opens_no_module_file_of_another_user(self):
        library = self.folder / "library.so"
        shutil.copy(ANALYZER.parents[1] / "lib" / "libfragtrace.so", library)
        symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
        address = int(
            next(line for line in symbols.stdout.splitlines() if line.endswith(" T cudaMalloc")).split()[0],
            16,
        )
        trace = self.card()
        trace.modules((0, 1 << 24, 0, str(library), b""))
        first = trace.stack_nodes([(0, address + 4)])
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20, native=first))
        path = trace.save(self.folder / "t.ftrace")
        for owner, known in ((0, True), (65534, False)):
            os.chown(library, owner, owner)
            seen = self.bounded("dump", path, statuses=(0,)).out
            self.assertEqual(b"cudaMalloc" in seen, known, seen)


class Misuse(Attacks):
    def test_invalid_numbers_and_words_on_the_command_line_are_refused(self):
        trace = self.card().events(Event(DEVICE_ALLOC, BASE, 2 << 20)).save(self.folder / "t.ftrace")
        plan = self.folder / "plan.csv"
        plan.write_bytes(b"id,lower,upper,size,offset\n\xff\xfe,0,2,10,0\n\xff,1,3,10,5\n")
        self.bounded("validate", plan, statuses=(1, 2))
        self.bounded("validate", plan, "--json", "-", statuses=(1, 2))
        baseline = self.folder / "base.json"
        for text in (
            '{"schema":1e999,"devices":[]}',
            '{"schema":1,"devices":[1e999]}',
            '{"schema":1,"devices":[{"index":-1,"peak":{}}]}',
            "[" * 100000,
            '{"schema":1,"devices":[{"index":0,"peak":{"reserved":1e300}}]}',
        ):
            baseline.write_text(text)
            self.refused("check", trace, "--baseline", baseline)
        (self.folder / "loop").symlink_to("loop")
        for name, why in (("x" * 300, b"name too long"), (self.folder / "loop", b"symbolic links")):
            for command in ([], ["list"], ["summarize"], ["dump"]):
                self.refused(*command, name, saying=why)
                self.assertNotIn(b"standard output", self.refused(*command, name).err)
        self.refused("x" * 5000)
        self.refused("x" * 5000, "y" * 5000)
        for command, option in (
            ("whatif", "--capacity"),
            ("whatif", "--context"),
            ("check", "--max-reserved"),
            ("check", "--max-allocated"),
            ("replay", "--request"),
        ):
            self.refused(command, trace, option, "24", saying=b"'24' has no unit; write 24GiB")
        self.refused("top", "1", "--interval", "nan", saying=b"interval")
        self.refused("top", "1", "--interval", "-nan", saying=b"interval")

    def test_a_payload_of_thirteen_columns_is_complete(self):
        trace = self.card()
        count = 300
        columns = [
            varint(DEVICE_ALLOC),
            varint(0),
            varint(0),
            varint(2),
            varint(2),
            varint(9),
            varint(zigzag(-8)),
            varint(1),
            varint(0),
            varint(0),
            varint(0),
            varint(0),
            varint(1),
        ]
        trace.chunk(EVENTS, b"".join(varint(len(c) * count) + c * count for c in columns), count, 1)
        path = trace.save(self.folder / "t.ftrace")
        self.assertEqual(self.bounded("dump", path, "--no-stacks").out.count(b"device_alloc"), count)

    def test_differences_beyond_2_to_the_63_are_handled(self):
        def report(name, value):
            path = self.folder / name
            path.write_text(
                json.dumps(
                    base
                    | {
                        "devices": [
                            device
                            | {
                                "peak": dict.fromkeys(device["peak"], value),
                                "waste_at_peak": dict.fromkeys(device["waste_at_peak"], 0),
                            }
                            for device in base["devices"]
                        ]
                    }
                )
            )
            return path

        trace = (
            self.card()
            .events(
                Event(DEVICE_ALLOC, BASE, 2 << 20, flags=FROM_ALLOCATOR), Event(BLOCK_ALLOC, BASE, 512, 512)
            )
            .save(self.folder / "t.ftrace")
        )
        base = json.loads(run("summarize", trace, "--json", "-").out)
        small, large = report("a.json", 0), report("b.json", MASK)
        for a, b, change in ((small, large, b"+16384 PiB"), (large, small, b"-16384 PiB")):
            self.assertIn(change, self.bounded("compare", a, b, statuses=(0,)).out)
            self.bounded("compare", a, b, "--json", "-", statuses=(0,))


if __name__ == "__main__":
    unittest.main()
