"""NCCL's stand-in with ranks in several processes, and in one."""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import real_process
from real_process import BUILD, LAUNCHER, environment, run, traces

CLIENTS = BUILD / "tests" / "integration" / "vgpu"
CLIENT = CLIENTS / "vgpu_nccl_client"
GROUPS_CLIENT = CLIENTS / "vgpu_nccl_groups_client"
MOMENTS_CLIENT = CLIENTS / "vgpu_nccl_moments_client"
SHARED = pathlib.Path("/dev/shm")


def segments():
    return {entry.name for entry in SHARED.glob("fragtrace-nccl-*")}


def lock_of_file(file, command, kind):
    """Locks the first byte of an open file, or asks for a lock of others. Returns the kind of lock."""
    lock = struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 1, 0)
    return struct.unpack("hhqqi4x", fcntl.fcntl(file, command, lock))[0]


def lock_shared(file):
    lock_of_file(file, fcntl.F_OFD_SETLK, fcntl.F_RDLCK)


def is_locked(path):
    with path.open("r+b") as file:
        return lock_of_file(file, fcntl.F_OFD_GETLK, fcntl.F_WRLCK) != fcntl.F_UNLCK


def kill(process):
    """Kills a process and waits until it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    state = pathlib.Path(f"/proc/{process}/stat")
    with contextlib.suppress(OSError):
        while state.read_text().rpartition(")")[2].split()[0] not in "ZX":
            time.sleep(0.01)


class Nccl(real_process.RealProcessTest):
    def trial(self, name, ranks, card=None, client=CLIENT, **variables):
        env = environment(card or f"1GiB,count={ranks}", **variables)
        done = run([client, name, str(ranks)], env=env, timeout=100)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done

    def test_collectives_bring_what_the_hosts_wrote(self):
        for ranks in (1, 2, 3):
            self.trial("values", ranks)

    def test_messages_arrive_in_order_also_if_they_are_sent_early(self):
        for ranks in (2, 4):
            self.trial("messages", ranks)

    def test_registration_takes_no_memory_and_changes_no_result(self):
        self.trial("registered", 2)

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

    def test_a_group_of_more_messages_than_have_room_ends_in_every_order(self):
        for ranks in (1, 2, 8):
            self.trial("all_to_all", ranks, client=GROUPS_CLIENT)

    def test_a_group_sends_what_its_buffers_had_before_it(self):
        self.trial("swap", 2, client=GROUPS_CLIENT)

    def test_messages_to_a_slow_peer_hold_up_no_others_of_their_group(self):
        self.trial("slow_peer", 3, client=GROUPS_CLIENT)

    def test_a_communicator_is_destroyed_when_its_groups_have_sent_everything(self):
        self.trial("destroyed", 2, client=GROUPS_CLIENT)

    def test_collectives_and_messages_of_two_communicators_in_one_group_end(self):
        for ranks in (1, 3):
            self.trial("two_communicators", ranks, client=GROUPS_CLIENT)

    def test_a_killed_peer_of_a_waiting_group_is_an_error(self):
        self.trial("killed", 2, client=GROUPS_CLIENT)

    def test_an_abort_ends_the_wait_of_a_group_and_of_a_call_after_it(self):
        self.trial("aborted", 2, client=GROUPS_CLIENT)

    def test_a_wrong_call_makes_its_group_do_nothing(self):
        self.trial("wrong_call", 1, client=GROUPS_CLIENT)

    def test_a_group_of_all_ranks_in_one_thread_uses_the_streams_of_their_devices(self):
        self.trial("one_process", 4, client=GROUPS_CLIENT)

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

    def test_a_split_reads_the_collectives_that_peers_post_at_the_last_moment_before_it(self):
        self.trial("split_at_once", 2, client=MOMENTS_CLIENT)

    def test_the_end_of_a_communicator_waits_for_its_calls(self):
        for name in ("finalized_early", "destroyed_early"):
            for ranks in (1, 2, 3):
                self.trial(name, ranks, client=MOMENTS_CLIENT)

    def test_the_end_of_a_communicator_waits_for_as_long_as_the_limit_says(self):
        env = environment("1GiB,count=2", FRAGTRACE_VIRTUAL_GPU_NCCL_LIMIT=1)
        done = run([MOMENTS_CLIENT, "never_called", "2"], env=env)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(
            done.stderr, "fragtrace: virtual NCCL: the calls of a communicator did not end within 1 s\n"
        )

    def test_a_rank_that_is_killed_while_it_joins_is_an_error_of_those_that_wait(self):
        limit = {"FRAGTRACE_VIRTUAL_GPU_NCCL_LIMIT": 20}
        done = self.trial("killed_while_joining", 2, client=MOMENTS_CLIENT, **limit)
        if "skipped: " in done.stdout:
            self.skipTest(done.stdout.strip().removeprefix("skipped: "))

    def waiting_rank(self):
        """Starts a rank that waits for another one. Returns its process id and the file of its segment."""
        client = subprocess.Popen(
            [CLIENT, "missing", "2"], env=environment("1GiB,count=2"), stdout=subprocess.DEVNULL
        )
        self.addCleanup(client.wait)
        children = pathlib.Path(f"/proc/{client.pid}/task/{client.pid}/children")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for rank in children.read_text().split():
                with contextlib.suppress(OSError):
                    for descriptor in pathlib.Path(f"/proc/{rank}/fd").iterdir():
                        file = descriptor.readlink()
                        if file.name in segments() and is_locked(file):
                            self.addCleanup(kill, int(rank))
                            return int(rank), file
            time.sleep(0.01)
        return self.fail("no rank has opened a segment")

    def linked(self, file):
        """Gives the segment a second name, in a folder where no other job's communicator looks."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fragtrace-test-", dir=SHARED))
        self.addCleanup(shutil.rmtree, folder)
        (folder / file.name).hardlink_to(file)
        return folder / file.name

    def test_the_next_communicator_removes_what_a_killed_job_left(self):
        rank, file = self.waiting_rank()
        with file.open() as segment:
            lock_shared(segment)  # until then other jobs' communicators leave it
            kill(rank)
            self.trial("values", 2)
            self.assertIn(file.name, segments())
        self.trial("values", 2)
        self.assertNotIn(file.name, segments())

    def test_clean_removes_what_a_killed_job_left_and_leaves_the_memory_of_a_running_one(self):
        rank, file = self.waiting_rank()
        link = self.linked(file)
        clean = [LAUNCHER, "clean", "--age", "0"]
        said = self.run_well([*clean, link.parent, SHARED]).stdout
        self.assertNotIn(file.name, said)
        self.assertTrue(link.exists() and file.exists())
        kill(rank)
        said = self.run_well([*clean, "--dry-run", link.parent]).stdout
        self.assertIn(file.name, said)
        self.assertTrue(link.exists())
        said = self.run_well([*clean, link.parent]).stdout
        self.assertIn(file.name, said)
        self.assertFalse(link.exists())
        # The first name is the one that another job's communicator may have removed before.
        self.run_well([*clean, SHARED])
        self.assertFalse(file.exists())

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
            self.assertRegex(report, r"64 MiB (join in vgpu_nccl_client|\S+:\d+ join) \(libraries\)")

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
            # With debug information, the function has two lines.
            line = r"(connections in vgpu_nccl_client|\S+:\d+ connections) \(libraries\)"
            lines = {where: int(mib) for mib, where in reversed(re.findall(rf"(\d+) MiB {line}", text))}
            held.append(sum(lines.values()))
            zeros = "at least 2 results of NCCL (4 MiB) were larger than 1 MiB and brought zeros"
            self.assertIn(zeros, text)
            self.assertIn("the device memory of NCCL follows a model (nccl=model)", text)
        self.assertEqual(sorted(held), [384, 448, 704])
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
