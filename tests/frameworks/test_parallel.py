"""Training with several ranks on the virtual GPU, whose NCCL lets ranks wait for each other.

Every rank is recorded, nothing is lost, and the replay of the recorded settings equals the recording.
"""

import os

import real_process
from real_process import TORCH_PYTHON, environment, traces
from torch_jobs import PROGRAMS, beside_torch, differences, torchrun

PARTS = (
    "collectives",
    "objects",
    "ddp",
    "zero_1",
    "fsdp_1",
    "fsdp_2",
    "hsdp",
    "tp_fsdp_2",
    "tp_dp",
    "pipeline_1f1b",
    "pipeline_gpipe",
    "pipeline_interleaved",
    "context_parallel",
    "early_message",
)


class Parallel(real_process.RealProcessTest):
    def torchrun(self, ranks, program, *arguments, expected=0, module=None, options=(), **variables):
        """The lines that start with a rank, sorted."""
        beside = {} if module is None else beside_torch(module)
        if beside is None:
            self.skipTest(f"no {module} beside PyTorch (scripts/setup --tests installs it)")
        env = environment(f"8GiB,count={ranks}", self.folder, OMP_NUM_THREADS=1, **variables, **beside)
        command = torchrun(ranks, *options, PROGRAMS / program, *arguments)
        done = self.run_well(command, expected, env=env)
        self.stderr = done.stderr
        return sorted(line for line in done.stdout.splitlines() if line[:1].isdigit())

    def assert_ranks(self, ranks):
        """Each rank has a trace, nothing is lost, and all placements agree."""
        found = traces(self.folder)
        self.assertEqual(len(found), ranks)
        for trace in found:
            self.assertEqual(differences(self.report(trace)), [], trace)

    def test_all_ways_of_pytorch_run_on_four_ranks(self):
        lines = self.torchrun(4, "parallel.py")
        self.assertEqual(lines, sorted(f"{rank} {part}" for rank in range(4) for part in PARTS))
        self.assert_ranks(4)

    def test_ranks_can_be_spawned(self):
        env = environment("8GiB,count=2", self.folder)
        done = self.run_well([TORCH_PYTHON, PROGRAMS / "spawned_ranks.py"], env=env)
        self.assertEqual(sorted(done.stdout.splitlines()), ["0 done", "1 done"])
        self.assert_ranks(2)

    def test_a_job_is_restarted_after_a_rank_was_killed_in_a_collective(self):
        # A new store per generation. In a shared one, rank 1 may find the unique id of the killed generation.
        lines = self.torchrun(
            2,
            "restarted_ranks.py",
            options=("--max-restarts", "1"),
            TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1,
        )
        self.assertEqual(lines, ["0 done in generation 1", "1 done in generation 1"])
        self.assert_ranks(4)

    def test_the_watchdog_ends_a_rank_whose_peer_does_not_come(self):
        lines = self.torchrun(2, "hanging_ranks.py", expected=1, TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC=100)
        self.assertEqual(lines, [])
        self.assertIn("due to timeout", self.stderr)

    def test_lightning_trains_in_parallel(self):
        for strategy in ("ddp", "fsdp"):
            with self.subTest(strategy=strategy):
                for trace in traces(self.folder):
                    trace.unlink()
                lines = self.torchrun(2, "lightning_ranks.py", strategy, module="lightning")
                self.assertEqual(lines, ["0 3 steps", "1 3 steps"])
                self.assert_ranks(2)

    def test_accelerate_trains_in_parallel(self):
        lines = self.torchrun(2, "accelerate_ranks.py", module="accelerate")
        self.assertEqual(lines, ["0 done", "1 done"])
        self.assert_ranks(2)

    def test_deepspeed_trains_with_every_stage_of_zero(self):
        lines = self.torchrun(2, "deepspeed_ranks.py", "1", "2", "3", module="deepspeed")
        self.assertEqual(lines, [f"{rank} stage {stage}" for rank in (0, 1) for stage in (1, 2, 3)])
        self.assert_ranks(2)


if __name__ == "__main__":
    assert os.access(TORCH_PYTHON, os.X_OK), TORCH_PYTHON
    real_process.main()
