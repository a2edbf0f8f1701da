"""fraganalyze FOLDER, list and summarize: traces and snapshots of a job as text, JSON and page."""

import gzip
import json
import pickle
import re
import sys

import real_process
from real_process import ANALYZER, MIB, environment, page_header, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "control" / "client.py"
CARD = "1GiB,context=0"


def snapshot(requested):
    """The output of torch.cuda.memory._dump_snapshot() for a process with one block."""
    address, segment = 0x7F0000000000, 2 * MIB
    free = segment - 1 * MIB
    return pickle.dumps(
        {
            "segments": [
                {
                    "device": 0,
                    "address": address,
                    "total_size": segment,
                    "stream": 0,
                    "segment_type": "small",
                    "allocated_size": MIB,
                    "active_size": MIB,
                    "requested_size": requested,
                    "segment_pool_id": (0, 0),
                    "is_expandable": False,
                    "frames": [],
                    "blocks": [
                        {
                            "address": address,
                            "size": MIB,
                            "requested_size": requested,
                            "state": "active_allocated",
                            "frames": [],
                        },
                        {
                            "address": address + MIB,
                            "size": free,
                            "requested_size": 0,
                            "state": "inactive",
                            "frames": [],
                        },
                    ],
                }
            ],
            "device_traces": [
                [
                    {
                        "action": "segment_alloc",
                        "addr": address,
                        "size": segment,
                        "stream": 0,
                        "time_us": 1000,
                        "frames": [],
                    },
                    {
                        "action": "alloc",
                        "addr": address,
                        "size": requested,
                        "stream": 0,
                        "time_us": 1001,
                        "frames": [],
                    },
                ]
            ],
            "allocator_settings": {},
        }
    )


class JobTest(real_process.RealProcessTest):
    def record(self, *steps, **variables):
        """Runs a process with these steps and returns the name of its trace."""
        before = traces(self.folder)
        self.run_well([sys.executable, CLIENT, *steps], env=environment(CARD, self.folder, **variables))
        (new,) = set(traces(self.folder)) - set(before)
        return new.name

    def job(self, expected=0):
        """The JSON of the folder. Its lines equal the reports of its traces."""
        job = json.loads(self.run_well([ANALYZER, self.folder, "--json", "-"], expected).stdout)
        for process in job["processes"]:
            if process["file"].endswith(".ftrace"):
                self.report(self.folder / process["file"], process=process)
        return job

    def test_of_two_ranks_the_one_out_of_memory_is_reported_as_first_failure(self):
        last = self.record("alloc=4194304", "refused", RANK="1", WORLD_SIZE="2")
        first = self.record("alloc=2097152", "alloc=2097152", "free", RANK="0", WORLD_SIZE="2")
        alone = self.record("alloc=8192")
        job = self.job()
        self.assertEqual((job["schema"], job["folder"], job["unreadable"]), (1, str(self.folder), []))
        self.assertEqual(
            [
                (row["rank"], row["file"], row["peak_reserved_bytes"], row["ooms"], row["ended"])
                for row in job["processes"]
            ],
            [
                (0, first, 4 * MIB, 0, "normal"),
                (1, last, 4 * MIB, 1, "normal"),
                (None, alone, 8192, 0, "normal"),
            ],
        )
        for row in job["processes"]:
            self.assertIn("client.py", row["command_line"])
            self.assertEqual(row["retries"], 0)

    def test_a_rank_that_becomes_a_program_without_cuda_has_not_failed(self):
        replaced = self.record(f"alloc={MIB}", "exec=exit 0", RANK=0, WORLD_SIZE=2)
        self.record(f"alloc={MIB}", RANK=1, WORLD_SIZE=2)
        text = self.run_well([ANALYZER, self.folder]).stdout
        self.assertTrue(text.startswith("no known failure in 2 processes"), text)
        self.assertIn("became another program (exec)", text)
        job = self.job()
        self.assertEqual([row["ended"] for row in job["processes"]], ["exec", "normal"])
        self.assertEqual(job["processes"][0]["file"], replaced)

    def test_jobs_with_equal_ranks_in_one_folder_are_viewed_one_by_one(self):
        for number in (11, 12):
            for rank in (0, 1):
                refused = ["refused"] * (number - 11 == rank)
                self.record(f"alloc={number * MIB}", *refused, RANK=rank, WORLD_SIZE=2, SLURM_JOB_ID=number)
        text = self.run_well([ANALYZER, self.folder]).stdout
        headings = [line for line in text.splitlines() if line.startswith("job ")]
        self.assertEqual(headings, ["job 11 (2 traces)", "job 12 (2 traces)"])
        first, second = text.split("job 12 (2 traces)\n")
        self.assertRegex(first, r"^job 11 \(2 traces\)\nrank 0 of 2 ran out of memory first, ")
        self.assertRegex(second, r"^rank 1 of 2 ran out of memory first, ")
        job = self.job()
        self.assertEqual([row["job_id"] for row in job["mixed_jobs"]], ["11", "12"])
        for row in job["mixed_jobs"]:
            self.assertEqual({job["processes"][i]["job_id"] for i in row["indices"]}, {row["job_id"]})
            self.assertEqual(row["first_failure"]["rank"], int(row["job_id"]) - 11)
            self.assertIn(row["first_failure"]["index"], row["indices"])
        one = json.loads(self.run_well([ANALYZER, self.folder, "--job-id", "12", "--json", "-"]).stdout)
        self.assertEqual((one["mixed_jobs"], one["first_failure"]["rank"]), ([], 1))
        self.assertEqual({row["job_id"] for row in one["processes"]}, {"12"})
        one_text = self.run_well([ANALYZER, self.folder, "--job-id", "12"]).stdout
        self.assertRegex(one_text, r"^--job-id 12: 2 processes\nrank 1 of 2 ran out of memory first, ")
        wrong = self.run_well([ANALYZER, self.folder, "--job-id", "13"], 2).stderr
        self.assertEqual(wrong, "fraganalyze: --job-id 13: no trace of this job. Give one of: 11, 12\n")
        alone = self.run_well([ANALYZER, traces(self.folder)[0], "--job-id", "11"], 2).stderr
        self.assertIn("--job-id chooses among the traces of a folder", alone)

    def test_more_than_three_jobs_are_a_table(self):
        for number in (11, 12, 13, 14):
            self.record(f"alloc={MIB}", *["refused"] * (number == 13), RANK=0, SLURM_JOB_ID=number)
        text = self.run_well([ANALYZER, self.folder]).stdout
        self.assertEqual(
            text,
            "The traces are of 4 jobs or runs, whose ranks have the same numbers. One of them:\n"
            f"  fraganalyze {self.folder} --job-id 13\n"
            "  job 11 (1 trace): no known failure\n"
            "  job 12 (1 trace): no known failure\n"
            "  job 13 (1 trace): rank 0 of 1 ran out of memory first, and then ended normally\n"
            "  job 14 (1 trace): no known failure\n"
            "Peaks are per process. Next: fraganalyze TRACE for one process.\n",
        )

    def test_the_table_has_a_line_per_process_as_the_json_has(self):
        self.record("alloc=4194304", "refused", RANK="1")
        self.record("alloc=2097152", RANK="0")
        file = self.folder / "job.json"
        text = self.run_well([ANALYZER, self.folder, "--json", file]).stdout
        self.assertEqual(json.loads(file.read_text()), self.job())
        failure = text.splitlines()[0]
        at = r"control/client\.py:\d+ allocate"
        self.assertRegex(failure, rf"^rank 1 of 2 ran out of memory first, .* after the job began, at {at}$")
        self.assertIn("  others     1 without a known failure\n", text)
        heading, first, second, footer = text.splitlines()[-4:]
        self.assertEqual(heading.split()[:6], ["rank", "pid", "allocated", "reserved", "retries", "OOMs"])
        self.assertRegex(first, r"^ +0 +\d+ +2 MiB +2 MiB +0 +0  ended normally +python")
        self.assertRegex(second, r"^ +1 +\d+ +4 MiB +4 MiB +0 +1  ended normally +python")
        self.assertTrue(footer.startswith("Peaks are per process."))

    def test_progress_goes_to_standard_error_and_the_report_stays_the_same(self):
        trace = self.folder / self.record("alloc=4194304", "refused")
        quiet = self.run_well([ANALYZER, trace])
        told = self.run_well([ANALYZER, trace, "--progress"])
        self.assertEqual((told.stdout, quiet.stderr), (quiet.stdout, ""))
        lines = told.stderr.splitlines()
        self.assertIn("client.py", lines[0])
        self.assertRegex(lines[1], r"^Device 0: 1 out-of-memory, 0 retries. Peak reserved 4 MiB, ")

    def test_unreadable_traces_are_named_after_the_others(self):
        good = self.record("alloc=8192")
        (self.folder / "bad.ftrace").write_text("no trace")
        job = self.job(expected=2)
        self.assertEqual([row["file"] for row in job["processes"]], [good])
        self.assertEqual([row["file"] for row in job["unreadable"]], ["bad.ftrace"])
        done = self.run_well([ANALYZER, self.folder], 2)
        self.assertIn("ended normally", done.stdout)
        self.assertRegex(done.stderr, r"^fraganalyze: 1 of 2 traces cannot be read; .*\n$")

    def snapshots_and_a_trace(self):
        (self.folder / "rank0.pickle").write_bytes(snapshot(MIB))
        (self.folder / "rank1.pkl.gz").write_bytes(gzip.compress(snapshot(MIB - 512)))
        (self.folder / "notes.txt").write_text("no recording")
        return self.record("alloc=4194304", RANK="5", WORLD_SIZE="6")

    def test_snapshots_of_ranks_count_as_processes_of_the_job(self):
        trace = self.snapshots_and_a_trace()
        job = self.job()
        self.assertEqual(
            [
                (row["file"], row["rank"], row["peak_allocated_bytes"], row["peak_reserved_bytes"])
                for row in job["processes"]
            ],
            [
                (trace, 5, 4 * MIB, 4 * MIB),
                ("rank0.pickle", None, MIB, 2 * MIB),
                ("rank1.pkl.gz", None, MIB, 2 * MIB),
            ],
        )
        self.assertEqual(job["unreadable"], [])
        lines = self.run_well([ANALYZER, self.folder]).stdout
        self.assertRegex(lines, r"\n +- +- +1 MiB +2 MiB .*rank0\.pickle")

    def test_snapshots_are_listed_and_summarized(self):
        trace = self.snapshots_and_a_trace()
        listed = json.loads(self.run_well([ANALYZER, "list", self.folder, "--json", "-"]).stdout)
        self.assertEqual(
            [(row["path"].rpartition("/")[2], row["snapshot"]) for row in listed["traces"]],
            sorted([(trace, False), ("rank0.pickle", True), ("rank1.pkl.gz", True)]),
        )
        self.assertIn("snapshot, 2 events", self.run_well([ANALYZER, "list", self.folder]).stdout)
        told = self.run_well([ANALYZER, "summarize", self.folder, "--json", "-"]).stdout
        runs = {run["path"].rpartition("/")[2]: run for run in json.loads(told)["runs"]}
        self.assertEqual(sorted(runs), sorted([trace, "rank0.pickle", "rank1.pkl.gz"]))
        alone = self.run_well([ANALYZER, "summarize", self.folder / "rank1.pkl.gz", "--json", "-"]).stdout
        self.assertEqual(runs["rank1.pkl.gz"], json.loads(alone))
        (device,) = json.loads(alone)["devices"]
        self.assertEqual(
            device["peak"], {"requested": MIB - 512, "allocated": MIB, "active": MIB, "reserved": 2 * MIB}
        )
        self.assertEqual(device["waste_at_peak"]["releasable"], 0)
        self.assertEqual([(row["bytes"], row["blocks"]) for row in device["holders_at_peak"]], [(MIB, 1)])
        text = self.run_well([ANALYZER, "summarize", self.folder]).stdout
        self.assertEqual(text.count("peak reserved 2 MiB"), 2)

    def test_files_that_cannot_be_summarized_are_named_after_the_others(self):
        self.snapshots_and_a_trace()
        (self.folder / "data.pickle").write_bytes(pickle.dumps({"weights": [1, 2]}))
        done = self.run_well([ANALYZER, "summarize", self.folder], 2)
        self.assertEqual(done.stdout.count("peak reserved"), 3)
        self.assertRegex(done.stderr, r"^fraganalyze: 1 of 4 traces cannot be read; .*\n$")
        listed = self.run_well([ANALYZER, "list", self.folder], 2)
        self.assertEqual(listed.stdout.count("\n"), 5)
        self.assertRegex(listed.stdout, r"\nunreadable  .*/data\.pickle: .*\n$")
        self.assertEqual(listed.stderr, done.stderr)
        (self.folder / "data.pickle").rename(self.folder / "data")
        alone = self.run_well([ANALYZER, "list", self.folder / "data"], 2)
        self.assertEqual((alone.stdout, alone.stderr.count("\n")), ("", 1))

    def page(self, *arguments, expected=0):
        """The small part of the page that fraganalyze wrote, and its output."""
        file = self.folder / "job.html"
        file.unlink(missing_ok=True)
        done = self.run_well([ANALYZER, *arguments, "--html", file], expected)
        text = file.read_text()
        self.assertTrue(text.rstrip().endswith("</html>"))
        header = page_header(file)
        self.assert_rows_of_the_text(header["job"], done.stdout.splitlines())
        return header, done

    def assert_rows_of_the_text(self, rows, lines):
        """The page has all rows of the terminal, in the same words, and the rows that it leaves out."""
        said = []
        for row in rows:
            text = "".join(part["text"] for part in row["parts"])
            heading = row["kind"] in ("failure", "heading")
            said.append(text if heading else f"  {row['label']:<10} {text}")
        unreadable = [text[2:] for text in said if text.startswith("  unreadable ")]
        said = said[: len(said) - len(unreadable)]
        self.assertGreater(len(said), 1)
        table = next(at for at, line in enumerate(lines) if re.match(r" *(gen\.)?rank +pid ", line))
        left_out = [line for line in lines[:table] if line.endswith("--json has them")]
        rest = [line for line in lines[:table] if line not in left_out]
        self.assertEqual([line for line in said if line in rest], rest)
        more = [line for line in said if line not in rest]
        self.assertEqual(bool(more), bool(left_out), more)
        for line in more:
            self.assertRegex(line, r"^  (differs|equal) |see the table of all processes$")
        self.assertEqual(
            [line.split() for line in unreadable],
            [line.split() for line in lines if line.startswith("unreadable ")],
        )

    def assert_totals_of_its_own_report(self, header, ranks):
        """Every device on the page has the totals of a report for that trace alone."""
        shown = set()
        for row in header["ranks"]:
            if row["device"] is None:
                continue
            page = header["devices"][row["device"]]
            shown.add(row["device"])
            (report,) = [
                device
                for device in self.report(self.folder / row["file"])["devices"]
                if device["index"] == page["index"]
            ]
            totals = {total["label"]: total["value"] for total in page["totals"]}
            for peak in ("requested", "allocated", "active", "reserved"):
                self.assertEqual(totals[f"peak {peak}"], report["peak"][peak])
            for part in ("rounding", "slack", "pending", "releasable", "inactive_split"):
                self.assertEqual(totals[part.replace("_", " ")], report["waste_at_peak"][part])
            self.assertEqual((totals["retries"], totals["ooms"]), (report["retries"], report["ooms"]))
            self.assertEqual(
                (row["peak_reserved"], row["peak_allocated"]),
                (report["peak"]["reserved"], report["peak"]["allocated"]),
            )
            process = header["processes"][page["process"]]
            self.assertEqual(process["process"], f"pid {row['pid']}, rank {row['rank']}")
            self.assertIn("client.py", process["command"])
        self.assertEqual(shown, set(range(len(header["devices"]))))
        self.assertEqual(len(shown), ranks)

    def test_ranks_are_on_one_page_with_the_first_failure_first(self):
        self.record("alloc=8388608", "alloc=2097152", "free", RANK="0", WORLD_SIZE="3")
        self.record("alloc=4194304", "refused", RANK="2", WORLD_SIZE="3")
        self.record("alloc=2097152", "refused", RANK="1", WORLD_SIZE="3")
        header, done = self.page(self.folder)
        self.assertEqual(
            [(row["rank"], row["device"], row["ooms"]) for row in header["ranks"]],
            [(0, 2, 0), (1, 1, 1), (2, 0, 1)],
        )
        self.assert_totals_of_its_own_report(header, 3)
        self.assertEqual(header["unreadable"], [])
        plain = self.run_well([ANALYZER, self.folder])
        self.assertEqual(done.stdout, plain.stdout + f"  page written to {self.folder}/job.html\n")
        starts = {row["rank"]: row["start_after_ns"] for row in header["ranks"]}
        self.assertTrue(0 == starts[0] < starts[2] < starts[1], starts)
        self.assertGreater(header["ranks"][1]["first_oom_ns"], 0)
        # Equal stacks of three processes are in the page once.
        tree = list(zip(header["stacks"]["parent"], header["stacks"]["frame"]))[1:]
        self.assertEqual(len(tree), len(set(tree)))
        given, _ = self.page(*sorted(traces(self.folder), reverse=True))
        self.assertEqual((given["ranks"], given["title"]), (header["ranks"], "3 processes"))
        self.assertEqual(sorted(self.folder.glob("*.tmp")), [])

    def test_with_many_ranks_the_page_has_eight_complete_and_all_as_lines(self):
        for rank in range(11):
            steps = [f"alloc={(rank + 1) << 20}"] + (["refused"] if rank in (4, 9) else [])
            self.record(*steps, RANK=rank, WORLD_SIZE=11)
        (self.folder / "bad.ftrace").write_text("no trace")
        header, done = self.page(self.folder, expected=2)
        self.assertRegex(done.stderr, r"^fraganalyze: 1 of 12 traces cannot be read; .*\n$")
        self.assertEqual([trace["file"] for trace in header["unreadable"]], ["bad.ftrace"])
        self.assert_totals_of_its_own_report(header, 8)
        places = {row["rank"]: row["device"] for row in header["ranks"]}
        self.assertEqual(len(places), 11)
        self.assertEqual([places[rank] for rank in (4, 9, 10, 0)], [0, 1, 2, 3])
        self.assertEqual([rank for rank in places if places[rank] is None], [1, 2, 3])
        for row in header["ranks"]:
            self.assertIn(f"fraganalyze {self.folder}/{row['file']} --html ", row["command"])

    def test_a_page_without_anything_to_draw_is_refused_and_leaves_no_file(self):
        for name in ("a.pickle", "b.pickle"):
            (self.folder / name).write_bytes(
                pickle.dumps({"segments": [], "device_traces": [], "allocator_settings": {}})
            )
        self.run_well([ANALYZER, self.folder])
        done = self.run_well([ANALYZER, self.folder, "--html", self.folder / "x.html"], 2)
        self.assertRegex(done.stderr, r"^fraganalyze: no page: .*\n$")
        self.assertEqual(done.stdout, "")
        self.assertEqual(sorted(self.folder.glob("x.html*")), [])
        self.run_well([ANALYZER, self.folder, "--html", self.folder / "no" / "x.html"], 2)

    def test_with_the_page_on_standard_output_nothing_else_is_printed(self):
        self.record("alloc=8192", RANK="0")
        self.record("alloc=4096", RANK="1")
        done = self.run_well([ANALYZER, self.folder, "--html", "-"])
        self.assertTrue(done.stdout.startswith("<!DOCTYPE html>"))
        self.assertTrue(done.stdout.rstrip().endswith("</html>"))
        both = self.run_well([ANALYZER, self.folder, "--html", "-", "--json", "-"], 2)
        self.assertEqual((both.stdout, both.stderr.count("\n")), ("", 1))

    def test_a_folder_without_traces_is_refused_in_one_line(self):
        for arguments in (
            [self.folder],
            [self.folder, "--html", self.folder / "x.html"],
            ["summarize", self.folder],
        ):
            done = self.run_well([ANALYZER, *arguments], 2)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    real_process.main()
