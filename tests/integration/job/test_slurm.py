"""analyze-job and workers of Dask on a real slurmctld, slurmd and munged. They are cancelled midway and
submitted again; every trace is counted once."""

import json
import re
import subprocess
import sys
import time

import made_up_job
import real_process
import slurm
from made_up_job import ANALYZE_JOB, DASK_PYTHON, RANKS
from real_process import ANALYZER, LAUNCHER

JOB_SECONDS = 240


class SlurmTest(made_up_job.MadeUpJobTest):
    def setUp(self):
        super().setUp()
        self.slurm = slurm.Slurm()
        self.slurm.__enter__()
        self.addCleanup(self.slurm.stop)

    def submit(self, *options, expected=0):
        env = {**self.slurm.environment, "FRAGANALYZE": str(ANALYZER)}
        return self.run_well([ANALYZE_JOB, self.job, *options], expected, env=env)

    def array(self, submitted):
        return re.fullmatch(r"Submitted (\d+) for 9 traces\. .*/job/job\.txt\n", submitted.stdout)[1]

    def wait_for_all_jobs(self):
        self.slurm.wait_for(
            lambda: not self.slurm.ask("squeue", "--noheader"), "the end of all jobs", JOB_SECONDS
        )

    def wait_for_summaries(self, count):
        self.slurm.wait_for(lambda: len(self.summaries()) >= count, "a summary", JOB_SECONDS)

    def test_a_cancelled_array_continues_where_it_was(self):
        first = self.array(self.submit("--tasks", "9", "--time=10"))
        self.wait_for_summaries(2)
        self.slurm.ask("scancel", first)
        self.wait_for_all_jobs()
        before = self.summaries()
        missing = RANKS + 1 - len(before)
        self.assertGreater(missing, 0, "the array was done before it was cancelled")
        view = (self.job / "job" / "job.txt").read_text()
        self.assertIn(f"{missing} of 9 traces have no summary yet. Run analyze-job again.\n", view)
        document = json.loads((self.job / "job" / "job.json").read_bytes())
        rows = document["process_summaries"] + document.get("unreadable", [])
        self.assertEqual(sorted(row["file"] + ".json" for row in rows), sorted(before))

        self.submit("--tasks", "3")
        self.wait_for_all_jobs()
        self.assertEqual(self.result(), self.serial())
        after = self.summaries()
        self.assertEqual({name: after[name] for name in self.readable(before)}, self.readable(before))
        view = (self.job / "job" / "job.txt").read_text()
        self.assertRegex(view.splitlines()[0], r"^rank 4 of 8 ran out of memory first, ")
        self.assertIn(f"unreadable  {self.bad}: is not a trace", view)
        self.assertNotIn("no summary yet", view)

    def check_that_a_cancelled_worker_of_dask_loses_no_trace(self, option):
        command = [LAUNCHER, "job", "analyze", self.job, option, "--workers", "2", "--python", DASK_PYTHON]
        with subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.slurm.environment,
        ) as engine:
            cancelled = ""
            while engine.poll() is None and not cancelled:
                if 2 <= len(self.summaries()) <= RANKS - 2:
                    cancelled = self.slurm.ask("squeue", "--noheader", "--states=running", "--format=%i")
                    cancelled = cancelled.partition("\n")[0]
                    self.slurm.ask("scancel", "--full", cancelled)
                time.sleep(0.05)
            _, said = engine.communicate(timeout=JOB_SECONDS)
        self.assertTrue(cancelled, said)
        self.assertEqual(engine.returncode, 2, said)
        self.assertEqual(self.result(), self.serial())
        self.wait_for_all_jobs()

    @real_process.unittest.skipIf(DASK_PYTHON is None, "distributed is not installed (scripts/setup --tests)")
    def test_a_cancelled_worker_of_dask_loses_no_trace(self):
        self.check_that_a_cancelled_worker_of_dask_loses_no_trace("--slurm")

    @real_process.unittest.skipIf(DASK_PYTHON is None, "distributed is not installed (scripts/setup --tests)")
    @real_process.unittest.skipIf(
        slurm.path_of("qsub") is None, "qsub is not installed (scripts/setup --tests)"
    )
    def test_a_cancelled_worker_that_qsub_of_torque_submitted_loses_no_trace(self):
        self.check_that_a_cancelled_worker_of_dask_loses_no_trace("--pbs")
        done = self.analyze("--pbs", "--submit-option=-q nowhere", env=self.slurm.environment)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn("invalid partition specified: nowhere", done.stderr)
        self.assertEqual(self.slurm.ask("squeue", "--noheader"), "")

    def test_wrong_calls_and_options_of_sbatch_are_refused_in_one_line(self):
        for options in (["--tasks", "none"], ["--tasks"], ["other"]):
            done = self.submit(*options, expected=2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("analyze-job: "), done.stderr)
        self.submit("--partition=nowhere", expected=2)
        env = {**self.slurm.environment, "FRAGANALYZE": "/nowhere/fraganalyze"}
        done = self.run_well([ANALYZE_JOB, self.job], 2, env=env)
        self.assertIn("/nowhere/fraganalyze is missing", done.stderr)
        self.assertEqual(self.slurm.ask("squeue", "--noheader"), "")
        if DASK_PYTHON:
            done = self.analyze("--slurm", "--sbatch=--partition=nowhere", env=self.slurm.environment)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn("invalid partition specified: nowhere", done.stderr)


if __name__ == "__main__":
    if reason := slurm.why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    real_process.main()
