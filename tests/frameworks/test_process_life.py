"""Training that is killed, and training that the recorder must not change."""

import pathlib
import re
import subprocess
import time

import real_process
from real_process import TORCH_PYTHON, abort_at_end, environment, read_log, run
from torch_process import GPT, HOLES, TorchTest

TRAINER = pathlib.Path(__file__).with_name("train_and_log.py")
SHORT = [GPT, "--layers", "2", "--width", "128", "--steps", "10", "--max-length", "128"]


class ProcessLife(TorchTest):
    def test_a_kill_during_training_loses_no_completed_allocation(self):
        for least in (200, 5000):  # allocations before the kill
            folder = self.folder / f"{least}"
            folder.mkdir()
            log = folder / "log"
            with subprocess.Popen(
                [TORCH_PYTHON, str(TRAINER), str(log)], env=environment("4GiB", record_to=folder)
            ) as process:
                until = time.monotonic() + 240
                try:
                    while not (log.exists() and len(read_log(log)) >= least):
                        self.assertIsNone(process.poll(), "the trainer ended by itself")
                        self.assertLess(time.monotonic(), until)
                        time.sleep(0.05)
                finally:
                    process.kill()
            logged = read_log(log)
            self.assertGreaterEqual(len(logged), least)
            trace = self.only_trace(folder)
            report = self.report(trace)
            self.assertEqual(report["source"]["ended"], "killed")
            self.assertEqual(report["source"]["events_lost"], 0)
            self.assertEqual(report["devices"][0]["violations"], 0)
            self.assert_events_hold(trace, logged, "block_alloc")

    def assert_unchanged(self, program, card):
        command = [TORCH_PYTHON, *program]
        plain, shimmed = (
            self.without_abort_at_end(run(command, env=env), env)
            for env in (environment(card), environment(card, record_to=self.folder))
        )
        self.assertEqual(shimmed.returncode, plain.returncode, shimmed.stderr)
        self.assertEqual(shimmed.stdout, plain.stdout)
        self.assertEqual(shimmed.stderr, plain.stderr)
        return shimmed

    def test_the_shim_changes_nothing_in_a_training(self):
        self.assertEqual(self.assert_unchanged(SHORT, "2GiB").returncode, 0)

    def test_the_shim_changes_nothing_in_an_out_of_memory(self):
        self.assertEqual(self.assert_unchanged([HOLES], "1894MiB,context=0").returncode, 1)

    def test_the_launcher_prints_the_verdict_after_an_out_of_memory(self):
        done = run(
            [real_process.LAUNCHER, "run", "--virtual-gpu", "1894MiB,context=0", "--", TORCH_PYTHON, HOLES],
            cwd=self.folder,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        verdict = done.stderr.split("OutOfMemoryError", 1)[1].split("\n", 1)[1]
        verdict, listed = verdict.split("fragtrace: 1 trace of job", 1)
        self.assertIn("holes.", listed)
        self.assertTrue(1 <= verdict.count("\n") <= 25, done.stderr)
        self.assertTrue(re.search(r"256 MiB", verdict), verdict)

    def test_every_block_lies_in_a_recorded_segment(self):
        _, trace, _ = self.train(SHORT, "2GiB")
        report = self.report(trace)
        self.assertEqual(report["devices"][0]["violations"], 0)
        lines = self.events(trace)
        self.assertTrue(any("device_alloc" in line for line in lines))
        self.assertTrue(any("block_alloc" in line for line in lines))

    ABORTS = (
        "import os, sys, torch; torch.ones(8, device='cuda'); print('done', flush=True); "
        "print(sys.argv[1], file=sys.stderr, flush=True); os.abort()"
    )

    def test_an_abort_of_pytorch_at_its_end_is_accepted_only_for_trainings(self):
        env = environment("1GiB", record_to=self.folder)
        done = self.run_training(["-c", self.ABORTS, abort_at_end.LINE], env=env)
        self.assertEqual((done.stdout, done.stderr), ("done\n", ""))
        with self.assertRaises(AssertionError):
            self.run_well([TORCH_PYTHON, "-c", self.ABORTS, abort_at_end.LINE], env=env)
        for said in ("Segmentation fault", f"Traceback\n{abort_at_end.LINE}"):
            with self.assertRaises(AssertionError, msg=said):
                self.run_training(["-c", self.ABORTS, said], env=env)

    def test_an_abort_at_the_end_that_is_not_in_the_trace_is_an_error(self):
        env = environment("1GiB", record_to=self.folder)
        done = self.run_training(["-c", "import torch; torch.ones(8, device='cuda')"], env=env)
        done.returncode, done.stderr = -6, abort_at_end.LINE + "\n"
        with self.assertRaises(AssertionError):
            self.without_abort_at_end(done, env)


if __name__ == "__main__":
    real_process.main()
