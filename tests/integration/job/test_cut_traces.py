"""Folders with a recorded trace that was cut off: nothing is said about an end that is not in the file."""

import json
import re
import sys

import real_process
from real_process import ANALYZER, MIB, environment, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "control" / "client.py"
CARD = "1GiB,context=0"
# Of the file. The end mark is in the last hundreds of bytes.
PARTS = (0.0, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.97)
LAST = (1, 7, 8, 40, 64, 100, 200, 400)


class CutTraces(real_process.RealProcessTest):
    whole_without_end = False  # whether one of the files was cut off between two chunks

    def record(self, rank, *steps, expected=0):
        env = environment(CARD, self.folder, RANK=rank, WORLD_SIZE=2)
        self.run_well([sys.executable, CLIENT, *steps], expected, env=env)
        (path,) = [path for path in traces(self.folder) if f".rank{rank}." in path.name]
        return path

    def cuts(self, path):
        """Cuts the file off at several bytes, one after the other."""
        whole = path.read_bytes()
        sizes = {int(len(whole) * part) for part in PARTS} | {len(whole) - last for last in LAST}
        chunks = [chunk.start() for chunk in re.finditer(b"FTCK", whole)]
        sizes |= {chunks[len(chunks) // 3], chunks[-3], chunks[-2], chunks[-1]}
        for size in sorted(size for size in sizes if size >= 0):
            path.write_bytes(whole[:size])
            yield f"{size} of {len(whole)} bytes"
        path.write_bytes(whole)

    def views(self):
        """The view of the folder and its JSON. They and the list agree on whether a trace is unreadable."""
        file = self.folder.parent / (self.folder.name + ".json")
        view = real_process.run([ANALYZER, self.folder, "--json", file])
        job = json.loads(file.read_text())
        file.unlink()
        listed = real_process.run([ANALYZER, "list", self.folder])
        expected = 2 if job["unreadable"] else 0
        self.assertEqual((view.returncode, listed.returncode), (expected, expected))
        for text in (view.stdout, listed.stdout):
            self.assertNotRegex(text, r"died or became|killed|SIG")
            self.assertEqual("unreadable" in text, expected == 2)
        return view.stdout.splitlines(), job

    def assert_end_is_said_to_be_unknown(self, rank, lines, job):
        """If the end is missing. A file that was cut off between two chunks is not damaged."""
        (row,) = [row for row in job["processes"] if row["rank"] == rank]
        if row["ending"]["kind"] == "not_recorded":
            unknown = [line for line in lines if line.startswith("  damaged ")]
            expected = f"how rank {rank} ended is not known"
            self.assertEqual(len(unknown), row["damaged"])
            if not row["damaged"]:
                self.whole_without_end = True
                unknown, expected = lines, f"how rank {rank} ended is not recorded (it may still run)"
            self.assertTrue(any(expected in line for line in unknown), lines)
        return row["ending"]

    def test_a_rank_whose_trace_was_cut_off_is_not_said_to_have_failed(self):
        whole = self.record(0, f"alloc={8 * MIB}", "churn=200", "free")
        self.record(1, f"alloc={MIB}", f"alloc={1 << 40}", expected=1)
        known = set()
        for cut in self.cuts(whole):
            with self.subTest(cut):
                lines, job = self.views()
                self.assertRegex(lines[0], r"^rank 1 of [12] ran out of memory first, ")
                self.assertEqual(job["first_failure"]["rank"], 1)
                if len(job["processes"]) == 2:
                    ending = self.assert_end_is_said_to_be_unknown(0, lines, job)
                    self.assertIn(ending["kind"], ("exit", "not_recorded"))
                    self.assertIn(ending["code"], (0, None))
                    known.add(ending["kind"])
        self.assertIn("not_recorded", known)
        self.assertTrue(self.whole_without_end)

    def test_a_failure_that_was_cut_off_is_blamed_on_nobody_else(self):
        self.record(0, f"alloc={MIB}", "free")
        failed = self.record(1, f"alloc={8 * MIB}", "churn=200", f"alloc={1 << 40}", expected=1)
        found = set()
        for cut in self.cuts(failed):
            with self.subTest(cut):
                lines, job = self.views()
                known = r"rank 1 of 2 (ran out of memory first|failed first)|no known failure in "
                self.assertRegex(lines[0], f"^({known})")
                first = job["first_failure"]
                found.add(first is not None)
                self.assertIn(first and first["rank"], (None, 1))
                if len(job["processes"]) == 2:
                    self.assert_end_is_said_to_be_unknown(1, lines, job)
        self.assertEqual(found, {False, True})
        self.assertTrue(self.whole_without_end)

    def test_the_report_of_a_trace_that_was_cut_off_does_not_say_that_its_process_died(self):
        whole = self.record(0, f"alloc={8 * MIB}", "churn=200", "free")
        readable = 0
        for cut in self.cuts(whole):
            with self.subTest(cut):
                report = real_process.run([ANALYZER, whole])
                if report.returncode == 0:
                    readable += 1
                    line = report.stdout.partition("\n")[0]
                    self.assertRegex(
                        line, ", (ended normally|ended, exit code unknown|end not recorded)(;|$)"
                    )
                else:
                    self.assertEqual((report.returncode, report.stdout), (2, ""))
        self.assertGreater(readable, 3)


if __name__ == "__main__":
    real_process.main()
