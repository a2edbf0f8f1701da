"""Of a long trace only a part is read (--events). Every text and every JSON document says so, with the same
number."""

import csv
import json
import pickle
import resource
import sqlite3
import subprocess
import sys

import real_process
from real_process import ANALYZER, SOURCE

# 2,000 allocations and frees, one 64 MiB allocation that stays.
PROGRAM = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
context = ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
pointer = ctypes.c_ulonglong()
for i in range(2001):
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(64 << 20 if i == 1000 else 4096)) == 0
    assert i == 1000 or driver.cuMemFree_v2(pointer) == 0
"""


class LongTraces(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        env = real_process.environment("2GiB", record_to=self.folder)
        self.run_well([sys.executable, "-c", PROGRAM], env=env)
        self.trace = self.only_trace()

    def documents(self, *options):
        """What each command says that it read: (events, events read) from JSON, and its text."""
        for command in ("report", "whatif", "replay", "validate"):
            call = [ANALYZER, command, self.trace, *options]
            document = json.loads(self.run_well([*call, "--json", "-"]).stdout)
            source = document.get("source", document)
            yield command, (source["events"], source["events_read"]), self.run_well(call).stdout

    def test_a_part_is_called_a_part_everywhere(self):
        numbers = set()
        for command, read, text in self.documents("--events", "1000"):
            with self.subTest(command):
                numbers.add(read)
                self.assertIn(f"{read[1]:,} of the {read[0]:,} events", text)
        ((events, events_read),) = numbers
        self.assertGreater(events, 4000)
        self.assertLessEqual(events_read, 1000)
        self.assertGreater(events_read, 500)

    def test_a_whole_trace_is_not_called_a_part(self):
        for options in ((), ("--events", "all")):
            for command, (events, events_read), text in self.documents(*options):
                with self.subTest(command, options=options):
                    self.assertEqual(events_read, events)
                    self.assertNotIn("--events all", text)

    def test_a_comparison_says_what_was_read_and_leaves_out_the_rest(self):
        call = [ANALYZER, "compare", self.trace, self.trace]
        whole = json.loads(self.run_well([*call, "--json", "-"]).stdout)
        part = json.loads(self.run_well([*call, "--events", "1000", "--json", "-"]).stdout)
        for side in "ab":
            self.assertEqual(whole[side]["events_read"], whole[side]["events"])
            self.assertEqual(part[side]["events"], whole[side]["events"])
            self.assertLessEqual(part[side]["events_read"], 1000)
        for key in ("phases", "iterations", "first_different_requests"):
            self.assertEqual(part[key], [])
        # The figures are those of the whole run. Times are not known.
        for document in (whole, part):
            for device in document["devices"]:
                device["a"].pop("driver_ns")
                device["b"].pop("driver_ns")
        self.assertEqual(part["devices"], whole["devices"])
        self.assertIn("Only a part of each run", self.run_well([*call, "--events", "1000"]).stdout)
        self.assertNotIn("Only a part", self.run_well(call).stdout)

    def test_a_part_is_not_compared_with_the_whole_of_a_json_report(self):
        report = self.folder / "part.json"
        self.run_well([ANALYZER, self.trace, "--events", "1000", "--json", report])
        text = self.run_well([ANALYZER, "compare", report, self.trace]).stdout
        self.assertIn("Only a part of A", text)
        self.assertIn("Write the JSON again", text)

    def test_a_batch_needs_all_requests(self):
        call = [ANALYZER, "compare", self.trace, self.trace, "--batch", "1,2", "--events", "1000"]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--events all", done.stderr)

    def export(self, form, *options):
        output = self.folder / f"export.{form}"
        done = self.run_well(
            [ANALYZER, "export", self.trace, "--to", form, "-o", output, "--force", *options]
        )
        return output, done.stderr

    def test_an_export_says_what_was_read(self):
        for form in ("folded", "speedscope", "perfetto", "csv", "sqlite", "snapshot"):
            with self.subTest(form):
                _, said = self.export(form)
                self.assertNotIn("--events all", said)
                output, said = self.export(form, "--events", "1000")
                self.assertIn(" events: those around failures, peaks and the end", said)
                self.assertIn("--events all", said)
                part = said.split(" shows ")[1].split(":")[0]  # "998 of the 4,004 events"
                read, recorded = (int(word.replace(",", "")) for word in part.split() if word[0].isdigit())
                self.assertLessEqual(read, 1000)
                if form == "speedscope":
                    self.assertIn(part, json.loads(output.read_text())["name"])
                elif form == "perfetto":
                    self.assertIn(part.encode(), output.read_bytes())
                elif form == "csv":
                    (run,) = csv.DictReader((output / "run.csv").read_text().splitlines())
                    self.assertEqual((run["events"], run["events_read"]), (str(recorded), str(read)))
                elif form == "sqlite":
                    with sqlite3.connect(output) as database:
                        meta = dict(database.execute("SELECT key, value FROM meta"))
                        left = database.execute("SELECT sum(events_left_out) FROM gaps").fetchone()[0]
                    self.assertEqual((meta["events"], meta["events_read"]), (recorded, read))
                    self.assertEqual(left, recorded - read)
                elif form == "snapshot":
                    pickle.loads(output.read_bytes())

    def test_an_export_with_room_for_all_events_is_the_same(self):
        for form in ("folded", "speedscope", "perfetto", "sqlite", "snapshot"):
            with self.subTest(form):
                whole = self.export(form)[0].read_bytes()
                self.assertEqual(self.export(form, "--events", "100000")[0].read_bytes(), whole)
                self.assertEqual(self.export(form, "--events", "all")[0].read_bytes(), whole)

    def test_a_moment_that_was_not_read_is_refused(self):
        whole = json.loads(self.run_well([ANALYZER, self.trace, "--json", "-"]).stdout)
        part = json.loads(self.run_well([ANALYZER, self.trace, "--events", "200", "--json", "-"]).stdout)
        self.assertEqual(whole["recording"]["gaps"], [])
        gap = part["recording"]["gaps"][0]
        moment = (gap["from_ns"] + gap["to_ns"]) / 2e9
        call = [ANALYZER, "export", self.trace, "--to", "folded", "-o", "-", "--at", f"{moment:.9f}s"]
        self.run_well(call)
        done = subprocess.run([*call, "--events", "200"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("were not read", done.stderr)

    @real_process.not_sanitized
    def test_the_library_has_the_same_limit(self):
        program = """
import json, sys, fragtrace
for events in (None, "all", 1000):
    with fragtrace.load(sys.argv[1], events=events) as report:
        source = report.json["source"]
        whatif = report.whatif()["source"]
        print(json.dumps([source["events"], source["events_read"], whatif["events_read"], report.text]))
"""
        env = real_process.environment(
            PYTHONPATH=SOURCE / "preload/python", FRAGTRACE_PREFIX=real_process.BUILD
        )
        done = self.run_well([sys.executable, "-c", program, self.trace], env=env)
        usual, whole, part = (json.loads(line) for line in done.stdout.splitlines())
        self.assertEqual(usual, whole)
        self.assertEqual(whole[0], whole[1])
        self.assertLessEqual(part[1], 1000)
        self.assertEqual(part[1], part[2])
        self.assertIn(f"{part[1]:,} of the {part[0]:,} events", part[3])


class Dumps(real_process.RealProcessTest):
    """A dump reads event after event."""

    @real_process.not_sanitized
    def test_memory_does_not_grow_with_the_trace(self):
        env = real_process.environment("2GiB", record_to=self.folder)
        program = PROGRAM.replace("range(2001)", "range(int(sys.argv[1]))").replace(
            "ctypes\n", "ctypes, sys\n", 1
        )
        peaks = []
        for allocations in (2001, 300_000):
            self.run_well([sys.executable, "-c", program, str(allocations)], env=env)
            trace = self.only_trace()
            lines = 0
            with subprocess.Popen([ANALYZER, "dump", trace], stdout=subprocess.PIPE) as dump:
                for _ in dump.stdout:
                    lines += 1
                _, status, usage = real_process.os.wait4(dump.pid, 0)
                dump.returncode = real_process.os.waitstatus_to_exitcode(status)
            self.assertEqual(dump.returncode, 0)
            self.assertGreater(lines, 2 * allocations - 2)
            peaks.append(usage.ru_maxrss)
            trace.unlink()
        # With all events in memory, the second would take 42 MB more.
        self.assertLess(peaks[1], peaks[0] + (12 << 10))

    @real_process.not_sanitized
    def test_a_limit_of_address_space(self):
        env = real_process.environment("2GiB", record_to=self.folder)
        self.run_well([sys.executable, "-c", PROGRAM], env=env)
        limit = 256 << 20
        done = subprocess.run(
            [ANALYZER, "dump", self.only_trace()],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(done.stdout.count("\n"), 4000)


if __name__ == "__main__":
    real_process.main()
