"""Small files that once took quadratic time, or memory far beyond their size.

Each test makes its file itself, so that the code shows why the file is hostile.
"""

import copy
import gzip
import json
import os
import pickle
import struct
import unittest
import zlib

from hostile import BASE, Attacks
from trace_bytes import *


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

    def test_a_folder_of_traces_with_one_process_number_takes_linear_time(self):
        count = 1000
        for i in range(count):
            trace = self.card(pid=77, session=(i + 1, 7)).facts(
                host__boot_id=f"b{i}", host__pid_namespace=str(i)
            )
            data = bytearray(trace.bytes())
            data[48:56] = struct.pack("<Q", count - i)  # its start
            data[72:80] = struct.pack("<Q", 5)  # the start of the process
            data[20:24] = bytes(4)
            data[20:24] = struct.pack("<I", zlib.crc32(bytes(data[:512])))
            (self.folder / f"train.h.77.{i}.ftrace").write_bytes(data)
        for command in (["list"], []):
            self.bounded(*command, self.folder)


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


if __name__ == "__main__":
    unittest.main()
