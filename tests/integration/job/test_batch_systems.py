"""`fragtrace job analyze --pbs` and `--lsf` with stand-ins for their commands (tests/support/batch_stand_in),
which run each job as a process of this machine. test_slurm.py has a real batch system."""

import os
import pathlib
import subprocess
import sys
import time

import made_up_job
import real_process
from made_up_job import DASK_PYTHON, RANKS
from real_process import LAUNCHER

STAND_IN = pathlib.Path(__file__).parents[2] / "support" / "batch_stand_in"
SYSTEMS = {"--pbs": ("qsub", "qdel"), "--lsf": ("bsub", "bkill")}
SECONDS = 240


class StandInsForBatchSystems(made_up_job.MadeUpJobTest):
    def setUp(self):
        super().setUp()
        programs = self.folder / "bin"
        self.jobs = self.folder / "jobs"
        programs.mkdir()
        self.jobs.mkdir()
        for program in sum(SYSTEMS.values(), ()):
            (programs / program).symlink_to(STAND_IN)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "FRAGTRACE_TEST_BATCH": str(self.jobs),
        }

    def submitted(self, state):
        """The numbers of the jobs with this file in their folder."""
        return sorted(int(path.parent.name) for path in self.jobs.glob(f"*/{state}"))

    def is_running(self, job):
        """Zombies do not count: where nothing reaps orphans, they stay."""
        try:
            process = int((self.jobs / str(job) / "process").read_text())
            os.killpg(process, 0)
            return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (OSError, ValueError):
            return False

    def wait_until(self, reached):
        end = time.monotonic() + SECONDS
        while not reached() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertTrue(reached())

    def check_that_a_cancelled_job_loses_no_trace(self, option, expected):
        submit, cancel = SYSTEMS[option]
        before = len(list(self.jobs.iterdir()))
        output = self.folder / option.strip("-")
        summaries = output / "summaries"
        command = [LAUNCHER, "job", "analyze", self.job, option, "--workers", "2", "-o", output]
        command += ["--submit-option=-q short", "--python", DASK_PYTHON]
        with subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        ) as engine:
            cancelled = None
            while engine.poll() is None and cancelled is None:
                if 2 <= len(list(summaries.glob("*.json"))) <= RANKS - 2:
                    cancelled = next(filter(self.is_running, self.submitted("process")))
                    self.run_well([self.folder / "bin" / cancel, cancelled], env=self.environment)
                time.sleep(0.05)
            _, said = engine.communicate(timeout=SECONDS)
        self.assertIsNotNone(cancelled, said)
        self.assertEqual(engine.returncode, 2, said)  # one trace cannot be read
        self.assertEqual(self.result(output), expected)
        trial = before + 1
        self.assertEqual([job for job in self.submitted("held") if job > before], [trial])
        self.assertIn(trial, self.submitted("cancelled"))
        self.assertNotIn(trial, self.submitted("process"))
        self.assertGreaterEqual(len([job for job in self.submitted("process") if job > before]), 2)
        self.wait_until(lambda: not any(map(self.is_running, self.submitted("process"))))
        self.assertIn("-q short\n", (self.jobs / str(trial + 1) / "script").read_text(), submit)

    def test_a_cancelled_job_loses_no_trace_and_no_job_stays(self):
        expected = self.serial()
        for option in SYSTEMS:
            with self.subTest(option):
                self.check_that_a_cancelled_job_loses_no_trace(option, expected)

    def test_wrong_options_are_refused_in_one_line_and_no_job_stays(self):
        for option, (submit, _) in SYSTEMS.items():
            for wrong, reason in (
                ("-q nowhere", "nowhere: no such queue"),
                ("--queue=short", f"{submit}: illegal option --queue=short"),
            ):
                done = self.analyze(option, f"--submit-option={wrong}", env=self.environment)
                self.assertEqual(
                    (done.returncode, done.stdout, done.stderr),
                    (2, "", f"fragtrace: job: {option}: {reason}\n"),
                )
        self.assertEqual(list(self.jobs.iterdir()), [])

    def test_without_the_commands_one_line_says_where_to_run_it(self):
        (self.folder / "bin" / "bsub").unlink()
        done = self.analyze("--lsf", env={**self.environment, "PATH": str(self.folder / "bin")})
        self.assertEqual(
            (done.returncode, done.stderr),
            (2, "fragtrace: job: --lsf: bsub is not on the path. Run this where jobs are submitted\n"),
        )


if __name__ == "__main__":
    if DASK_PYTHON is None:
        print("skipped: distributed is not installed (scripts/setup --tests)")
        sys.exit(77)
    real_process.main()
