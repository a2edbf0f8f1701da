"""Cards that several processes share: free memory, NVML, and what stays when a process ends or is killed."""

import os
import pathlib
import random
import signal
import struct
import time
import uuid

import real_process
from real_process import BUILD, LAUNCHER, MIB, environment, run
from talking_process import TalkingProcess

CLIENT = BUILD / "tests" / "integration" / "vgpu" / "vgpu_cards_client"
SHARED = pathlib.Path("/dev/shm")
CONTEXT = 16 * MIB
# Kills of the test with random moments. scripts/test takes the short form.
KILLS = int(os.environ.get("FRAGTRACE_TEST_KILLS", "60"))


class Client(TalkingProcess):
    """clients/cards_client.c"""

    def __init__(self, test, env, device=0):
        super().__init__(test, [CLIENT, device], env)

    def free(self):
        return int(self.ask("info").split()[0])

    def nvml(self):
        """Bytes in use, free bytes, and the bytes of each process."""
        used, free, *processes = self.ask("nvml").split()
        return int(used), int(free), {int(p): int(b) for p, b in (one.split(":") for one in processes)}


class Cards(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        self.name = f"test-{uuid.uuid4().hex[:16]}"
        self.addCleanup(self.remove_books)

    def remove_books(self):
        for book in self.books():
            book.unlink()

    def books(self):
        return sorted(SHARED.glob(f"fragtrace-cards-*-{self.name}-*"))

    def client(self, card="1GiB,context=16MiB", device=0, shared=None, **variables):
        return Client(self, environment(f"{card},shared={shared or self.name}", **variables), device)

    def assert_told_alike(self, observer, taken, total=1024 * MIB):
        """cuMemGetInfo, NVML's memory and NVML's processes say that exactly these processes hold the card."""
        used, free, processes = observer.nvml()
        self.assertEqual(processes, taken)
        self.assertEqual(used, sum(taken.values()))
        self.assertEqual(free, total - used)
        self.assertEqual(observer.free(), total - used)

    def test_two_processes_share_the_memory_of_a_card(self):
        first, second = self.client(), self.client()
        self.assertTrue(first.ask(f"alloc {600 * MIB}").startswith("0x"))
        self.assertEqual(second.free(), 1024 * MIB - 2 * CONTEXT - 600 * MIB)
        self.assertEqual(second.ask(f"alloc {600 * MIB}"), "refused")
        self.assertTrue(second.ask(f"alloc {392 * MIB}").startswith("0x"))
        self.assert_told_alike(first, {first.pid: 600 * MIB + CONTEXT, second.pid: 392 * MIB + CONTEXT})
        self.assertEqual(first.ask("free"), "0")
        self.assertTrue(second.ask(f"alloc {600 * MIB}").startswith("0x"))
        third = self.client()
        self.assertEqual(third.greeting, "no room for a context")

    def test_every_card_of_a_set_has_its_own_memory(self):
        card = "1GiB,context=16MiB,count=3"
        first = self.client(card, device=2)
        second = self.client(card, device=0, CUDA_VISIBLE_DEVICES="2,1")
        third = self.client(card, device=1)
        first.ask(f"alloc {100 * MIB}")
        self.assertEqual(second.free(), 1024 * MIB - 2 * CONTEXT - 100 * MIB)
        self.assertEqual(third.free(), 1024 * MIB - CONTEXT)

    def test_other_names_other_hosts_and_off_share_nothing(self):
        first = self.client()
        first.ask(f"alloc {600 * MIB}")
        for other in (
            self.client(shared=f"{self.name}-2"),
            self.client(FRAGTRACE_VIRTUAL_GPU_HOST=3),
            self.client(shared="off"),
            self.client(shared="off", FRAGTRACE_VIRTUAL_GPU_CARDS=self.name),
        ):
            self.assertEqual(other.free(), 1024 * MIB - CONTEXT)
        same = Client(self, environment("1GiB,context=16MiB", FRAGTRACE_VIRTUAL_GPU_CARDS=self.name))
        self.assertEqual(same.free(), 1024 * MIB - 2 * CONTEXT - 600 * MIB)

    def test_a_card_of_another_size_is_refused_in_one_line(self):
        first = self.client()
        second = self.client("2GiB")
        self.assertEqual(second.greeting, "no device: 101")
        second.process.wait()
        said = second.process.stderr.read()
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn(f"'{self.name}' have {1024 * MIB} bytes, not {2048 * MIB}", said)
        first.end()
        self.assertEqual(self.client("2GiB,context=0").free(), 2048 * MIB)

    def test_what_a_process_gives_up_is_free_for_the_others(self):
        for way in ("free", "reset", "release", "exit", "kill"):
            with self.subTest(way):
                observer, other = self.client(), self.client()
                other.ask(f"alloc {300 * MIB}")
                self.assertEqual(observer.nvml()[2][other.pid], CONTEXT + 300 * MIB)
                if way in ("exit", "kill"):
                    getattr(other, {"exit": "end"}.get(way, way))()
                else:
                    self.assertEqual(other.ask(way), "0")
                kept = {"free": CONTEXT, "reset": CONTEXT}.get(way)
                left = {observer.pid: CONTEXT} | ({other.pid: kept} if kept else {})
                self.assert_told_alike(observer, left)
                self.assertTrue(observer.ask(f"alloc {960 * MIB}").startswith("0x"))
                for client in (observer, other):
                    client.kill()

    def test_a_program_that_executes_another_one_has_nothing_left(self):
        observer, other = self.client(), self.client()
        other.ask(f"alloc {300 * MIB}")
        self.assertEqual(int(other.ask("exec")), other.pid)
        self.wait_until(lambda: pathlib.Path(f"/proc/{other.pid}/comm").read_text() == "sleep\n")
        self.assert_told_alike(observer, {observer.pid: CONTEXT})

    def test_a_forked_child_holds_nothing_until_it_allocates(self):
        observer, parent = self.client(), self.client()
        parent.ask(f"alloc {300 * MIB}")
        self.fork(parent, "fork", "waits")
        whole = {observer.pid: CONTEXT, parent.pid: CONTEXT + 300 * MIB}
        self.assert_told_alike(observer, whole)
        busy = self.fork(parent, f"forkalloc {100 * MIB}", "taken")
        self.assert_told_alike(observer, whole | {busy: 100 * MIB})
        parent.kill()
        self.assert_told_alike(observer, {observer.pid: CONTEXT, busy: 100 * MIB})

    def test_a_process_that_closes_all_descriptors_counts_again_at_its_next_call(self):
        observer, other = self.client(), self.client()
        other.ask(f"alloc {300 * MIB}")
        other.ask("close")
        other.ask(f"alloc {100 * MIB}")
        self.assert_told_alike(observer, {observer.pid: CONTEXT, other.pid: CONTEXT + 400 * MIB})

    def test_after_kills_at_random_moments_the_sum_is_that_of_the_living(self):
        chance = random.Random(7)
        observer = self.client()
        living = []
        for number in range(KILLS):
            while len(living) < 4:
                client = self.client()
                if client.greeting == "no room for a context":
                    living.pop(0).kill()
                    continue
                living.append(client)
                self.assertEqual(client.ask(f"random {chance.randrange(1 << 30)}"), "begins")
            time.sleep(chance.uniform(0, 0.004))
            killed = living.pop(chance.randrange(len(living)))
            killed.kill()
            if number % 10 != 9:
                continue
            for client in living:  # a stopped process holds what it held
                os.kill(client.pid, signal.SIGSTOP)
            for client in living:
                self.wait_until(lambda pid=client.pid: self.state_of(pid) == "T")
            processes = observer.nvml()[2]
            self.assertEqual(set(processes), {observer.pid, *(client.pid for client in living)})
            self.assert_told_alike(observer, processes)
            self.assertLessEqual(sum(processes.values()), 1024 * MIB)
            for client in living:
                os.kill(client.pid, signal.SIGCONT)
        for client in living:
            client.kill()
        self.assert_told_alike(observer, {observer.pid: CONTEXT})
        self.assertTrue(observer.ask(f"alloc {1008 * MIB}").startswith("0x"))

    def test_pages_of_ended_processes_are_taken_again(self):
        observer = self.client()
        for _ in range(20):
            self.client().kill()
        self.assert_told_alike(observer, {observer.pid: CONTEXT})
        (book,) = self.books()
        content = book.read_bytes()
        header, page = 16, 8 + 64 * 8  # common/card_book.h
        pages = [struct.unpack_from("i", content, at)[0] for at in range(header, len(content), page)]
        self.assertEqual(len([process for process in pages if process != 0]), 2)

    def test_the_next_process_removes_a_book_that_nobody_uses(self):
        self.client().kill()
        left = self.books()
        self.assertEqual(len(left), 1)
        other = self.client(shared=f"{self.name}-other")
        self.assertEqual([book for book in left if book.exists()], [])
        self.assertEqual(other.greeting, "ready")

    def test_clean_lists_and_removes_what_nobody_uses(self):
        self.client().kill()
        (left,) = self.books()
        said = self.run_well([LAUNCHER, "clean", "--dry-run", "--age", "0", SHARED]).stdout
        self.assertRegex(said, rf"{left}  .* would go\n")
        used = self.client(shared=f"{self.name}-used")  # this removes the first one
        self.client(shared=f"{self.name}-third").kill()
        third, still_used = sorted(self.books(), key=lambda book: "-used-" in book.name)
        foreign = SHARED / f"fragtrace-cards-{self.name}.txt"
        foreign.write_text("somebody else's file")
        self.addCleanup(foreign.unlink)
        said = self.run_well([LAUNCHER, "clean", "--age", "0", SHARED]).stdout
        self.assertRegex(said, rf"{third}  .* removed\n")
        self.assertNotIn(still_used.name, said)
        self.assertNotIn(foreign.name, said)
        self.assertTrue(still_used.exists() and foreign.exists())
        self.assertFalse(third.exists())
        self.assertEqual(used.free(), 1024 * MIB - CONTEXT)

    def test_the_processes_of_one_run_share_its_cards_and_those_of_another_run_do_not(self):
        name = "echo $FRAGTRACE_VIRTUAL_GPU_CARDS; "
        first = f"(printf 'alloc {600 * MIB}\\n'; sleep 2) | {CLIENT} 0 & sleep 0.5; "
        second = f"printf 'alloc {600 * MIB}\\ninfo\\n' | {CLIENT} 0; wait"
        command = name + first + second
        for sharing, answers in (
            ("", ["refused", f"{392 * MIB} {1024 * MIB}"]),
            (",shared=off", ["0x200000000000"]),
        ):
            card = f"1GiB,context=16MiB{sharing}"
            done = self.run_well(
                [LAUNCHER, "run", "--no-record", "--virtual-gpu", card, "--", "sh", "-c", command],
                env=environment(),
            )
            for answer in answers:
                self.assertIn(answer, done.stdout.splitlines())
            self.assertEqual("refused" in done.stdout, sharing == "")
            shared = done.stdout.splitlines()[0]
            self.assertTrue(shared)
            self.assertEqual(list(SHARED.glob(f"fragtrace-cards-*-{shared}-*")), [])

    def test_a_bad_name_is_named_in_one_line(self):
        for name in ("", "a/b", "a b", "x" * 33):
            done = run(
                [LAUNCHER, "run", "--virtual-gpu", f"1GiB,shared={name}", "--", "true"], env=environment()
            )
            self.assertEqual(done.returncode, 2, name)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def fork(self, parent, command, said):
        lines = [parent.ask(command), parent.read()]
        self.assertIn(said, lines)
        lines.remove(said)
        self.addCleanup(os.kill, int(lines[0]), signal.SIGKILL)
        return int(lines[0])

    @staticmethod
    def state_of(pid):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    def wait_until(self, is_true):
        for _ in range(5000):
            if is_true():
                return
            time.sleep(0.002)
        self.fail("this did not become true in 10 s")


if __name__ == "__main__":
    assert os.access(CLIENT, os.X_OK), CLIENT
    real_process.main()
