"""Sleep modes: memory of PyTorch's pool that a library unmaps and maps again, by tag."""

import json
import pathlib
import re
import unittest

import real_process
import test_tools
from real_process import ANALYZER, MIB, SOURCE, TORCH_PYTHON, environment, page_header

PROGRAMS = pathlib.Path(__file__).with_name("programs")
PACKAGE = SOURCE / "preload" / "python"
SAVER = test_tools.folder_of("torch-memory-saver")
CARD = "1GiB,context=0"


class SleepModes(real_process.RealProcessTest):
    def phases(self, trace):
        dump = self.run_well([ANALYZER, "dump", trace]).stdout
        return re.findall(r' range_begin text="(.*?)"', dump)

    def test_tags_of_vllm(self):
        command = [PROGRAMS / "sleeps_in_vllm.py"]
        path = f"{PROGRAMS / 'vllm_stand_in'}:{PACKAGE}"
        env = environment(CARD, self.folder, PYTHONPATH=path)
        done = self.run_well([TORCH_PYTHON, "-m", "fragtrace", *command], env=env)
        plain = self.run_well([TORCH_PYTHON, *command], env=environment(CARD, PYTHONPATH=path))
        self.assertEqual((done.stdout, done.stderr), (plain.stdout, plain.stderr))
        trace = self.only_trace()
        phases = ["weights", "default", "kv_cache", "sleep", "wake up weights kv_cache", "wake up"]
        self.assertEqual(self.phases(trace), phases)
        pools = self.report(trace)["devices"][0]["holders"]["private_pools"]
        self.assertEqual(
            [(pool["name"], pool["allocated_bytes"] // MIB) for pool in pools],
            [("weights", 40), ("default", 20)],
        )

    def test_another_release_switches_the_adaptor_off(self):
        program = self.folder / "program.py"
        program.write_text(
            "import torch\n"
            "from vllm.device_allocator.cumem import CuMemAllocator\n"
            "class Pools(dict):\n"
            "    def __getitem__(self, tag):\n"
            "        raise AttributeError('of another release')\n"
            "allocator = CuMemAllocator()\n"
            "allocator.allocator_and_pools = Pools()\n"
            "for _ in range(2):\n"
            "    with allocator.use_memory_pool(tag='weights'):\n"
            "        torch.empty(1000, device='cuda')\n"
            "print('done')\n"
        )
        env = environment(CARD, self.folder, PYTHONPATH=f"{PROGRAMS / 'vllm_stand_in'}:{PACKAGE}")
        done = self.run_well([TORCH_PYTHON, "-m", "fragtrace", program], env=env)
        self.assertEqual(done.stdout, "done\n")
        said = "fragtrace: tags of vllm are not recorded any more: AttributeError: of another release\n"
        self.assertEqual(done.stderr, said)


@unittest.skipIf(SAVER is None, test_tools.missing("torch-memory-saver"))
class TorchMemorySaver(real_process.RealProcessTest):
    phases = SleepModes.phases

    def record(self, *arguments):
        """Runs the program with and without the recorder, and returns its trace and what it saw."""
        library = next(SAVER.glob("*_preload_cu13.*.so"))

        def run(record_to, *python):
            env = environment(CARD, record_to, PYTHONPATH=f"{SAVER}:{PACKAGE}")
            if arguments[0] == "preload":
                env["LD_PRELOAD"] = f"{library}:{env['LD_PRELOAD']}"
            return self.run_well([TORCH_PYTHON, *python, PROGRAMS / "sleeps.py", *arguments], env=env)

        done = run(self.folder, "-m", "fragtrace")
        plain = run(None)
        self.assertEqual((done.stdout, done.stderr), (plain.stdout, plain.stderr))
        seen = {row["at"]: row for row in json.loads(done.stdout)}
        trace = max(self.folder.glob("*.ftrace"), key=lambda path: path.stat().st_mtime_ns)
        return trace, seen

    def check_sleep(self, *arguments):
        trace, seen = self.record(*arguments)
        # The program itself: the card has less in use, and PyTorch does not know it.
        self.assertEqual([seen[at]["used"] // MIB for at in ("awake", "asleep", "training")], [510, 50, 650])
        self.assertEqual(seen["training"]["reserved"] // MIB, 1110)
        report = self.report(trace)
        device = report["devices"][0]
        self.assertEqual((device["ooms"], device["retries"]), (0, 0))
        self.assert_replayed(device)
        self.assertEqual(device["peak"]["reserved"], 1110 * MIB)
        self.assertEqual(device["peak_unmapped_bytes"], 460 * MIB)
        phases = [
            "weights",
            "kv_cache",
            "pause kv_cache",
            "pause weights",
            "resume weights",
            "resume kv_cache",
        ]
        self.assertEqual(self.phases(trace), phases)

    def assert_replayed(self, device):
        fidelity = device["fidelity"]
        self.assertEqual(fidelity["placements_equal"], fidelity["placements"])
        self.assertEqual(fidelity["segments_equal"], fidelity["segments"])

    def test_memory_of_regions_that_sleep_is_free_for_others_also_in_replays(self):
        self.check_sleep("torch")

    def test_preloaded_library(self):
        self.check_sleep("preload")

    def test_a_failure_while_regions_sleep_is_explained_with_their_tags(self):
        trace, seen = self.record("torch", "fails")
        self.assertEqual(seen["failed"]["used"], seen["training"]["used"])
        report = self.report(trace)
        device = report["devices"][0]
        self.assert_replayed(device)
        (oom,) = report["ooms"]
        self.assertEqual(oom["verdict"], "genuine")
        outside = oom["holders"]["outside"]
        self.assertEqual(set(outside.values()), {0}, outside)
        pools = {pool["name"]: pool for pool in oom["holders"]["private_pools"]}
        self.assertEqual(
            {name: pool["unmapped_bytes"] // MIB for name, pool in pools.items()},
            {"weights": 160, "kv_cache": 300},
        )
        self.assertEqual(oom["reserved_bytes"], 1110 * MIB)
        text = self.run_well([ANALYZER, trace, "--no-whatif"]).stdout
        self.assertIn("asleep     460 MiB of the reserved memory is unmapped for now", text)
        self.assertIn("MemPools hold 460 MiB in 2 private pools (all of it unmapped for now)", text)
        self.assertRegex(text, r'pool \d "kv_cache": 300 MiB \(all of it unmapped for now\), its oldest')
        page = self.folder / "page.html"
        self.run_well([ANALYZER, trace, "--no-whatif", "--html", page])
        shown = page_header(page)["devices"][0]
        rows = [
            row["text"] for row in shown["lines"] + shown["cards"][0]["lines"] if row["label"] == "asleep"
        ]
        self.assertEqual(
            rows,
            [
                "a sleep mode had unmapped up to 460 MiB of the reserved memory",
                "460 MiB of the reserved memory is unmapped for now",
            ],
        )


if __name__ == "__main__":
    real_process.main()
