"""Programs with several processes: one readable file for each that uses the GPU, and nothing is lost."""

import json
import os
import re
import struct
import textwrap

import real_process
from real_process import TORCH_PYTHON, environment, traces

CARD = "8GiB,count=2"

WORK = """
import os, sys, time, torch
def work(megabytes=8):
    kept = [torch.empty(megabytes << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]
    del kept[::2]
    with open(os.path.join(os.environ["SEEN"], str(os.getpid())), "w") as seen:
        seen.write(str(os.getppid()))
"""


class Processes(real_process.RealProcessTest):
    def start(self, program, *command, **variables):
        """{pid: (trace, parent)} of the processes that reported using the GPU."""
        path = self.folder / "program.py"
        path.write_text(textwrap.dedent(WORK) + textwrap.dedent(program))
        seen = self.folder / "seen"
        seen.mkdir()
        output = self.folder / "traces"
        output.mkdir()
        env = environment(CARD, record_to=output, SEEN=seen, **variables)
        self.done = self.run_well([TORCH_PYTHON, *command, path], env=env)
        used = {int(name.name): int(name.read_text()) for name in seen.iterdir()}
        found = {}
        for trace in traces(output):
            source = self.report(trace)["source"]
            self.assertEqual(source["events_lost"], 0, trace)
            self.assertNotEqual(source["ended"], "killed", trace)
            self.assertEqual(self.run_well([real_process.ANALYZER, trace, "--no-whatif"]).stderr, "", trace)
            header = trace.read_bytes()[:4096]
            found.setdefault(source["process"], []).append((trace, header))
        self.assertEqual(set(found), set(used), "processes with a trace, and those with work")
        for pid, parent in used.items():
            for trace, header in found[pid]:
                self.assertEqual(parent_of(header), parent, trace)
        return found

    def test_data_loader_workers_that_are_forked_leave_no_file(self):
        found = self.start("""
            data = torch.utils.data.TensorDataset(torch.arange(64.0))
            loader = torch.utils.data.DataLoader(data, 8, num_workers=2, pin_memory=True)
            print(sum(batch[0].cuda().numel() for batch in loader))
            work()
            """)
        self.assertEqual(len(found), 1)
        self.assertEqual(self.done.stdout, "64\n")

    def test_data_loader_workers_that_are_spawned_leave_no_file(self):
        found = self.start("""
            def main():
                data = torch.utils.data.TensorDataset(torch.arange(64.0))
                loader = torch.utils.data.DataLoader(data, 8, num_workers=2, pin_memory=True,
                                                     multiprocessing_context="spawn")
                print(sum(batch[0].cuda().numel() for batch in loader))
                work()
            if __name__ == "__main__":
                main()
            """)
        self.assertEqual(len(found), 1)

    def assert_children_by(self, method):
        found = self.start(f"""
            import multiprocessing
            def main():
                context = multiprocessing.get_context({method!r})
                children = [context.Process(target=work, args=(i + 1,)) for i in range(2)]
                for child in children: child.start()
                for child in children: child.join()
                assert all(child.exitcode == 0 for child in children)
                work()
            if __name__ == "__main__":
                main()
            """)
        self.assertEqual(len(found), 3)

    def test_each_child_by_multiprocessing_fork_has_its_trace(self):
        self.assert_children_by("fork")

    def test_each_child_by_multiprocessing_spawn_has_its_trace(self):
        self.assert_children_by("spawn")

    def test_each_child_by_multiprocessing_forkserver_has_its_trace(self):
        self.assert_children_by("forkserver")

    def test_a_program_and_its_subprocess_on_the_gpu_have_a_trace_each(self):
        found = self.start("""
            import subprocess
            if len(sys.argv) == 1:
                subprocess.run([sys.executable, __file__, "child"], check=True)
            work()
            """)
        self.assertEqual(len(found), 2)

    def test_a_program_that_executes_itself_leaves_two_files_of_one_process(self):
        found = self.start("""
            work()
            if len(sys.argv) == 1:
                os.execv(sys.executable, [sys.executable, __file__, "again"])
            """)
        self.assertEqual([len(of_process) for of_process in found.values()], [2])

    def test_a_daemon_has_its_own_trace(self):
        found = self.start("""
            if len(sys.argv) == 1:
                ends = os.pipe()
                if os.fork() == 0:
                    os.setsid()
                    middle = os.getpid()
                    if os.fork() == 0:
                        os.close(ends[0])
                        for descriptor in (0, 1, 2):
                            os.close(descriptor)
                        while os.getppid() == middle:
                            time.sleep(0.01)
                        work()
                        sys.exit()
                    os._exit(0)
                os.close(ends[1])
                os.wait()
                assert os.read(ends[0], 1) == b""
            """)
        self.assertEqual(len(found), 1)

    def test_two_ranks_of_torchrun_have_traces_of_their_own_devices(self):
        found = self.start(
            """
            import torch.distributed
            torch.distributed.init_process_group("gloo")
            rank = int(os.environ["LOCAL_RANK"])
            torch.cuda.set_device(rank)
            total = torch.tensor([float(rank + 1)])
            torch.distributed.all_reduce(total)
            assert total.item() == 3.0
            work(16)
            torch.distributed.destroy_process_group()
            """,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            "2",
            "--master-port",
            "0",
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            "localhost:0",
        )
        ranks = {}
        for of_process in found.values():
            for trace, header in of_process:
                devices = self.report(trace)["devices"]
                ranks[ranks_of(header)] = [
                    device["index"] for device in devices if device["segments_allocated"]
                ]
        self.assertEqual(ranks, {(0, 0): [0], (1, 1): [1]})

    def ranks_of_job(self):
        job = json.loads(self.run_well([real_process.ANALYZER, self.folder / "traces", "--json", "-"]).stdout)
        return [(row["rank"], row["rank_source"], row["world_size"]) for row in job["processes"]]

    def test_the_ranks_of_mp_spawn_are_those_of_nccl(self):
        found = self.start("""
            import torch.distributed
            import torch.multiprocessing
            def main(rank, store):
                torch.distributed.init_process_group(
                    "nccl", init_method="file://" + store, rank=rank, world_size=2,
                    device_id=torch.device("cuda", rank))
                torch.cuda.set_device(rank)
                work()
                torch.distributed.destroy_process_group()
            if __name__ == "__main__":
                torch.multiprocessing.spawn(main, (os.environ["SEEN"] + "/../store",), nprocs=2)
            """)
        self.assertEqual(len(found), 2)
        self.assertEqual(self.ranks_of_job(), [(0, "nccl", 2), (1, "nccl", 2)])

    def test_data_loader_workers_on_the_card_are_helpers_not_ranks(self):
        found = self.start(
            """
            class Data(torch.utils.data.Dataset):
                def __len__(self): return 4
                def __getitem__(self, index):
                    work()
                    return index
            def main():
                work()
                loader = torch.utils.data.DataLoader(Data(), 2, num_workers=2,
                                                     multiprocessing_context="spawn")
                print(sum(len(batch) for batch in loader))
            if __name__ == "__main__":
                main()
            """,
            RANK=1,
            WORLD_SIZE=2,
        )
        self.assertEqual(len(found), 3)
        self.assertEqual(self.ranks_of_job(), [(1, "RANK", 2), (None, None, 2), (None, None, 2)])

    def test_the_rank_that_ran_out_of_memory_is_reported_not_the_stopped_ranks(self):
        path = self.folder / "program.py"
        path.write_text(
            textwrap.dedent("""
            import os, time, torch
            rank = int(os.environ["RANK"])
            torch.cuda.set_device(rank)
            kept = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
            open(os.path.join(os.environ["SEEN"], str(rank)), "w").close()
            while len(os.listdir(os.environ["SEEN"])) < 3:
                time.sleep(0.01)
            if rank == 2:
                kept = [kept, torch.empty(9 << 30, dtype=torch.uint8, device="cuda")]
            time.sleep(600)
            """)
        )
        seen = self.folder / "seen"
        seen.mkdir()
        output = self.folder / "traces"
        done = self.run_well(
            [
                real_process.LAUNCHER,
                "run",
                "--virtual-gpu",
                "8GiB,count=3",
                "-o",
                output,
                "--",
                TORCH_PYTHON,
                "-m",
                "torch.distributed.run",
                "--nproc-per-node",
                "3",
                "--master-port",
                "0",
                "--rdzv-backend",
                "c10d",
                "--rdzv-endpoint",
                "localhost:0",
                path,
            ],
            1,
            env=environment(SEEN=seen, FRAGTRACE_RING_DIRECTORY=self.folder),
        )
        said = done.stderr[done.stderr.index("rank 2 of 3 ran out of memory first") :]
        second, third = said.splitlines()[1:3]
        self.assertRegex(second, r"program\.py  pid \d+, rank 2, .*, exit code 1$")
        self.assertRegex(third, r"^Out of memory: 9 GiB requested")
        ends = {}
        for trace in traces(output):
            report = self.report(trace)
            ending = report["source"]["ending"]
            ends[self.rank_of(trace)] = (
                report["devices"][0]["ooms"],
                ending["kind"],
                ending["code"],
                ending["signal"],
            )
        self.assertEqual(
            ends,
            {0: (0, "signal", None, "SIGTERM"), 1: (0, "signal", None, "SIGTERM"), 2: (1, "exit", 1, None)},
        )
        job = json.loads(self.run_well([real_process.ANALYZER, output, "--json", "-"]).stdout)
        first = job["first_failure"]
        self.assertEqual((first["rank"], first["of"], first["out_of_memory"]), (2, 3, True))
        text = self.run_well([real_process.ANALYZER, output]).stdout.splitlines()
        self.assertRegex(
            text[0], r"^rank 2 of 3 ran out of memory first, .* after the job began, at \S+program\.py:\d+ "
        )
        rows = [line for line in text if re.match(r" +[012] ", line)]
        self.assertEqual([line.split()[0] for line in rows], ["0", "1", "2"])
        self.assertIn("SIGTERM", rows[0])
        self.assertIn("exit code 1", rows[2])

    @staticmethod
    def rank_of(trace):
        return ranks_of(trace.read_bytes()[:4096])[0]


def numbers_of(header):
    """parent, rank and local rank, as in TraceHeader of preload/include/fragtrace/format.h."""
    return struct.unpack_from("<Iii", header, 60)


def parent_of(header):
    return numbers_of(header)[0]


def ranks_of(header):
    return numbers_of(header)[1:]


if __name__ == "__main__":
    assert os.access(TORCH_PYTHON, os.X_OK), TORCH_PYTHON
    real_process.main()
