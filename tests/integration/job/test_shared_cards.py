"""One card, several processes: what the reports say about a process that failed because of another one."""

import json
import os
import time
import uuid

import real_process
from real_process import ANALYZER, BUILD, MIB, environment, traces
from talking_process import TalkingProcess

CLIENT = BUILD / "tests" / "integration" / "vgpu" / "vgpu_cards_client"
PROGRAM = real_process.SOURCE / "tests" / "integration" / "job" / "shared_card.py"
CONTEXT = 16 * MIB
TAKE = r"\S*shared_card\.py:\d+ take"
# Of the client, as far as its build has debug information.
LINE = r"(?:main in \S+|\S+cards_client\.c:\d+ \w+)"


class SharedCardTest(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        self.card = f"1GiB,context=16MiB,shared=test-{uuid.uuid4().hex[:16]}"

    def start(self, *command):
        env = environment(self.card, record_to=self.folder, PYTORCH_NO_CUDA_MEMORY_CACHING="")
        del env["PYTORCH_NO_CUDA_MEMORY_CACHING"]
        process = TalkingProcess(self, command, env)
        self.assertEqual(process.greeting, "ready")
        return process

    def client(self):
        return self.start(CLIENT, "0")

    def trace_of(self, process):
        (trace,) = [path for path in traces(self.folder) if f".{process.pid}." in path.name]
        return trace

    def texts(self, failed):
        """The text of the failed process's report, and the text and JSON of the folder."""
        single = self.run_well([ANALYZER, self.trace_of(failed), "--no-whatif"]).stdout
        file = self.folder / "job.json"
        folder = self.run_well([ANALYZER, self.folder, "--json", file, "--force"]).stdout
        return single, folder, json.loads(file.read_text())

    def users(self, job):
        """The shared card's processes: bytes and what is known of the moment, by process id."""
        (card,) = job["shared_cards"]
        self.assertTrue(card["at_failure"])
        self.assertEqual(card["sum_bytes"], sum(user["bytes"] for user in card["users"]))
        return {job["processes"][user["index"]]["process"]: user for user in card["users"]}


class SmallPrograms(SharedCardTest):
    def test_each_of_four_small_processes_is_named_with_what_it_held(self):
        """As under MPS, where many processes have a part of the card each."""
        clients = [self.client() for _ in range(4)]
        for client, mib in zip(clients, (300, 200, 100, 64)):
            client.ask(f"alloc {mib * MIB}")
        failed = clients[3]
        self.assertEqual(failed.ask(f"alloc {400 * MIB}"), "refused")
        clients[0].ask("free")  # later changes do not count
        clients[1].ask(f"alloc {250 * MIB}")
        for client in clients:
            client.end()
        single, folder, job = self.texts(failed)
        self.assertRegex(
            single,
            rf"3 other processes held 648 MiB of the card when memory ran out, mostly pid {clients[0].pid} "
            r"\(vgpu_cards_client 0\) \(316 MiB\)",
        )
        # 1,024 - 664 and four contexts. Before the failure, the driver had reported more.
        self.assertIn("400 MiB requested, 296 MiB free", single)
        users = self.users(job)
        self.assertEqual(
            {client.pid: users[client.pid]["bytes"] for client in clients},
            dict(zip((client.pid for client in clients), (300 * MIB, 200 * MIB, 100 * MIB, 64 * MIB))),
        )
        self.assertTrue(job["shared_cards"][0]["exact"])
        self.assertIn("its processes had allocated (without contexts) 664 MiB of 1 GiB", folder)
        self.assertRegex(
            folder, rf"pid {clients[1].pid} \(.*\) 200 MiB, most in {LINE} \(200 MiB in 1 block\)"
        )

    def test_a_process_that_ended_before_the_failure_is_not_named_and_a_killed_one_was_there(self):
        ended, killed, failed = self.client(), self.client(), self.client()
        for client in (ended, killed):
            client.ask(f"alloc {300 * MIB}")
        ended.end()
        self.assertEqual(failed.ask(f"alloc {800 * MIB}"), "refused")
        killed.kill()
        self.assertTrue(failed.ask(f"alloc {800 * MIB}").startswith("0x"))
        failed.end()
        single, folder, job = self.texts(failed)
        self.assertIn(f"mostly pid {killed.pid} (vgpu_cards_client 0) (316 MiB)", single)
        self.assertEqual(set(self.users(job)), {killed.pid})
        self.assertRegex(folder, rf"pid {killed.pid} \(.*\) 300 MiB, most in {LINE}")
        self.assertNotRegex(folder, rf"same card.*pid {ended.pid}")

    def test_processes_that_have_only_contexts_are_named_with_their_size(self):
        self.card = self.card.replace("1GiB,context=16MiB", "1GiB,context=300MiB")
        idle, ended, failed = self.client(), self.client(), self.client()
        ended.end()
        self.assertEqual(failed.ask(f"alloc {600 * MIB}"), "refused")
        idle.end()
        failed.end()
        _, folder, job = self.texts(failed)
        (card,) = job["shared_cards"]
        self.assertEqual((card["users"], card["sum_bytes"]), ([], 0))
        only = {job["processes"][user["index"]]["process"]: user for user in card["only_contexts"]}
        self.assertEqual(set(only), {idle.pid, failed.pid})
        for user in only.values():
            self.assertEqual((user["bytes"], user["virtual"], user["nothing_else"]), (300 * MIB, True, True))
        self.assertRegex(
            folder,
            rf"  holders +pid {idle.pid} \(.*\) only its context, 300 MiB "
            r"\(assumption: the context of a virtual card\)\n",
        )

    def test_processes_with_cards_of_their_own_do_not_share_a_card_in_the_view(self):
        for number in range(2):
            self.card = f"1GiB,shared=test-{os.getpid()}-{number}"
            client = self.client()
            client.ask(f"alloc {300 * MIB}")
            client.ask(f"alloc {1000 * MIB}")
            client.end()
        self.card = "1GiB"
        for client in [self.client(), self.client()]:
            client.ask(f"alloc {300 * MIB}")
            client.end()
        job = json.loads(self.run_well([ANALYZER, self.folder, "--json", "-"]).stdout)
        self.assertEqual((len(job["processes"]), job["shared_cards"]), (4, []))


class Containers(SharedCardTest):
    """In each container the main process has the id 1."""

    def test_the_holder_in_another_container_is_named_although_both_processes_have_the_id_1(self):
        holder, failed = (self.start(*self.container(), CLIENT, "0") for _ in range(2))
        holder.ask(f"alloc {700 * MIB}")
        self.assertEqual(failed.ask(f"alloc {600 * MIB}"), "refused")
        failed.end()
        holder.kill()
        one, other = traces(self.folder)
        self.assertTrue(".1." in one.name and ".1." in other.name, (one, other))
        self.assert_names_holder()

    def test_no_other_process_is_taken_for_one_of_a_container(self):
        """The list of the driver's library has process ids, which mean others outside."""
        holder, failed = self.start(*self.container(), CLIENT, "0"), self.client()
        holder.ask(f"alloc {700 * MIB}")
        self.assertEqual(failed.ask(f"alloc {600 * MIB}"), "refused")
        failed.end()
        holder.kill()
        self.assertNotIn("mostly pid", self.run_well([ANALYZER, self.trace_of(failed), "--no-whatif"]).stdout)
        self.assert_names_holder()

    def assert_names_holder(self):
        folder = self.run_well([ANALYZER, self.folder, "--json", self.folder / "job.json"]).stdout
        job = json.loads((self.folder / "job.json").read_text())
        (holding,) = self.users(job).values()
        self.assertEqual(holding["bytes"], 700 * MIB)
        self.assertEqual(job["processes"][holding["index"]]["process"], 1)
        holds = rf"700 MiB, most in {LINE} .*: it may have ended since\n"
        self.assertRegex(folder, r"  holders +pid 1 .*\(vgpu_cards_client 0\) " + holds)


class Pytorch(SharedCardTest):
    """The same with PyTorch: lines of Python, phases, and memory in its cache."""

    def setUp(self):
        super().setUp()
        if not real_process.TORCH_PYTHON:
            self.skipTest("no interpreter with PyTorch")

    def torch(self):
        return self.start(real_process.TORCH_PYTHON, PROGRAM)

    def end(self, *processes):
        for process in processes:
            code, errors = process.end()
            self.assertEqual(code, 0, errors)

    def test_free_memory_is_that_of_the_failure_also_if_another_process_frees_or_allocates_later(self):
        serve, train = self.torch(), self.torch()
        self.assertEqual(train.ask("take weights 300 build"), "ok")
        self.assertEqual(serve.ask("take model 640 load"), "ok")
        self.assertEqual(train.ask("take activations 200 forward"), "out of memory")
        serve.ask("drop model")
        serve.ask("empty")
        self.assertEqual(train.ask("take activations 200 forward"), "ok")
        self.assertEqual(serve.ask("take model 400 load"), "ok")
        self.assertEqual(train.ask("take activations 200 forward"), "out of memory")
        self.end(serve, train)
        single, folder, _ = self.texts(train)
        report = json.loads(self.run_well([ANALYZER, self.trace_of(train), "--json", "-"]).stdout)
        verdicts = report["ooms"]
        # 1 GiB less two contexts of 16 MiB, and less what both processes had.
        free = [(1024 - 32 - 300 - 640) * MIB, (1024 - 32 - 500 - 400) * MIB]
        self.assertEqual([verdict["device_free_bytes"] for verdict in verdicts], free)
        # The report and the view of the job are about the failure after which nothing was served.
        for text in (single, folder):
            self.assertIn("200 MiB requested, 0 B free in the pool and 92 MiB on the device", text)
        # The list of processes may be that of the first failure, but never says more than there was.
        self.assertRegex(
            single, r"(?m)^  culprit +other processes hold 416 MiB of the card, all of it pid \d+ "
        )
        self.assertRegex(
            single, r"(?m)^  earlier .*; the first: 200 MiB requested, .*other processes hold 656 MiB"
        )

    def test_a_growing_inference_process_is_named_when_training_fails(self):
        serve, train = self.torch(), self.torch()
        self.assertEqual(train.ask("take weights 300 build"), "ok")
        self.assertEqual(serve.ask("take model 40 load"), "ok")
        serve.ask("phase decode")
        for _ in range(6):
            self.assertEqual(serve.ask("take cache 100 attention"), "ok")
        self.assertEqual(train.ask("take activations 200 forward"), "out of memory")
        serve.ask("drop cache")
        self.end(serve, train)
        single, folder, job = self.texts(train)
        self.assertRegex(
            single,
            rf"other processes hold 656 MiB of the card, all of it pid {serve.pid} "
            r"\(python\S* shared_card.py\) with 656 MiB",
        )
        lines = folder.splitlines()
        self.assertRegex(lines[0], rf"pid {train.pid} of 2 processes ran out of memory first")
        (holders,) = [line for line in lines if line.startswith("  holders")]
        self.assertRegex(
            holders,
            rf"pid {serve.pid} \(.*shared_card.py\) 640 MiB, most in {TAKE} \(640 MiB in 7 blocks\), "
            r"in phase decode",
        )
        self.assertNotIn(f"pid {train.pid}", holders)
        moment = self.users(job)[serve.pid]["moment"]
        self.assertEqual((moment["bytes"], moment["phase"]), (640 * MIB, "decode"))

    def test_an_idle_notebook_that_holds_memory_is_named_with_its_idle_time(self):
        notebook, train = self.torch(), self.torch()
        self.assertEqual(notebook.ask("take frame 700 cell-3"), "ok")
        time.sleep(1.5)
        self.assertEqual(train.ask("take weights 400 build"), "out of memory")
        notebook.kill()
        self.end(train)
        single, folder, job = self.texts(train)
        self.assertIn(f"all of it pid {notebook.pid} (", single)
        self.assertRegex(
            folder,
            rf"  holders +pid {notebook.pid} \(.*\) 700 MiB, most in {TAKE} \(700 MiB in 1 block\), "
            r"in no phase, idle for [\d.]+ s\n",
        )
        moment = self.users(job)[notebook.pid]["moment"]
        self.assertGreaterEqual(moment["idle_ns"], 1_400_000_000)
        self.assertEqual(self.users(job)[notebook.pid]["after_last_event_ns"], 0)

    def test_a_woken_engine_fails_because_the_trainer_keeps_a_cache_and_the_cache_is_named(self):
        """Reinforcement learning: the inference engine sleeps while the trainer runs, and then wakes up."""
        engine, train = self.torch(), self.torch()
        self.assertEqual(engine.ask("take cache 700 rollout"), "ok")
        engine.ask("drop cache")
        engine.ask("empty")  # sleep
        self.assertEqual(train.ask("take weights 100 build"), "ok")
        self.assertEqual(train.ask("take activations 600 forward"), "ok")
        train.ask("drop activations")
        train.ask("phase optimizer")
        self.assertEqual(engine.ask("take cache 700 wake"), "out of memory")
        train.ask("over")
        train.ask("empty")
        self.assertEqual(engine.ask("take cache 700 wake"), "ok")
        self.end(engine, train)
        single, folder, job = self.texts(engine)
        self.assertIn(f"all of it pid {train.pid} (", single)
        self.assertRegex(
            folder,
            rf"  holders +pid {train.pid} \(.*\) 700 MiB, 600 MiB of it not in use, most in {TAKE} "
            r"\(100 MiB in 1 block\), in phase optimizer\n",
        )
        users = self.users(job)
        self.assertEqual(users[train.pid]["moment"]["allocated_bytes"], 100 * MIB)
        self.assertNotIn(engine.pid, users)  # it held nothing then


if __name__ == "__main__":
    assert os.access(CLIENT, os.X_OK), CLIENT
    real_process.main()
