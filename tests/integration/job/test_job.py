"""fraganalyze FOLDER: one line per process of a job, as text and as JSON."""

import json
import sys

import real_process
from real_process import ANALYZER, MIB, environment, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "control" / "client.py"
CARD = "1GiB,context=0"


class JobTest(real_process.RealProcessTest):
    def record(self, *steps, **variables):
        """The name of the trace that a process with these steps left."""
        before = traces(self.folder)
        self.run_well([sys.executable, CLIENT, *steps],
                      env=environment(CARD, self.folder, **variables))
        (new,) = set(traces(self.folder)) - set(before)
        return new.name

    def job(self, expected=0):
        return json.loads(self.run_well([ANALYZER, self.folder, "--json", "-"], expected).stdout)

    def test_two_ranks_one_of_them_out_of_memory(self):
        last = self.record("alloc=4194304", "refused", RANK="1", WORLD_SIZE="2")
        first = self.record("alloc=2097152", "alloc=2097152", "free", RANK="0", WORLD_SIZE="2")
        alone = self.record("alloc=8192")
        job = self.job()
        self.assertEqual((job["schema"], job["folder"], job["unreadable"]),
                         (1, str(self.folder), []))
        self.assertEqual(
            [(row["rank"], row["file"], row["peak_reserved_bytes"], row["ooms"], row["ended"])
             for row in job["processes"]],
            [(0, first, 4 * MIB, 0, "normal"), (1, last, 4 * MIB, 1, "normal"),
             (None, alone, 8192, 0, "normal")])
        for row in job["processes"]:
            self.assertIn("client.py", row["command_line"])
            self.assertEqual(row["retries"], 0)

    def test_the_table_has_a_line_per_process_beside_the_json(self):
        self.record("alloc=4194304", "refused", RANK="1")
        self.record("alloc=2097152", RANK="0")
        file = self.folder / "job.json"
        text = self.run_well([ANALYZER, self.folder, "--json", file]).stdout
        self.assertEqual(json.loads(file.read_text()), self.job())
        heading, first, second, footer = text.splitlines()
        self.assertEqual(heading.split()[:6],
                         ["rank", "pid", "allocated", "reserved", "retries", "OOMs"])
        self.assertRegex(first, r"^ +0 +\d+ +2 MiB +2 MiB +0 +0  ended normally +python")
        self.assertRegex(second, r"^ +1 +\d+ +4 MiB +4 MiB +0 +1  ended normally +python")
        self.assertTrue(footer.startswith("Peaks are each process's own."))

    def test_what_cannot_be_read_is_named_after_the_rest(self):
        good = self.record("alloc=8192")
        (self.folder / "bad.ftrace").write_text("no trace")
        job = self.job(expected=2)
        self.assertEqual([row["file"] for row in job["processes"]], [good])
        self.assertEqual([row["file"] for row in job["unreadable"]], ["bad.ftrace"])
        done = self.run_well([ANALYZER, self.folder], 2)
        self.assertIn("ended normally", done.stdout)
        self.assertRegex(done.stderr, r"^fraganalyze: 1 of 2 traces cannot be read; .*\n$")

    def test_a_folder_without_traces_and_a_page_are_refused_in_one_line(self):
        for arguments in ([self.folder], [self.folder, "--html", "x.html"]):
            done = self.run_well([ANALYZER, *arguments], 2)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))


if __name__ == "__main__":
    real_process.main()
