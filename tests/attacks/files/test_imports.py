"""Damaged and hostile recordings of other tools, and folders that contain bad files.

Each test makes its file itself, so that the code shows why the file is hostile.
"""

import contextlib
import gzip
import itertools
import json
import os
import sqlite3
import unittest

from hostile import BASE, MOST_SECONDS, Attacks, run
from trace_bytes import *


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


if __name__ == "__main__":
    unittest.main()
