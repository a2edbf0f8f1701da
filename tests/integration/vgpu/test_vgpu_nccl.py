"""NCCL's stand-in with ranks in several processes, and in one."""

import os
import pathlib
import re

import real_process
from real_process import BUILD, LAUNCHER, environment, run, traces

CLIENT = BUILD / "tests" / "integration" / "vgpu" / "vgpu_nccl_client"
SHARED = pathlib.Path("/dev/shm")


def segments():
    return {entry.name for entry in SHARED.glob("fragtrace-nccl-*")}


class Nccl(real_process.RealProcessTest):
    def trial(self, name, ranks, card=None, **variables):
        env = environment(card or f"1GiB,count={ranks}", **variables)
        done = run([CLIENT, name, str(ranks)], env=env, timeout=100)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done

    def test_collectives_bring_what_the_hosts_wrote(self):
        for ranks in (1, 2, 3):
            self.trial("values", ranks)

    def test_messages_arrive_in_order_also_if_they_are_sent_early(self):
        for ranks in (2, 4):
            self.trial("messages", ranks)

    def test_streams_and_events_wait_for_the_peers(self):
        self.trial("waits", 2)

    def test_a_split_agrees_on_ranks_and_sizes(self):
        self.trial("split", 5)

    def test_a_split_overwrites_no_collective_that_a_slow_rank_has_still_to_read(self):
        self.trial("split_ahead", 2)

    def test_a_killed_rank_is_an_error_and_the_others_go_on_without_it(self):
        self.trial("shrink", 4)

    def test_an_abort_ends_the_wait(self):
        self.trial("aborted", 2)

    def test_different_calls_of_two_ranks_are_an_error(self):
        self.trial("disagree", 2)

    def test_all_ranks_can_be_in_one_process(self):
        self.trial("one_process", 4)

    def test_an_id_of_a_process_that_has_ended_is_an_error(self):
        self.trial("stale", 1)

    def test_64_ranks_on_64_devices(self):
        self.trial("many", 64)

    def test_a_missing_rank_is_waited_for_as_long_as_the_limit_says(self):
        env = environment("1GiB,count=2", FRAGTRACE_VIRTUAL_GPU_NCCL_LIMIT=1)
        done = run([CLIENT, "missing", "2"], env=env)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(
            done.stderr, "fragtrace: virtual NCCL: not all ranks of a communicator came within 1 s\n"
        )

    def test_the_next_communicator_removes_what_a_killed_job_left(self):
        before = segments()
        self.trial("left_behind", 2)
        left = segments() - before
        self.trial("values", 2)
        # Another job's communicator may have removed it first.
        self.assertLessEqual(len(left), 1)
        self.assertEqual(left & segments(), set())

    def test_clean_removes_what_a_killed_job_left_and_leaves_the_memory_of_a_running_one(self):
        before = segments()
        self.trial("left_behind", 2)
        left = segments() - before
        said = self.run_well([LAUNCHER, "clean", "--age", "0", SHARED]).stdout
        # Another job's communicator may have removed it first.
        for name in left:
            self.assertNotIn(name, segments())
        self.assertLessEqual(said.count("fragtrace-nccl-"), max(1, len(left)))

    def test_memory_of_a_communicator_is_recorded_with_the_stack_of_its_creation(self):
        plain = self.trial("memory", 2).stdout
        self.assertEqual(plain.count(": 0 bytes\n"), 2, plain)
        done = self.trial("memory", 2, "1GiB,count=2,nccl=64MiB", record_to=self.folder)
        self.assertEqual(done.stdout.count(f": {64 << 20} bytes\n"), 2, done.stdout)
        self.assertEqual(done.stdout.count(f": {68 << 20} bytes\n"), 2, done.stdout)
        recorded = traces(self.folder)
        self.assertEqual(len(recorded), 2)
        for trace in recorded:
            report = self.run_well([real_process.ANALYZER, trace, "--no-whatif"]).stdout
            self.assertIn("64 MiB join in vgpu_nccl_client (libraries)", report)

    def test_buffers_of_connections_follow_the_model_and_large_results_are_zeros(self):
        card = "4GiB,count=3,nccl=model"
        lines = sorted(self.trial("connections", 3, card, record_to=self.folder).stdout.splitlines())
        # Per channel 2 MiB to send and 10 MiB to receive; 32 channels.
        self.assertEqual(
            lines,
            [
                f"rank {rank}, step {step}: {mib} MiB"
                for rank, last in enumerate((384 + 64, 384 + 320, 384))
                for step, mib in enumerate((384, 384, last))
            ],
        )
        held = []
        for trace in traces(self.folder):
            text = self.run_well([real_process.ANALYZER, trace, "--no-whatif"]).stdout
            held.append(re.search(r"(\d+) MiB connections in vgpu_nccl_client \(libraries\)", text).group(1))
            zeros = "at least 2 results of NCCL (4 MiB) were larger than 1 MiB and brought zeros"
            self.assertIn(zeros, text)
            self.assertIn("the device memory of NCCL follows a model (nccl=model)", text)
        self.assertEqual(sorted(held), ["384", "448", "704"])
        few = self.trial(
            "connections", 2, "4GiB,count=2,nccl=model", NCCL_MAX_NCHANNELS=2, NCCL_BUFFSIZE=1 << 20
        )
        # 2 MiB and 6.2 MiB, which is 8 MiB in pages.
        self.assertIn("rank 0, step 0: 20 MiB\n", few.stdout)
        plain = self.trial("connections", 2).stdout
        self.assertEqual(plain.count(": 0 MiB\n"), 6, plain)


if __name__ == "__main__":
    assert os.access(CLIENT, os.X_OK), CLIENT
    real_process.main()
