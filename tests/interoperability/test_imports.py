"""Recordings of other tools, made by the tools themselves, as inputs of fraganalyze.

A profile comes from the real profiler of PyTorch on the virtual GPU. Its kernels are not profiled there,
because CUPTI needs a real driver. The caching allocator reports its blocks as on a real card. The same run is
recorded by fragtrace, which says what the import must show. An RMM log is written line by line as in RMM's
source. A database of Nsight Systems has the tables of its SQLite Schema Reference.
"""

import contextlib
import gzip
import json
import pathlib
import shutil
import sqlite3
import unittest

import real_process
from real_process import ANALYZER, TORCH_PYTHON, environment

PROGRAM = pathlib.Path(__file__).with_name("programs") / "profiled.py"
CARD = 16 << 30


def rmm_log(requests):
    """RMM's lines: "%t,%H:%M:%S.%f,%v" of spdlog, and "allocate,%p,%zu,%s" and the like."""
    lines = ["Thread,Time,Action,Pointer,Size,Stream"]
    for number, (action, address, size) in enumerate(requests):
        seconds, micros = divmod(number * 250_000, 1_000_000)
        pointer = hex(address) if address else "(nil)"
        lines.append(f"4711,13:{seconds // 60:02}:{seconds % 60:02}.{micros:06},{action},{pointer},{size},0")
    return "\n".join(lines) + "\n"


class ImportTest(real_process.RealProcessTest):
    def json_of(self, *command):
        return json.loads(self.run_well([ANALYZER, *command, "--json", "-"]).stdout)


@unittest.skipIf(not TORCH_PYTHON, "no PyTorch: configure with -DFRAGTRACE_PYTHON")
class Profile(ImportTest):
    def setUp(self):
        super().setUp()
        self.profile = self.folder / "profile.json"
        env = environment("16GiB", record_to=self.folder)
        told = self.run_training([PROGRAM, self.profile], env=env).stdout
        self.allocated, self.reserved = map(int, told.split())

    def test_a_profile_shows_the_peaks_of_pytorch_and_the_holders_of_a_trace(self):
        imported = self.json_of(self.profile)
        recorded = self.json_of(self.only_trace(self.folder))
        self.assertEqual(imported["source"]["import"]["format"], "PyTorch profile")
        (device,) = imported["devices"]
        self.assertEqual(device["name"], recorded["devices"][0]["name"])
        self.assertEqual(device["peak"]["allocated"], self.allocated)
        self.assertEqual(device["peak"]["allocated"], recorded["devices"][0]["peak"]["allocated"])
        self.assertEqual(device["peak"]["reserved"], self.reserved)
        self.assertIsNone(device["peak"]["requested"])
        self.assertIsNone(device["waste_at_peak"]["inactive_split"])
        self.assertEqual([oom["requested_bytes"] for oom in imported["ooms"]], [1 << 47])
        self.assertIn(("training step", 4), [(phase["name"], phase["count"]) for phase in imported["phases"]])
        holders = {(row["label"], row["category"]) for row in device["holders"]["places"]}
        self.assertIn(("profiled.py:13 model", "parameters"), holders)
        self.assertIn(("profiled.py:20 train", "optimizer_state"), holders)
        # The replay of the blocks under default settings reserves what the run reserved: the sizes
        # of blocks are those of requests, and all are on one stream.
        (default,) = (row for row in imported["whatif"] if row["name"] == "default settings")
        self.assertEqual(default["peak_reserved_bytes"], self.reserved)
        self.assertEqual(default["class"], "estimate")

    def test_every_command_reads_a_profile_plain_and_gzipped(self):
        packed = self.folder / "packed.json.gz"
        with self.profile.open("rb") as plain, gzip.open(packed, "wb") as file:
            shutil.copyfileobj(plain, file)
        for command in (["summarize"], ["whatif", "--no-scan"], ["replay"], ["validate"], ["list"], []):
            texts = [
                json.dumps(self.json_of(*command[:1], path, *command[1:])).replace(str(path), "X")
                for path in (self.profile, packed)
            ]
            self.assertEqual(*texts)
        for profile in (self.profile, packed):
            text = self.run_well([ANALYZER, "compare", profile, self.only_trace(self.folder)]).stdout
            self.assertIn("The reserved memory of A is unknown.", text)


class RmmLog(ImportTest):
    def setUp(self):
        super().setUp()
        base = 0x7F3C00000000
        requests = [("allocate", base + number * (1 << 22), 3_000_000 + number) for number in range(16)]
        requests += [("free", address, size) for _, address, size in requests[::2]]
        requests += [("allocate failure", 0, 1 << 33), ("allocate", base, 2_000_000)]
        self.log = self.folder / "rmm_log.dev1.csv"
        self.log.write_text(rmm_log(requests))

    def test_every_command_reads_an_rmm_log(self):
        report = self.json_of(self.log)
        (device,) = report["devices"]
        self.assertEqual(device["index"], 1)
        self.assertEqual(device["peak"]["allocated"], sum(3_000_000 + number for number in range(16)))
        self.assertEqual(device["ooms"], 1)
        self.assertIsNone(device["peak"]["reserved"])
        for pool in ("pytorch", "rmm-pool", "rmm-arena", "bfc", "none"):
            replay = self.json_of("replay", self.log, "--device", "1", "--pool", pool, "--capacity", "4GiB")
            self.assertEqual(replay["class"], "estimate")
            self.assertGreaterEqual(replay["devices"][0]["peak"]["reserved"], 48_000_000)
            check = self.json_of("validate", self.log, "--device", "1", "--pool", pool, "--capacity", "4GiB")
            self.assertEqual(check["violation"], "")
        (listed,) = self.json_of("list", self.folder)["traces"]
        self.assertEqual(listed["import"], "RMM log")
        self.assertEqual(self.json_of("summarize", self.log)["devices"][0]["ooms"], 1)
        self.assertIsNone(self.json_of(self.log, self.log)["processes"][0]["peak_reserved_bytes"])

    def test_limits_on_unknown_figures_fail_and_those_on_known_ones_are_checked(self):
        self.run_well([ANALYZER, "check", self.log, "--max-allocated", "64MiB"])
        for limit in (["--max-reserved", "1TiB"], ["--max-waste", "99%"], ["--no-retries"]):
            result = self.run_well([ANALYZER, "check", self.log, *limit], 1)
            self.assertIn("does not show reserved memory", result.stdout + result.stderr)

    def test_a_request_at_the_end_needs_the_size_of_the_card(self):
        result = self.run_well([ANALYZER, "replay", self.log, "--device", "1", "--request", "1GiB"], 2)
        self.assertIn("--request needs --capacity", result.stderr)

    def test_exports_leave_out_what_is_unknown(self):
        for kind in ("sqlite", "perfetto", "csv", "speedscope", "folded"):
            self.run_well([ANALYZER, "export", self.log, "--to", kind, "-o", self.folder / f"out.{kind}"])
        with sqlite3.connect(self.folder / "out.sqlite") as database:
            self.assertEqual(database.execute("SELECT count(*) FROM segments").fetchall(), [(0,)])
            self.assertEqual(
                database.execute("SELECT peak_reserved_bytes, retries, ooms FROM devices").fetchall(),
                [(None, None, 1)],
            )
        result = self.run_well(
            [ANALYZER, "export", self.log, "--to", "snapshot", "-o", self.folder / "out.pickle"], 2
        )
        self.assertIn("does not show the segments", result.stderr)


# As `nsys export --type sqlite` makes them.
NSIGHT_TABLES = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
    (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'),
    (4, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed');
CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES (0, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', 'Allocation'),
    (1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION', 'Deallocation');
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL,
    bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, name TEXT,
    correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER,
    localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER,
    localMemoryPoolUtilizedSize INTEGER, importedMemoryPoolAddress INTEGER,
    importedMemoryPoolProcessId INTEGER);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1764000000000000000, '', '');
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H100 80GB HBM3', 85899345920);
"""


class NsightSystems(ImportTest):
    def setUp(self):
        super().setUp()
        self.export = self.folder / "report1.sqlite"
        process = 0x1000000 * 4711
        rows = [(number * 1000, 0x7F0000000000 + (number << 25), 20 << 20, 2, 0) for number in range(16)]
        rows += [(20_000 + row[0], *row[1:4], 1) for row in rows[::2]]
        rows.append((50_000, 0x7E0000000000, 1 << 20, 1, 0))
        with contextlib.closing(sqlite3.connect(self.export)) as database, database:
            database.executescript(NSIGHT_TABLES)
            database.executemany(
                "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, contextId, address,"
                f" pc, bytes, memKind, memoryOperationType) VALUES (?, {process}, 0, 1, ?, 0, ?, ?, ?)",
                rows,
            )

    def test_every_command_reads_an_export_of_nsight_systems(self):
        before = sorted(one.name for one in self.folder.iterdir())
        report = self.json_of(self.export)
        self.assertEqual(report["source"]["import"]["format"], "Nsight Systems export")
        self.assertEqual(report["source"]["start_unix_ns"], 1764000000000000000)
        (device,) = report["devices"]
        self.assertEqual(device["name"], "NVIDIA H100 80GB HBM3")
        self.assertEqual(device["peak"]["allocated"], 16 * (20 << 20))
        self.assertIsNone(device["peak"]["reserved"])
        self.assertIsNone(device["waste_at_peak"]["inactive_split"])
        self.assertEqual(report["memory"], None)
        replay = self.json_of("replay", self.export, "--pool", "none", "--capacity", "4GiB")
        self.assertEqual(replay["devices"][0]["peak"]["reserved"], 16 * (20 << 20))
        for command in (["summarize"], ["whatif", "--no-scan"], ["validate"], ["list"]):
            self.run_well([ANALYZER, *command[:1], self.export, *command[1:]])
        self.run_well([ANALYZER, "check", self.export, "--max-allocated", "320MiB"])
        self.run_well([ANALYZER, "check", self.export, "--no-oom"], 1)
        (listed,) = self.json_of("list", self.folder)["traces"]
        self.assertEqual(listed["import"], "Nsight Systems export")
        self.assertEqual(sorted(one.name for one in self.folder.iterdir()), before)


if __name__ == "__main__":
    real_process.main()
