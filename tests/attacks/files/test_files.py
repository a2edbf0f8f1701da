"""Hostile files and folders: fraganalyze refuses or reads them within 10 s and 1 GiB.

Each test makes its file itself, so that the code shows why the file is hostile.
"""

import contextlib
import copy
import ctypes
import gzip
import itertools
import json
import os
import pathlib
import pickle
import re
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest

import json_schema
from trace_bytes import *

SOURCE = pathlib.Path(__file__).resolve().parents[3]

ANALYZER = pathlib.Path(os.environ.get("FRAGTRACE_BUILD", "build")).resolve() / "bin/fraganalyze"
MOST_SECONDS = 10
MOST_BYTES = 1 << 30
CARD = 16 << 30
BASE = 0x7F0000000000
READING = (
    ["dump"],
    ["dump", "--facts"],
    ["list"],
    ["summarize"],
    ["check", "--max-ooms", "9"],
    ["replay"],
    ["validate"],
    ["whatif"],
)


class Result:
    def __init__(self, status, out, err, seconds, peak_bytes):
        self.status, self.out, self.err = status, out, err
        self.seconds, self.peak_bytes = seconds, peak_bytes


def run(*command, stdout=None, **options):
    """Runs fraganalyze and measures its memory. Twice the allowed memory is a hard limit."""

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (3 * MOST_BYTES, 3 * MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = subprocess.Popen(
            [ANALYZER, *command],
            stdin=subprocess.DEVNULL,
            stdout=stdout or out,
            stderr=err,
            preexec_fn=limit,
            **options,
        )
        deadline = begin + 3 * MOST_SECONDS
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
                deadline += 60
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        # Wall-clock time, but without the processor time that other programs use.
        seconds = min(time.monotonic() - begin, usage.ru_utime + usage.ru_stime)
        result = Result(process.returncode, out.read(), err.read(), seconds, usage.ru_maxrss << 10)
    json_schema.check_command([ANALYZER, *command], result.status, result.out, options.get("cwd"))
    return result


class Attacks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def bounded(self, *command, statuses=(0, 1, 2), **options):
        with self.subTest(command=" ".join(map(str, command[:1] + command[2:]))):
            result = run(*command, **options)
            note = result.err[-400:]
            self.assertIn(result.status, statuses, note)
            self.assertLess(result.seconds, MOST_SECONDS, note)
            self.assertLess(result.peak_bytes, MOST_BYTES, note)
            self.assertNotIn(b"internal error", result.err)
            if result.status == 2:
                self.assertEqual(result.err.count(b"\n"), 1, result.err[:400])
            return result

    def refused(self, *command, saying=b"", **options):
        result = self.bounded(*command, statuses=(2,), **options)
        if result:
            self.assertIn(saying, result.err)
        return result

    def read_by_all(self, path, *more):
        """Runs every command that reads one file, and the report as text, JSON and page."""
        for command in READING:
            self.bounded(command[0], path, *command[1:], *more)
        report = self.bounded(path, "--json", "-", *more)
        page = self.bounded(path, "--html", self.folder / "page.html", *more)
        if report and page:
            self.assertEqual(page.status, report.status, page.err)  # a readable file can also be drawn
        self.bounded("compare", path, path)

    def card(self, **more):
        return Trace(**more).facts(
            command_line="train", device__0__total_bytes=str(CARD), allocator_backend="native"
        )


class RingsOfOthers(Attacks):
    """Which rings are absorbed into a trace, and for which user."""

    def killed(self, folder=None):
        folder = folder or self.folder
        ring = folder / "t.ring"
        trace = self.card(ring_path=ring)
        trace.events(
            Event(DEVICE_ALLOC, BASE, 2 << 20, flags=FROM_ALLOCATOR), Event(BLOCK_ALLOC, BASE, 512, 512)
        )
        ring.write_bytes(trace.ring([Event(BLOCK_ALLOC, BASE + 512, 500, 512)], tail=2))
        return trace.save(folder / "t.ftrace"), ring

    def assert_untouched(self, path, ring, before):
        self.assertEqual(path.read_bytes(), before)
        self.assertTrue(ring.exists())

    def test_commands_that_only_read_change_nothing_and_show_the_rings_events(self):
        path, ring = self.killed()
        before = path.read_bytes()
        for command in READING:
            self.bounded(command[0], path, *command[1:])
        self.bounded("compare", path, path)
        self.bounded("list", self.folder)
        self.assert_untouched(path, ring, before)
        self.assertIn(b"requested=500", self.bounded("dump", path).out)

    def test_the_report_absorbs_the_ring_of_the_users_own_trace(self):
        path, ring = self.killed()
        before = path.read_bytes()
        self.bounded(path)
        self.assertGreater(len(path.read_bytes()), len(before))
        self.assertFalse(ring.exists())
        self.assertIn(b"requested=500", self.bounded("dump", path).out)

    @unittest.skipUnless(os.geteuid() == 0, "changes owners")
    def test_a_trace_or_ring_of_another_user_is_read_and_not_absorbed(self):
        for number, strangers in enumerate(({"t.ftrace"}, {"t.ring"}, {"t.ftrace", "t.ring"})):
            folder = self.folder / str(number)
            folder.mkdir()
            path, ring = self.killed(folder)
            for name in strangers:
                os.chown(folder / name, 65534, 65534)
            before = path.read_bytes()
            self.bounded(path)
            self.bounded(folder)
            self.assert_untouched(path, ring, before)

    def test_a_trace_that_is_a_symbolic_link_is_read_and_not_absorbed(self):
        path, ring = self.killed()
        before = path.read_bytes()
        link = self.folder / "link.ftrace"
        link.symlink_to(path)
        self.assertIn(b"train", self.bounded(link).out)
        self.assert_untouched(path, ring, before)

    def test_a_ring_in_a_folder_that_others_may_change_is_not_removed(self):
        path, ring = self.killed()
        shared = self.folder / "shared"
        shared.mkdir()
        ring.rename(shared / "t.ring")
        shared.chmod(0o777)
        trace = self.card(ring_path=shared / "t.ring")
        trace.save(path)
        self.bounded(path)
        self.assertTrue((shared / "t.ring").exists())

    def test_a_signal_is_noted_only_in_the_users_own_traces(self):
        path = self.card(pid=4194304).save(self.folder / "a.ftrace")
        before = path.read_bytes()
        link = self.folder / "link.ftrace"
        link.symlink_to(path)
        self.bounded(link, "--killed", "4194304=9")
        self.assertEqual(path.read_bytes(), before)
        for wrong in ("4194304=9@", "4194304=9@x", "4194304=9@1@2", "4194304=9@99999999999999999999"):
            self.bounded(path, "--killed", wrong)
            self.assertEqual(path.read_bytes(), before)
        self.bounded(path, "--killed", "4194304=9@77")
        self.assertGreater(len(path.read_bytes()), len(before))
        self.assertIn(b"end.signal_seen_ns\t77\n", path.read_bytes())


class Settings(Attacks):
    """Numbers in settings, from the command line, a trace or a snapshot."""

    def setUp(self):
        super().setUp()
        self.trace = (
            self.card()
            .events(
                Event(DEVICE_ALLOC, BASE, 2 << 20, flags=FROM_ALLOCATOR), Event(BLOCK_ALLOC, BASE, 512, 512)
            )
            .save(self.folder / "t.ftrace")
        )

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


class Quadratic(Attacks):
    """Small files that need quadratic time if read in a simple way."""

    def test_pool_rewinds_next_to_many_segments_take_linear_time(self):
        trace = self.card().facts(pool__1="pytorch 1,0")
        trace.events(
            *[Event(DEVICE_ALLOC, BASE + i * (2 << 20), 2 << 20, flags=FROM_ALLOCATOR) for i in range(20000)],
            squeezed=True,
        )
        trace.events(
            *[Event(BLOCK_ALLOC, BASE + i * (2 << 20), 512, 512, pool=1) for i in range(20000)], squeezed=True
        )
        trace.events(*[Event(POOL_REWIND, pool=1) for i in range(40000)], squeezed=True)
        self.read_by_all(trace.save(self.folder / "t.ftrace"))

    def test_a_rewind_of_many_pending_blocks_in_one_segment_takes_linear_time(self):
        count = 20000
        trace = self.card().facts(
            pool__1="pytorch 1,0", torch_version="2.15.0", allocator_conf="expandable_segments:True"
        )
        trace.events(Event(ADDRESS_RESERVE, BASE, 1 << 34, flags=FROM_ALLOCATOR))
        for page in range(count // 4096 + 2):
            trace.events(
                Event(PHYSICAL_CREATE, 77 + page, 2 << 20, flags=FROM_ALLOCATOR),
                Event(MAP, BASE + page * (2 << 20), 2 << 20, 77 + page, flags=FROM_ALLOCATOR),
            )
        addresses = [BASE + 512 * i for i in range(count)]
        trace.events(*[Event(BLOCK_ALLOC, at, 512, 512, pool=1) for at in addresses], squeezed=True)
        for i, at in enumerate(addresses):
            addresses[i] = (
                Event(BLOCK_FREE, at, 0, 512, flags=2, pool=1),
                Event(PENDING_EVENT, at, 0, i + 1, stream=7),
                Event(BLOCK_ALLOC, at, UNKNOWN, 512, pool=1),
            )
        trace.events(*[event for free, pending, _ in addresses for event in (free, pending)], squeezed=True)
        trace.events(Event(POOL_REWIND, pool=1), *[again for _, _, again in addresses], squeezed=True)
        self.read_by_all(trace.save(self.folder / "t.ftrace"))

    def test_segments_in_descending_order_take_linear_time(self):
        for step in (1, -1):
            trace = self.card(session=(step + 5, 1))
            trace.events(
                *[
                    Event(DEVICE_ALLOC, BASE + (100000 + step * i) * (2 << 20), 2 << 20, flags=FROM_ALLOCATOR)
                    for i in range(60000)
                ],
                squeezed=True,
            )
            trace.events(Event(BLOCK_ALLOC, BASE + 100000 * (2 << 20), 512, 512))
            self.read_by_all(trace.save(self.folder / f"{step}.ftrace"))

    def test_sixty_thousand_private_pools_are_read_within_bounds(self):
        trace = self.card()
        trace.events(Event(DEVICE_ALLOC, BASE, 1 << 30, flags=FROM_ALLOCATOR))
        trace.events(
            *[Event(BLOCK_ALLOC, BASE + 512 * i, 512, 512, pool=i + 1) for i in range(60000)], squeezed=True
        )
        self.read_by_all(trace.save(self.folder / "t.ftrace"))

    def test_many_pools_of_the_program_are_read_within_bounds(self):
        trace = self.card()
        trace.events(Event(DEVICE_ALLOC, BASE, 1 << 30))
        for kind in (PROGRAM_ALLOC, PROGRAM_FAILED, OUT_OF_MEMORY, PROGRAM_END):
            trace.events(
                *[Event(kind, BASE + 512 * i, 512, 512, pool=i + 1) for i in range(20000)], squeezed=True
            )
        self.read_by_all(trace.save(self.folder / "t.ftrace"))

    def test_pools_of_the_program_that_end_next_to_many_blocks_take_linear_time(self):
        trace = self.card()
        trace.events(Event(DEVICE_ALLOC, BASE, 1 << 30))
        trace.events(
            *[Event(PROGRAM_ALLOC, BASE + 512 * i, 512, 512, pool=1) for i in range(30000)], squeezed=True
        )
        short = [(PROGRAM_ALLOC, 2), (PROGRAM_END, 2), (CHECKPOINT_BEGIN, 0), (PROGRAM_ALLOC, 3)]
        for turns in (short[:2], short[2:]):
            trace.events(
                *[Event(kind, BASE, 512, 512, pool=pool) for _ in range(30000) for kind, pool in turns],
                squeezed=True,
            )
        self.read_by_all(trace.save(self.folder / "t.ftrace"))

    def test_segments_of_a_pool_that_all_overlap_are_read_within_bounds(self):
        trace = self.card()
        places = [BASE + 512 * i for i in range(20000)]
        for kind in (DEVICE_ALLOC, PROGRAM_ALLOC, DEVICE_FREE):
            size = 512 if kind == PROGRAM_ALLOC else 1 << 30
            pool = int(kind == PROGRAM_ALLOC)
            trace.events(*[Event(kind, at, size, 512, pool=pool) for at in places], squeezed=True)
        self.read_by_all(trace.save(self.folder / "t.ftrace"))

    def test_a_snapshot_with_many_pools_is_read_within_bounds(self):
        traces = [
            {
                "action": "alloc",
                "addr": BASE + 512 * i,
                "size": 512,
                "stream": i,
                "time_us": i,
                "pool_id": (i, 1),
                "segment_pool_id": (i, 1),
                "frames": [],
            }
            for i in range(12000)
        ]
        segments = [
            {
                "address": BASE + i * (2 << 20),
                "total_size": 2 << 20,
                "stream": i,
                "device": 0,
                "segment_type": "small",
                "segment_pool_id": (i, 7),
                "blocks": [],
            }
            for i in range(3000)
        ]
        path = self.folder / "t.pickle"
        path.write_bytes(pickle.dumps({"segments": segments, "device_traces": [traces]}, 4))
        self.bounded(path)
        self.bounded("summarize", path)

    def test_modules_that_all_overlap_are_read_within_bounds(self):
        trace = self.card()
        for part in range(8):
            trace.modules(*[(i, 2**40 + i, 0, f"/m{i % 50}", b"") for i in range(20000)])
        first = trace.stack_nodes([(0, 2**39 + i) for i in range(3000)])
        trace.events(
            *[Event(DEVICE_ALLOC, BASE + i * (2 << 20), 2 << 20, native=first + i) for i in range(3000)]
        )
        self.read_by_all(trace.save(self.folder / "t.ftrace"))

    def test_a_stack_as_deep_as_its_table_is_read_within_bounds(self):
        trace = self.card()
        body = varint(1) * 200000 + varint(0) * 200000 + varint(zigzag(16)) * 200000
        trace.squeezed(STACKS, body, 200000, 1)
        trace.events(
            *[Event(DEVICE_ALLOC, BASE + i * (2 << 20), 2 << 20, native=200000 - i) for i in range(5000)],
            squeezed=True,
        )
        self.read_by_all(trace.save(self.folder / "t.ftrace"))


class Amplification(Attacks):
    """Files that expand to thousands of times their size when decompressed or kept."""

    def small(self, trace, name="t.ftrace"):
        path = trace.save(self.folder / name)
        self.assertLess(path.stat().st_size, 1 << 20)
        return path

    def read(self, trace):
        path = self.small(trace)
        for command in (["dump", "--facts"], ["summarize"], ["list"]):
            self.bounded(command[0], path, *command[1:])
        self.bounded(path)

    def test_stack_nodes_that_expand_are_bounded(self):
        trace = self.card()
        count = 20 << 20
        for first in range(1, 8 * count, count):
            trace.squeezed(STACKS, varint(1) * count + varint(0) * count + varint(0) * count, count, first)
        self.read(trace)

    def test_stack_nodes_and_code_with_distant_numbers_are_bounded(self):
        trace = self.card()
        for i in range(1, 200):
            trace.chunk(STACKS, varint(1) + varint(0) + varint(0), 1, i << 20)
            trace.code((i << 20, 1, "f", "f.py"))
        self.read(trace)

    def test_modules_that_expand_are_bounded(self):
        trace = self.card()
        for _ in range(8):
            trace.squeezed(MODULES, (varint(1) * 3 + text("") + text("")) * (2 << 20), 2 << 20)
        self.read(trace)

    def test_facts_that_expand_are_bounded(self):
        trace = self.card()
        for part in range(64):
            trace.squeezed(
                FACTS, b"".join(b"%x\t\n" % i for i in range(part << 14, (part + 1) << 14)), 1 << 14
            )
        for _ in range(64):  # and a known fact, again and again
            trace.squeezed(FACTS, b"host\t" + b"x" * (8 << 20) + b"\n", 1)
        self.read(trace)

    def test_code_that_expands_is_bounded(self):
        trace = self.card()
        for _ in range(4):
            trace.squeezed(
                CODE, b"".join(varint(i) + varint(1) + text("") + text("") for i in range(1 << 17)), 1 << 17
            )
        self.read(trace)

    def test_events_that_expand_are_bounded(self):
        trace = self.card()
        columns = [
            varint(len(c)) + c
            for c in (
                [varint(DEVICE_ALLOC) * 65536, varint(FROM_ALLOCATOR) * 65536]
                + [varint(0) * 65536]
                + [varint(2)] * 0
                + [varint(zigzag(1000)) * 65536]
                + [varint(zigzag(2 << 20)) * 65536, varint((2 << 20) + 1) * 65536]
                + [varint(zigzag(-(2 << 20))) * 65536]
                + [varint(1) * 65536]
                + [varint(0) * 65536] * 3
                + [varint(0) * 65536, varint(1) * 65536, varint(0) * 65536]
            )
        ]
        for number in range(400):
            trace.squeezed(EVENTS, b"".join(columns), 65536, 1 + 65536 * number)
        self.read(trace)

    def test_events_with_times_in_any_order_are_bounded(self):
        times = (3000, 2**63, 7, 5000, 2**64 - 1, 0)
        blocks = [
            Event(BLOCK_ALLOC, BASE + (i << 20), 1 << 20, 1 << 20, time_ns=time_ns)
            for i, time_ns in enumerate(times)
        ]
        for listed in (False, True):
            events = [
                Event(DEVICE_ALLOC, BASE, 20 << 20, flags=FROM_ALLOCATOR, time_ns=6000),
                *map(copy.copy, blocks),
            ]
            if listed:
                events = [Event(CHECKPOINT_BEGIN, time_ns=6000), *events, Event(CHECKPOINT_END, time_ns=6000)]
            path = self.small(self.card().events(*events))
            self.read_by_all(path)
            self.bounded(path, "--html", self.folder / "page.html", statuses=(0,))

    def test_half_a_million_live_blocks_are_read_within_bounds(self):
        count = 65536
        trace = self.card().chunk(99, os.urandom(880_000))
        trace.events(Event(DEVICE_ALLOC, BASE, 512 * 8 * count, flags=FROM_ALLOCATOR))
        for number in range(8):
            first = BASE + 512 * count * number
            columns = [
                bytes([BLOCK_ALLOC]) * count,
                bytes(count),
                bytes(count),
                b"\2" * count,
                varint(zigzag(first)) + varint(zigzag(512)) * (count - 1),
                varint(513) * count,
                *[byte * count for byte in (b"\0", b"\1", b"\0", b"\0", b"\0", b"\0", b"\1", b"\0")],
            ]
            trace.squeezed(EVENTS, b"".join(varint(len(c)) + c for c in columns), count, 2 + count * number)
        path = self.small(trace)
        said = self.bounded(path, statuses=(0,)).out
        self.assertIn(b"524,289 events", said)
        self.bounded("whatif", path, "--no-scan", statuses=(0,))
        self.bounded(path, "--html", self.folder / "page.html", statuses=(0,))

    def test_more_events_than_a_recorder_writes_into_a_small_file_are_not_read(self):
        trace = self.card().chunk(99, os.urandom(880_000))
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20, flags=FROM_ALLOCATOR))
        count = 65536
        pair = bytes((BLOCK_ALLOC, BLOCK_FREE))
        for first in range(2, 56 * count, count):
            columns = [
                pair * (count // 2),
                bytes(count),
                bytes(count),
                b"\2" * count,
                varint(zigzag(BASE)) + bytes(count - 1),
                b"\x33" * count,
                *[byte * count for byte in (b"\0", b"\1", b"\0", b"\0", b"\0", b"\0", b"\1", b"\0")],
            ]
            trace.squeezed(EVENTS, b"".join(varint(len(c)) + c for c in columns), count, first)
        path = self.small(trace)
        said = self.bounded("dump", path, "--facts", statuses=(0,))
        self.assertIn(b"many times the size of the file were left out", said.out + said.err)
        events = json.loads(self.bounded("summarize", path, "--json", "-").out)["events"]
        self.assertEqual(events, 1 + 16 * count)  # one more chunk would exceed 2^20

    def test_a_pickle_with_only_empty_dicts_is_bounded(self):
        for opcode in (b"}", b"]", b"}\x94", b"]\x94"):
            path = self.folder / "t.pickle.gz"
            path.write_bytes(gzip.compress(b"\x80\x04(" + opcode * (200 << 20) + b"l.", 9))
            self.assertLess(path.stat().st_size, 1 << 20)
            self.refused(path)
            self.bounded("list", path)


class Imports(Attacks):
    """Recordings of other tools."""

    RMM = b"Thread,Time,Action,Pointer,Size,Stream\n"

    def rmm(self, lines, name="log.csv"):
        path = self.folder / name
        path.write_bytes(self.RMM + lines)
        return path

    def profile(self, events, name="profile.json"):
        path = self.folder / name
        path.write_text('{"traceEvents":[' + ",".join(events) + "]}")
        return path

    @staticmethod
    def memory(number, size, allocated=0):
        return (
            f'{{"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":{number},"args":'
            f'{{"Addr":{BASE + number * 512},"Bytes":{size},"Device Type":1,"Device Id":0,'
            f'"Total Allocated":{allocated},"Total Reserved":0}}}}'
        )

    def test_a_line_without_an_end_is_refused_at_once(self):
        path = self.folder / "log.csv"
        with path.open("wb") as file:
            file.write(self.RMM)
            file.truncate(1 << 30)
        self.refused(path, saying=b"line 2 is longer than 512 bytes")

    def test_gzip_data_that_expand_are_bounded(self):
        for name, content in (
            ("log.csv.gz", self.RMM + b"1,00:00:00.000000,allocate,0x1000,512,0\n" * (5 << 20)),
            ("profile.json.gz", b'{"traceEvents":[' + b" " * (200 << 20)),
            ("text.json.gz", b'{"traceEvents":["' + b"x" * (200 << 20)),
        ):
            path = self.folder / name
            path.write_bytes(gzip.compress(content, 9))
            self.assertLess(path.stat().st_size, 1 << 20)
            self.refused(path)
            self.bounded("list", path)

    def test_sizes_addresses_and_times_of_any_value_are_read_within_bounds(self):
        huge = (0, 1, 511, (1 << 50) - 1, 1 << 50, (1 << 63) - 1, (1 << 64) - 1)
        lines = [
            b"1,%02d:00:00.000000,%s,0x%x,%d,0\n" % (number % 24, action, address, size)
            for number, address in enumerate(huge)
            for size in huge
            for action in (b"allocate", b"free", b"allocate failure")
        ]
        self.read_by_all(self.rmm(b"".join(lines)))
        events = [self.memory(7, sign * size, size) for size in huge[1:-1] for sign in (1, -1)]
        self.read_by_all(self.profile(events))

    def test_blocks_that_overlap_in_any_way_are_read_within_bounds(self):
        lines = b"".join(
            b"1,00:00:00.000000,allocate,0x%x,%d,0\n" % (BASE + number * 7 % 4096, 1 + number * 13 % 5000)
            for number in range(10000)
        )
        result = self.bounded(self.rmm(lines), "--json", "-")
        self.assertGreater(json.loads(result.out)["devices"][0]["violations"], 9000)

    def test_many_live_blocks_are_read_within_bounds(self):
        lines = b"".join(
            b"1,00:00:00.%06d,allocate,0x%x,512,0\n" % (number, BASE + number * 512)
            for number in range(20000)
        )
        path = self.rmm(lines)
        self.assertLess(path.stat().st_size, 1 << 20)
        self.read_by_all(path)
        self.read_by_all(self.profile(self.memory(number, 512) for number in range(5000)))

    def test_deep_and_unfinished_json_is_refused(self):
        path = self.folder / "deep.json"
        path.write_text('{"traceEvents":' + "[" * 1000000)
        self.refused(path, saying=b"nested too deeply")
        path.write_text('{"traceEvents":[' + self.memory(1, 512))
        self.refused(path, saying=b"not valid JSON")

    def nsight(self, statements, name="export.sqlite"):
        path = self.folder / name
        path.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.executescript(
                "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, address, bytes, memKind, "
                "memoryOperationType);" + statements
            )
        return path

    def test_a_database_opens_and_makes_no_other_file(self):
        path = self.nsight(
            "PRAGMA journal_mode = WAL; INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, 4096, 512, 2, 0);"
        )
        for ending in ("-wal", "-journal"):
            (self.folder / (path.name + ending)).write_bytes(os.urandom(1000))
        before = {one.name: one.read_bytes() for one in self.folder.iterdir()}
        self.read_by_all(path)
        after = {one.name: one.read_bytes() for one in self.folder.iterdir() if one.name in before}
        self.assertEqual(before, after)
        self.assertEqual([one for one in self.folder.iterdir() if one.name.endswith("-shm")], [])

    def test_a_database_with_a_million_definitions_is_bounded(self):
        path = self.nsight("".join(f"CREATE TABLE t{n} (a{'x' * 900});" for n in range(2000)))
        with path.open("r+b") as file:
            file.truncate(8 << 30)
        self.refused(path)

    def test_sizes_of_any_value_in_a_database_are_read_within_bounds(self):
        huge = (0, 1, 511, 1 << 50, (1 << 63) - 1, -1, "'x'", "x'00'", "1e300", "NULL")
        self.read_by_all(
            self.nsight(
                "".join(
                    f"INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES ({time}, {address}, {size}, {kind},"
                    f" {number % 2});"
                    for number, (address, size, kind) in enumerate(itertools.product(huge, huge, range(1, 5)))
                    for time in (number, (1 << 62) - 1)
                )
            )
        )

    def test_messages_that_expand_are_bounded(self):
        begin = b"\x08\x01\x12\x09/host:CPU"
        plane = begin + b"\x22\x16\x08\x01\x12\x12\x12\x10MemoryAllocation"
        names = b"".join(b"\x2a\x0c\x08%b\x12\x06\x12\x04name" % varint(n | 1 << 20) for n in range(1 << 20))
        lines = b"\x1a\x00" * (16 << 20)
        events = b"\x22\x02\x08\x01" * (8 << 20)
        for content in (names, lines, b"\x1a" + varint(len(events)) + events):
            path = self.folder / "many.xplane.pb.gz"
            whole = plane + content
            path.write_bytes(gzip.compress(b"\x0a" + varint(len(whole)) + whole, 9))
            self.refused(path)
        path.write_bytes(gzip.compress(b"\x0a" + varint(len(plane)) + plane + b"\x0a\x00" * (16 << 20), 9))
        self.refused(path)

    def test_a_damaged_import_in_a_folder_gives_one_line(self):
        self.rmm(b"no entry\n")
        self.rmm(b"1,00:00:00.000000,allocate,0x1000,512,0\n", "good.csv")
        (self.folder / "other.csv").write_text("a,b\n1,2\n")
        result = self.refused(self.folder, "--json", "-", saying=b"cannot be read")
        document = json.loads(result.out)
        self.assertEqual([one["file"] for one in document["processes"]], ["good.csv"])
        self.assertEqual([one["file"] for one in document["unreadable"]], ["log.csv"])


class Folders(Attacks):
    def test_each_bad_trace_of_a_folder_gives_one_line(self):
        self.card(pid=11).events(Event(DEVICE_ALLOC, BASE, 2 << 20)).save(self.folder / "good.ftrace")
        (self.folder / "empty.ftrace").write_bytes(b"")
        (self.folder / "text.ftrace").write_bytes(b"hello\x1b[31m\nFAKE")
        (self.folder / "bad\nFAKE\x1b[31m.ftrace").write_bytes(b"FTRACE\r\n" + bytes(600))
        (self.folder / "bad.pickle").write_bytes(b"\x80\x04cos\nsystem\n.")
        (self.folder / "loop.ftrace").symlink_to("loop.ftrace")
        os.mkfifo(self.folder / "pipe.ftrace")
        for command in (["list"], [], ["summarize"]):
            result = run(*command, self.folder)
            self.assertLess(result.seconds, MOST_SECONDS)
            self.assertIn(b"good", result.out if command == ["list"] else result.out + b"good")
            self.assertIn(b" 11", result.out)
            self.assertNotIn(b"\x1b", result.out + result.err)
            self.assertNotIn(b"\nFAKE", result.out + result.err)
            self.assertNotIn(b"internal error", result.out + result.err)


class Escapes(Attacks):
    """Text of a file reaches the terminal as text only."""

    EVIL = "x\x1b[31mRED\x1b]0;title\x07\nFAKE line\r\u202eturned\u2066\u0085\x9b1m"

    def evil_trace(self):
        trace = self.card()
        evil = self.EVIL
        trace.fact_lines(
            {
                "command_line": evil,
                "device.0.name": evil,
                "host": evil,
                "pool.1": evil,
                "text.1": evil,
                "torch_version": evil,
                "allocator_conf": evil,
                "allocator_backend": evil,
                "environment.PYTORCH_CUDA_ALLOC_CONF": evil,
                "executable": evil,
                "stacks.native": evil,
                "stacks.python": evil,
                "torch.pools": evil,
                "torch.captures": evil,
                "ring.storage": evil,
                "copy.reason": evil,
                "options.rejected": evil,
                "key" + evil: evil,
                "device.0.processes.1": evil,
                "cuda_driver_version": evil,
            }
        )
        trace.modules((0x1000, 0x2000, 0, "/lib/" + evil, b"id"))
        trace.code((1, 1, evil, evil))
        native = trace.stack_nodes([(0, 0x1800)])
        python = trace.stack_nodes([(0, 1 << 63 | 1 << 32)])
        trace.events(
            Event(64, size=1),
            Event(SETTINGS, size=1),
            Event(DEVICE_ALLOC, BASE, 20 << 20, flags=FROM_ALLOCATOR, native=native),
            Event(BLOCK_ALLOC, BASE, 5 << 20, 5 << 20, python=python, pool=1),
            Event(DEVICE_ALLOC, BASE + (40 << 20), 20 << 20, native=native),
            Event(55, size=1, extra=2),
            Event(65, size=1),
            Event(OUT_OF_MEMORY, size=40 << 30, extra=0, python=python),
        )
        return trace

    def check(self, *command, **options):
        result = run(*command, **options)
        with self.subTest(command=" ".join(map(repr, command[:1]))):
            for text in (result.out, result.err):
                self.assertNotIn(b"\x1b", text)
                self.assertNotIn(b"\x07", text)
                self.assertNotIn(b"\r", text)
                self.assertNotIn("\u202e".encode(), text)
                self.assertNotIn("\u2066".encode(), text)
                for line in text.split(b"\n"):
                    self.assertFalse(line.startswith(b"FAKE"), line)
                text.decode()
            self.assertNotIn(b"internal error", result.err)

    def test_no_control_character_of_a_trace_or_its_name_is_printed(self):
        path = self.evil_trace().save(self.folder / "evil\x1b[31m\nFAKE \u202e.ftrace")
        for command in READING:
            self.check(command[0], path, *command[1:])
        self.check(path)
        self.check(path, "--summary")
        self.check(self.folder)
        self.check("compare", path, path)
        self.check("summarize", self.folder)
        self.check("replay", path, "--pool", "none")

    def test_errors_quote_names_as_text(self):
        for name in ("no\x1b[31m\nFAKE", "no\u202e"):
            for command in (
                ["dump"],
                ["list"],
                ["check", "--no-oom"],
                ["plan"],
                ["validate"],
                ["explain"],
                [],
            ):
                self.check(*command, self.folder / name)
            self.check(name, name)
            self.check("--" + name)
            self.check("replay", self.folder / "x", "--pool", name)
            self.check("replay", self.folder / "x", "--capacity", name)

    def test_control_characters_in_a_log_are_not_printed_by_explain(self):
        log = self.folder / "log"
        log.write_text(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
            "of 15.00 GiB of which 1.00 GiB is free. " + self.EVIL + "\n"
        )
        self.check("explain", log)


class Outputs(Attacks):
    def setUp(self):
        super().setUp()
        self.trace = (
            self.card()
            .events(
                Event(DEVICE_ALLOC, BASE, 2 << 20, flags=FROM_ALLOCATOR), Event(BLOCK_ALLOC, BASE, 512, 512)
            )
            .save(self.folder / "t.ftrace")
        )

    def test_an_output_that_is_an_input_is_refused(self):
        before = self.trace.read_bytes()
        link = self.folder / "link.json"
        link.symlink_to(self.trace)
        hard = self.folder / "hard.json"
        os.link(self.trace, hard)
        for output in (self.trace, link, hard):
            for command in (
                [self.trace, "--json"],
                [self.trace, "--html"],
                ["whatif", self.trace, "--json"],
                ["summarize", self.trace, "--json"],
                ["replay", self.trace, "--force", "--json"],
                ["check", self.trace, "--no-oom", "--json"],
                ["anonymize", self.trace],
            ):
                self.refused(*command, output, saying=b"this command reads")
        self.assertEqual(self.trace.read_bytes(), before)

    def test_a_foreign_file_is_replaced_only_with_force(self):
        notes = self.folder / "notes.txt"
        notes.write_text("mine")
        self.refused("summarize", self.trace, "--json", notes, saying=b"--force")
        self.assertEqual(notes.read_text(), "mine")
        self.bounded("summarize", self.trace, "--force", "--json", notes, statuses=(0,))
        self.assertIn('"schema"', notes.read_text())
        for output in ("r.json", "p.html"):  # our own files are replaced
            for _ in range(2):
                self.bounded(
                    self.trace,
                    "--json" if output == "r.json" else "--html",
                    self.folder / output,
                    statuses=(0,),
                )

    def test_new_outputs_follow_the_umask_and_old_ones_keep_their_mode(self):
        report = self.folder / "r.json"
        old = os.umask(0o027)
        self.addCleanup(os.umask, old)
        self.bounded("summarize", self.trace, "--json", report, statuses=(0,))
        self.assertEqual(report.stat().st_mode & 0o777, 0o640)
        report.chmod(0o600)
        self.bounded("summarize", self.trace, "--json", report, statuses=(0,))
        self.assertEqual(report.stat().st_mode & 0o777, 0o600)
        sent = self.folder / "sent.ftrace"
        self.bounded("anonymize", self.trace, sent, statuses=(0,))
        self.assertEqual(sent.stat().st_mode & 0o777, 0o600)

    @unittest.skipUnless(os.geteuid() == 0, "changes owners")
    def test_a_link_of_another_user_in_a_shared_folder_is_not_followed(self):
        shared = self.folder / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        victim = self.folder / "victim"
        link = shared / "r.json"
        link.symlink_to(victim)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        self.refused("summarize", self.trace, "--json", link, saying=b"symbolic link")
        victim.write_text('{"schema": 1}')
        self.refused("summarize", self.trace, "--json", link, saying=b"symbolic link")
        self.assertEqual(victim.read_text(), '{"schema": 1}')

    def test_writing_to_a_full_device_is_an_error(self):
        for command in (
            ["dump", self.trace],
            ["--help"],
            ["--version"],
            ["list", self.trace],
            [self.trace],
            ["dump", "--help"],
            ["summarize", self.trace, "--json", "-"],
            ["dump", "--facts", self.trace],
        ):
            with open("/dev/full", "wb") as full:
                self.refused(*command, stdout=full, saying=b"standard output")
        self.refused("summarize", self.trace, "--json", "/dev/full", saying=b"/dev/full")
        self.refused("export", self.trace, "--to", "folded", "-o", "/dev/full", saying=b"/dev/full")

    def test_a_command_that_is_killed_leaves_no_temporary_file(self):
        trace = self.card()
        trace.events(
            *[Event(DEVICE_ALLOC, BASE + i * (2 << 20), 2 << 20, flags=FROM_ALLOCATOR) for i in range(3000)]
        )
        path = trace.save(self.folder / "long.ftrace")
        for number, name in enumerate(("SIGINT", "SIGTERM", "SIGHUP") * 3):
            process = subprocess.Popen(
                [ANALYZER, path, "--json", self.folder / "r.json"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(0.03 * (number % 4))
            process.send_signal(getattr(signal, name))
            process.wait()
            self.assertEqual(list(self.folder.glob("*.tmp")), [])


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
        self.refused("x" * 5000)
        self.refused("x" * 5000, "y" * 5000)
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


class Anonymous(Attacks):
    SECRETS = ("alice", "/home/alice/secret", "gpu-node-17", "model_x", "train_gpt.py", "AKIA", "deadbeef")

    def named(self):
        trace = Trace(pid=4194303)
        trace.fact_lines(
            {
                "command_line": "python /home/alice/secret/train_gpt.py --key AKIA123",
                "executable": "/home/alice/secret/bin/python",
                "host": "gpu-node-17",
                "host.kernel": "6.1 alice",
                "working_directory": "/home/alice/secret",
                "environment.FRAGTRACE_OUTPUT": "/home/alice/secret",
                "environment.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
                "allocator_conf": "max_split_size_mb:64",
                "torch_version": "2.6.0+alice",
                "device.0.total_bytes": str(CARD),
                "device.0.name": "card of alice",
                "device.0.uuid": "GPU-deadbeef",
                "device.0.pci_bus_id": "deadbeef:00",
                "options.rejected": "alice",
                "stacks.native": "off: alice",
                "text.1": "model_x forward",
                "text.2": "model_x forward",
                "text.3": "garbage_collection_threshold:0.5",
                "pool.1": "pytorch 1,0",
                "pool.1.allocator": "/home/alice/secret/pool.so alice",
                "lost.ring_full": "3",
                "end.code": "0",
                "alice": "alice",
                "options.alice": "3",
                "torch.alice": "on /home/alice",
            }
        )
        trace.modules((0x1000, 0x2000, 0, "/home/alice/secret/lib.so", b"deadbeef"))
        trace.code(
            (1, 7, "model_x.forward", "/home/alice/secret/train_gpt.py"),
            (2, 8, "model_x.backward", "/home/alice/secret/train_gpt.py"),
            (3, 9, "alice", "/home/alice/venv/lib/python3.11/site-packages/torch/nn/x.py"),
        )
        native = trace.stack_nodes([(0, 0x1800)])
        python = trace.stack_nodes([(0, 1 << 63 | 1 << 32), (2, 1 << 63 | 2 << 32)])
        trace.events(
            Event(64, size=1, python=python),
            Event(DEVICE_ALLOC, BASE, 20 << 20, flags=FROM_ALLOCATOR, native=native),
            Event(BLOCK_ALLOC, BASE, 5000000, 5 << 20, python=python + 1, pool=1),
            Event(65, size=1),
            Event(SETTINGS, size=3),
            Event(OUT_OF_MEMORY, size=40 << 30, extra=0, python=python),
        )
        return trace.end()

    def raw(self, data):
        """The file with decompressed chunks."""
        library = ctypes.CDLL("libzstd.so.1")
        library.ZSTD_decompress.restype = ctypes.c_size_t
        result, at = data[:512], 512
        while at < len(data):
            _, _, compression, stored, raw = struct.unpack("<IHHII", data[at : at + 16])
            payload = data[at + 32 : at + 32 + stored]
            if compression:
                room = ctypes.create_string_buffer(raw)
                library.ZSTD_decompress(room, ctypes.c_size_t(raw), payload, ctypes.c_size_t(stored))
                payload = room.raw
            result += payload
            at += (32 + stored + 7) // 8 * 8
        return result

    def test_no_name_is_left_and_the_figures_stay(self):
        path = self.named().save(self.folder / "named.ftrace")
        sent = self.folder / "sent.ftrace"
        self.bounded("anonymize", path, sent, statuses=(0,))
        raw = self.raw(sent.read_bytes())
        for secret in self.SECRETS + (str(self.folder),):
            self.assertNotIn(secret.encode(), raw)
        for kept in (
            b"max_split_size_mb:64",
            b"pytorch 1,0",
            b"lost.ring_full",
            b"2.6.0",
            b"garbage_collection_threshold:0.5",
        ):
            self.assertIn(kept, raw)
        before, after = (
            json.loads(run("summarize", file, "--json", "-", "--no-stacks").out) for file in (path, sent)
        )
        self.assertEqual(before["devices"][0]["peak"], after["devices"][0]["peak"])
        columns = [
            [line.split(b" | ")[0] for line in run("dump", file).out.splitlines()] for file in (path, sent)
        ]
        self.assertEqual([line.replace(b"model_x forward", b"text_1") for line in columns[0]], columns[1])
        # Stacks keep their shape: each name has its own number.
        dump = run("dump", sent).out.decode()
        self.assertEqual(dump.count("program_1.py:7 function_1"), 2)
        self.assertIn("program_1.py:8 function_2", dump)

    def test_contents_that_only_the_ring_has_are_anonymized_too(self):
        ring = self.folder / "t.ring"
        trace = self.card(ring_path=ring)
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20))
        ring.write_bytes(
            trace.ring(
                [Event(DEVICE_ALLOC, BASE + (2 << 20), 2 << 20)],
                tail=1,
                facts=b"host\tgpu-node-17\nlost.ring_full\t5\n",
            )
        )
        path = trace.save(self.folder / "t.ftrace")
        before = path.read_bytes()
        sent = self.folder / "sent.ftrace"
        self.bounded("anonymize", path, sent, statuses=(0,))
        self.assertEqual(run("dump", sent).out.count(b"device_alloc"), 2)
        raw = self.raw(sent.read_bytes())
        self.assertNotIn(b"gpu-node-17", raw)
        self.assertIn(b"lost.ring_full\t5", raw)
        self.assertEqual(path.read_bytes(), before)
        self.assertTrue(ring.exists())

    def test_every_kind_of_loss_stays_in_an_anonymous_copy(self):
        page = (SOURCE / "docs" / "trace-format.md").read_text()
        keys = sorted(set(re.findall(r"`((?:lost|held|stacks)\.[a-z_]+|trace\.write_errors)`", page)))
        self.assertGreater(len(keys), 12)
        trace = self.card()
        facts = {key: str(number) for number, key in enumerate(keys, 3)}
        trace.facts(**{key.replace(".", "__"): value for key, value in facts.items()})
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20))
        path, sent = trace.save(self.folder / "t.ftrace"), self.folder / "sent.ftrace"
        self.bounded("anonymize", path, sent, statuses=(0,))
        told = dict(
            line.split("\t")
            for line in run("dump", "--facts", sent).out.decode().splitlines()
            if "\t" in line
        )
        self.assertEqual({key: told.get(key) for key in facts}, facts)

    def test_a_snapshot_and_a_foreign_file_are_refused(self):
        path = self.folder / "s.pickle"
        path.write_bytes(pickle.dumps({"segments": [], "device_traces": []}, 4))
        self.refused("anonymize", path, self.folder / "o", saying=b"snapshot")
        path.write_bytes(b"hello")
        self.refused("anonymize", path, self.folder / "o")


if __name__ == "__main__":
    unittest.main()
