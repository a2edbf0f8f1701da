"""The format `sqlite`, opened with Python's sqlite3 module and with the sqlite3 command.

Runs every query of docs/sqlite.md as it is printed there, and compares answers with the report's JSON.
"""

import pathlib
import pickle
import re
import resource
import shutil
import sqlite3
import sys
import unittest

import real_process
from real_process import ANALYZER, DEMOS, MIB, SOURCE, TORCH_PYTHON, environment, with_escapes

ADDRESS = 0x7F0000000000
PAGE = (SOURCE / "docs" / "sqlite.md").read_text(encoding="utf-8")
STEPS_CLIENT = SOURCE / "tests" / "integration" / "json_schema" / "client.py"
SNAPSHOT_PROGRAM = SOURCE / "tests" / "frameworks" / "programs" / "snapshot.py"
STREAMS = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
streams = [ctypes.c_void_p() for _ in range(2)]
for stream in streams:
    assert cuda.cudaStreamCreate(ctypes.byref(stream)) == 0
for size in (1 << 20, 3 << 20):
    address = ctypes.c_void_p()
    assert cuda.cudaMallocAsync(ctypes.byref(address), ctypes.c_size_t(size), streams[0]) == 0
    assert cuda.cudaFreeAsync(address, streams[1]) == 0
"""


HUGE = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
address = ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t((1 << 63) + 4096)) != 0
"""


def queries():
    """(the sentence before it, its statements) of each query of the page."""
    found = []
    for text, block in re.findall(r"([^\n]*)\n\n```sql\n(.*?)```", PAGE, re.DOTALL):
        statements, statement = [], ""
        for line in block.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                statements.append(statement)
                statement = ""
        if statement.strip():
            raise AssertionError(f"this query of the page has no end: {statement}")
        found.append((text, statements))
    return found


def documented_columns():
    """Table or view -> its columns, from the tables of the page."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (`.*`|the same) \|$", PAGE, re.MULTILINE)
    columns = {name: re.findall(r"`(\w+)`", text) for name, text in rows}
    columns["largest_blocks"] = columns["live_blocks"]
    return columns


def made_up_snapshot(address, stream, name):
    """A snapshot with one block of this stream at this address, allocated by a function of this name."""
    frames = [{"filename": "train.py", "name": name, "line": 7}]
    block = {"address": address, "size": MIB, "requested_size": MIB - 512, "state": "active_allocated"}
    return pickle.dumps(
        {
            "segments": [
                {
                    "device": 0,
                    "address": address,
                    "total_size": 2 * MIB,
                    "stream": stream,
                    "segment_type": "small",
                    "allocated_size": MIB,
                    "active_size": MIB,
                    "requested_size": MIB - 512,
                    "segment_pool_id": (0, 0),
                    "is_expandable": False,
                    "frames": [],
                    "blocks": [
                        block | {"frames": frames},
                        {
                            "address": address + MIB,
                            "size": MIB,
                            "requested_size": 0,
                            "state": "inactive",
                            "frames": [],
                        },
                    ],
                }
            ],
            "device_traces": [],
        }
    )


class Sqlite(real_process.RealProcessTest):
    def export(self, trace, *arguments):
        file = self.folder / f"{pathlib.Path(trace).stem}.db"
        self.run_well([ANALYZER, "export", trace, "--to", "sqlite", "-o", file, "--force", *arguments])
        database = sqlite3.connect(file)
        self.addCleanup(database.close)
        self.file = file
        return database

    def one(self, database, query, *values):
        """The only row of the answer."""
        (row,) = database.execute(query, values).fetchall()
        return row

    def answer(self, database, words):
        """The answer to the query of the page whose sentence has these words."""
        (statements,) = (statements for text, statements in queries() if words in text)
        for statement in statements:
            rows = database.execute(statement).fetchall()
        return rows

    def run_queries(self, database):
        """Runs each query of the page. The moment is as before afterwards."""
        self.assertGreaterEqual(len(queries()), 20)
        moment = self.one(database, "SELECT event FROM moment")
        with_rows = set()
        for text, statements in queries():
            for statement in statements:
                with self.subTest(text):
                    if database.execute(statement).fetchall():
                        with_rows.add(text)
        database.execute("UPDATE moment SET event = ?", moment)
        database.commit()
        return with_rows

    def check(self, trace, database):
        """Compares everything that the report's JSON has, too."""
        report = self.report(trace)
        self.assertEqual(self.one(database, "PRAGMA integrity_check"), ("ok",))
        self.assertEqual(self.one(database, "PRAGMA user_version"), (1,))
        self.assertEqual(self.one(database, "PRAGMA application_id"), (0x46546462,))
        meta = dict(database.execute("SELECT key, value FROM meta"))
        self.assertEqual(meta["events"], report["source"]["events"])
        self.assertEqual(meta["ended"], report["source"]["ended"])
        self.assertEqual(self.one(database, "SELECT count(*) FROM events")[0], report["source"]["events"])
        # `arguments` has line ends.
        facts = {key: with_escapes(value) for key, value in report["facts"].items()}
        self.assertEqual(dict(database.execute("SELECT key, value FROM facts")), facts)
        for device in report["devices"]:
            self.check_device(database, device)
        self.check_failures(database, report)
        self.assertEqual(
            database.execute(
                "SELECT name, count(*), sum(end_ns - start_ns) FROM phases GROUP BY name, kind ORDER BY name"
            ).fetchall(),
            sorted((phase["name"], phase["count"], phase["time_ns"]) for phase in report["phases"]),
        )
        calls = self.answer(database, "calls to the driver")
        self.assertEqual(
            sorted(call for call in calls if call[0] != "memory_info"),  # a question, not in the report
            sorted(
                (call["kind"], call["count"], call["total_ns"], call["max_ns"])
                for call in report["driver_calls"]
                if call["total_ns"]
            ),
        )
        return report

    def check_device(self, database, device):
        row = self.one(
            database,
            "SELECT peak_requested_bytes, peak_allocated_bytes, peak_active_bytes, peak_reserved_bytes,"
            " retries, ooms, segments_allocated, segments_freed FROM devices WHERE device = ?",
            device["index"],
        )
        peak = device["peak"]
        self.assertEqual(
            row,
            (*peak.values(), device["retries"], device["ooms"])
            + (device["segments_allocated"], device["segments_freed"]),
        )
        # The sums of the lives have the same peaks.
        self.assertEqual(
            self.one(
                database,
                "SELECT max(allocated_bytes), max(active_bytes), max(reserved_bytes)"
                " FROM memory_over_time WHERE device = ?",
                device["index"],
            ),
            (peak["allocated"], peak["active"], peak["reserved"]),
        )
        self.assertEqual(
            self.one(database, "SELECT count(*) FROM steps WHERE device = ?", device["index"])[0],
            device["iterations"]["count"],
        )

    def check_failures(self, database, report):
        columns = (
            "device, event, time_ns, requested_bytes, verdict, requester, despite_free_memory, free_bytes,"
            " largest_free_bytes, device_free_bytes, allocated_bytes, reserved_bytes"
        )
        for kind, rows in (("out_of_memory", report["ooms"]), ("retry", report["retries"])):
            rows = [row for row in rows if row["verdict"] != "not_judged"]
            self.assertEqual(
                database.execute(
                    f"SELECT {columns} FROM failures WHERE kind = ? AND verdict IS NOT NULL"
                    " ORDER BY device, event",
                    (kind,),
                ).fetchall(),
                [tuple(row[key.strip()] for key in columns.split(",")) for row in rows],
            )
            for row in rows:
                self.check_failure(database, row)
        self.assertEqual(
            self.one(database, "SELECT count(*) FROM failures")[0],
            sum(device["ooms"] + device["retries"] for device in report["devices"]),
        )

    def check_failure(self, database, failure):
        event = failure["event"]
        (number,) = self.one(database, "SELECT failure FROM failures WHERE event = ?", event)
        self.assertEqual(
            database.execute(
                "SELECT line, held_open_bytes, live_bytes, blocks FROM culprits WHERE failure = ?"
                " ORDER BY rowid LIMIT 20",
                (number,),
            ).fetchall(),
            [
                (row["label"], row["held_open_bytes"], row["live_bytes"], row["blocks"])
                for row in failure["culprits"]
            ],
        )
        self.assertEqual(
            [
                {"function": function, "file": file or "", "line": line or 0}
                for function, file, line in database.execute(
                    "SELECT function, file, stack_traces.line FROM events JOIN stack_traces USING (stack)"
                    " WHERE event = ? ORDER BY position",
                    (event,),
                )
            ],
            [{key: frame[key] for key in ("function", "file", "line")} for frame in failure["stack"]],
        )
        holders = failure["holders"]
        self.assertEqual(
            database.execute(
                "SELECT replace(category, ' ', '_'), bytes, blocks, earlier_bytes, old_bytes FROM holders"
                " WHERE event = ? ORDER BY rowid",
                (event,),
            ).fetchall(),
            [
                tuple(row[key] for key in ("category", "bytes", "blocks", "earlier_bytes", "old_bytes"))
                for row in holders["categories"]
            ],
        )

    def assert_map_at_first_failure(self, database, report):
        """The address map that the views show is the one of the report."""
        failure = report["ooms"][0]
        self.assertEqual(self.one(database, "SELECT event FROM moment")[0], failure["event"])
        self.assertEqual(
            self.one(database, "SELECT sum(bytes) FROM live_blocks WHERE NOT is_pending")[0],
            failure["allocated_bytes"],
        )
        (row,) = self.answer(database, "how large is the largest hole")
        self.assertEqual(
            row[1:2] + row[3:],
            (failure["reserved_bytes"], failure["free_bytes"], failure["largest_free_bytes"]),
        )
        holes = self.answer(database, "ten largest holes")
        if failure["free_bytes"]:
            self.assertEqual(holes[0][2], failure["largest_free_bytes"])
        by_line = {}
        for place in failure["holders"]["places"]:
            size, count = by_line.get(place["label"], (0, 0))
            by_line[place["label"]] = (size + place["bytes"], count + place["blocks"])
        self.assertEqual(failure["holders"]["places_left_out"], 0)
        self.assertEqual(
            {
                line: (size, count)
                for line, size, count in database.execute("SELECT line, bytes, blocks FROM holders_by_line")
                if count
            },
            by_line,
        )
        largest = max(by_line.values())[0]
        self.assertEqual(self.answer(database, "Which lines hold most memory")[0][1], largest)
        self.assertEqual(
            self.one(database, "SELECT culprit FROM failures WHERE event = ?", failure["event"])[0],
            report["devices"][0]["conclusion"]["culprit"],
        )

    def record_steps(self):
        self.run_well(
            [sys.executable, STEPS_CLIENT, MIB],
            env=environment("1GiB,context=128MiB", self.folder, PYTHONPATH=SOURCE / "preload/python"),
        )
        return self.only_trace()

    def test_the_database_of_a_program_without_a_pool_agrees_with_the_report(self):
        trace = self.record_steps()
        database = self.export(trace)
        report = self.check(trace, database)
        self.assert_map_at_first_failure(database, report)
        with_rows = self.run_queries(database)
        self.assertIn(
            "What does each phase allocate and free itself, without the phases inside it?", with_rows
        )
        allocated = {row[0]: row[1:] for row in self.answer(database, "each phase allocate")}
        self.assertEqual(allocated["load"], (12 * 2 * MIB, 0))
        self.assertEqual(allocated["compute"], (12 * 4 * MIB, 0))
        self.assertEqual(allocated["step"], (0, 12 * 5 * MIB))
        # The client requests no more than these sizes: 512 KiB and 1 MiB, 2 MiB and 3 MiB, 64 MiB.
        sizes = {row[0]: row[1] for row in self.answer(database, "by size")}
        self.assertEqual((sizes["1: up to 1 MiB"], sizes["2: 1 to 10 MiB"]), (4 + 12, 24))
        (call,) = [failure for failure in report["ooms"] if failure["verdict"] == "not_judged"]
        self.assertEqual(
            self.one(
                database,
                "SELECT requester, event, allocated_bytes, reserved_bytes FROM failures"
                " WHERE kind = 'call_out_of_memory'",
            ),
            tuple(call[key] for key in ("requester", "event", "allocated_bytes", "reserved_bytes")),
        )
        growth = report["devices"][0]["iterations"]["growth"]
        self.assertEqual((growth["first"], growth["last"]), (3, 12))
        self.assertEqual(
            sum(row[1] for row in self.answer(database, "Which lines hold more memory")), growth["bytes"]
        )

    def test_the_moment_can_be_set_by_event_and_by_time(self):
        database = self.export(self.record_steps())
        event, time_ns, size = self.one(
            database,
            "SELECT event, time_ns, allocated_bytes FROM memory_over_time ORDER BY event LIMIT 1 OFFSET 9",
        )
        for change in (f"event = {event}", f"time_ns = {time_ns}"):
            database.execute("UPDATE moment SET event = 0")
            database.execute(f"UPDATE moment SET {change}")
            self.assertEqual(self.one(database, "SELECT * FROM moment"), (event, time_ns))
            self.assertEqual(self.one(database, "SELECT sum(bytes) FROM live_blocks")[0], size)
        database.execute("UPDATE moment SET time_ns = -1")
        self.assertEqual(self.one(database, "SELECT count(*) FROM live_blocks"), (0,))

    def test_the_option_at_chooses_the_first_moment(self):
        trace = self.record_steps()
        last = self.report(trace)["source"]["events"] - 1
        self.assertEqual(self.one(self.export(trace, "--at", "end"), "SELECT event FROM moment"), (last,))

    def test_the_page_names_every_table_and_column(self):
        database = self.export(self.record_steps())
        columns = {}
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"):
            columns[name] = [row[0] for row in database.execute(f"SELECT * FROM {name}").description]
        self.assertEqual(columns, documented_columns())

    @unittest.skipUnless(shutil.which("sqlite3"), "the command sqlite3 is not installed")
    def test_the_command_sqlite3_answers_the_queries(self):
        database = self.export(self.record_steps())
        for text, statements in queries():
            if not statements[0].startswith("UPDATE"):
                done = self.run_well(["sqlite3", "-readonly", "-list", self.file, "".join(statements)])
                rows = [row for statement in statements for row in database.execute(statement)]
                self.assertEqual(len(done.stdout.splitlines()), len(rows), text)

    def test_frees_on_another_stream_are_found(self):
        self.run_well([sys.executable, "-c", STREAMS], env=environment("1GiB,context=0", self.folder))
        database = self.export(self.only_trace())
        rows = self.answer(database, "stream-ordered allocations")
        self.assertEqual(sum(row[3] for row in rows), 2)
        self.assertEqual(sum(row[4] for row in rows), 4 * MIB)
        self.assertTrue(all(row[1] != row[2] for row in rows), rows)

    def test_a_hostile_name_in_a_snapshot_stays_text(self):
        snapshot = self.folder / "state.pickle"
        snapshot.write_bytes(made_up_snapshot(ADDRESS, 0, "x'); DROP TABLE events; --\x1b[31m"))
        database = self.export(snapshot)
        self.assertEqual(
            self.one(database, "SELECT address, bytes, requested_bytes FROM live_blocks"),
            (ADDRESS, MIB, MIB - 512),
        )
        (function,) = self.one(database, "SELECT function FROM frames WHERE function LIKE '%DROP%'")
        self.assertNotIn("\x1b", function)
        (hole,) = self.check(snapshot, database)["devices"][0]["holes"]
        self.assertEqual(
            self.one(database, "SELECT address, bytes FROM holes"), (hole["address"], hole["bytes"])
        )
        self.run_queries(database)

    def test_numbers_too_large_for_sqlite_are_null_and_counted(self):
        self.run_well([sys.executable, "-c", HUGE], env=environment("1GiB,context=0", self.folder))
        database = self.export(self.only_trace())
        self.assertEqual(self.one(database, "SELECT bytes FROM events WHERE kind = 'alloc_refused'"), (None,))
        self.assertGreater(self.one(database, "SELECT value FROM meta WHERE key = 'numbers_left_out'")[0], 0)
        self.run_queries(database)
        snapshot = self.folder / "state.pickle"
        snapshot.write_bytes(made_up_snapshot(ADDRESS, 0xFFFF800000000000, "train"))
        database = self.export(snapshot)
        self.assertEqual(
            self.one(database, "SELECT handle FROM live_blocks JOIN streams USING (stream)"),
            ("0xffff800000000000",),
        )

    def test_kept_inputs_of_the_fuzzer_give_a_sound_database_or_one_line(self):
        written = 0
        for kind, ending in (("trace", "ftrace"), ("snapshot", "pickle")):
            for number, kept in enumerate(sorted((SOURCE / "tests/fuzz/corpus" / kind).iterdir())):
                with self.subTest(kept.name):
                    made_up = self.folder / f"{kind}{number}.{ending}"
                    made_up.write_bytes(kept.read_bytes()[1:])  # the first byte chooses a command
                    file = made_up.with_suffix(".db")
                    command = [ANALYZER, "export", made_up, "--to", "sqlite", "-o", file]
                    done = real_process.run(command)
                    if done.returncode == 2:
                        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                        self.assertFalse(file.exists())
                        continue
                    self.assert_status(command, done, 0)
                    written += 1
                    database = sqlite3.connect(file)
                    self.addCleanup(database.close)
                    self.assertEqual(self.one(database, "PRAGMA integrity_check"), ("ok",))
                    self.run_queries(database)
        self.assertGreater(written, 10)

    def test_the_file_is_complete_or_absent(self):
        trace = self.record_steps()
        command = [ANALYZER, "export", trace, "--to", "sqlite", "-o"]
        done = self.run_well([*command, "-"], expected=2)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        file = self.folder / "full.db"
        done = self.run_well(
            [*command, file],
            expected=2,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768)),
            restore_signals=False,  # without SIGXFSZ, as Python itself
        )
        self.assertRegex(done.stderr, r"^fraganalyze: .*full\.db: cannot write the database: .*\n$")
        self.assertEqual(list(self.folder.glob("full.db*")), [])
        file.write_text("not a database")
        self.run_well([*command, file], expected=2)
        self.assertEqual(file.read_text(), "not a database")

    @unittest.skipUnless(TORCH_PYTHON, "no interpreter with PyTorch (-DFRAGTRACE_PYTHON=PATH)")
    def test_the_database_shows_a_pytorch_out_of_memory_despite_free_memory(self):
        self.run_well(
            [TORCH_PYTHON, DEMOS / "holes.py"],
            expected=1,
            env=environment("1894MiB,context=0", self.folder),
        )
        trace = self.only_trace()
        database = self.export(trace)
        report = self.check(trace, database)
        self.assert_map_at_first_failure(database, report)
        self.assertGreater(self.answer(database, "ten largest holes")[0][2], 9 * MIB)
        with_rows = self.run_queries(database)
        self.assertIn("Which lines made the pool request memory from the driver?", with_rows)
        # The conclusion's line is the first one of the query.
        (line, held_open, *_) = self.answer(database, "from being released at the first")[0]
        self.assertIn("holes.py", line)
        self.assertEqual(held_open, report["ooms"][0]["culprits"][0]["held_open_bytes"])

    @unittest.skipUnless(TORCH_PYTHON, "no interpreter with PyTorch (-DFRAGTRACE_PYTHON=PATH)")
    def test_the_databases_of_a_training_and_its_snapshot_agree_with_the_report(self):
        self.run_training([SNAPSHOT_PROGRAM, self.folder], env=environment("16GiB", self.folder))
        database = self.export(self.only_trace())
        report = self.check(self.only_trace(), database)
        self.assert_map_at_first_failure(database, report)
        with_rows = self.run_queries(database)
        self.assertTrue(any("another stream still used" in text for text in with_rows), with_rows)
        snapshot = self.folder / "whole.pickle"
        database = self.export(snapshot)
        report = self.check(snapshot, database)
        self.assert_map_at_first_failure(database, report)
        self.run_queries(database)

    @unittest.skipUnless(TORCH_PYTHON, "no interpreter with PyTorch (-DFRAGTRACE_PYTHON=PATH)")
    def test_the_database_has_the_steps_of_a_pytorch_training(self):
        self.run_training(
            [DEMOS / "gpt.py", "--steps", 14, "--layers", 2, "--width", 128, "--max-length", 128],
            env=environment("8GiB", self.folder),
        )
        trace = self.only_trace()
        database = self.export(trace)
        report = self.check(trace, database)
        self.assertGreaterEqual(report["devices"][0]["iterations"]["count"], 12)
        with_rows = self.run_queries(database)
        for words in ("each step allocate", "longer than 10 steps", "lose most bytes to rounding"):
            self.assertTrue(any(words in text for text in with_rows), words)
        # All bytes that are ever allocated are allocated in a step, or before the first one.
        steps = self.answer(database, "each step allocate")
        self.assertEqual(
            sum(row[3] for row in steps),
            self.one(database, "SELECT sum(bytes) FROM events WHERE kind = 'block_alloc' AND step > 0")[0],
        )
        holders = report["devices"][0]["holders"]
        self.assertEqual(
            sum(row[1] for row in self.answer(database, "Which kinds of memory")), holders["allocated_bytes"]
        )
        self.assertEqual(
            self.one(database, "SELECT sum(bytes) FROM holders_by_line")[0],
            report["devices"][0]["peak"]["allocated"],
        )


if __name__ == "__main__":
    real_process.main()
