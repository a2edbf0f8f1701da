"""The callbacks for Lightning and for the Trainer of transformers, with the real packages on the virtual GPU.

scripts/setup --tests installs the packages beside PyTorch. Without them, a test is skipped by name.
"""

import collections
import json
import os
import pathlib
import re

import real_process
from real_process import SOURCE, TORCH_PYTHON, environment, run

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fragtrace"
PROGRAMS = pathlib.Path(__file__).with_name("programs")
CARD = "2GiB"

MEMORY = """
import fragtrace, json, torch
before = [fragtrace.memory(), fragtrace.scalars()]
torch.cuda.init()
kept = [torch.empty(3 << 20, dtype=torch.uint8, device="cuda") for _ in range(6)]
del kept[1], kept[2:4]  # holes of 3 MiB and of 6 MiB
now = fragtrace.memory()
free, total = torch.cuda.mem_get_info()
print(json.dumps([before, now, fragtrace.memory(0), fragtrace.memory(torch.device("cuda")),
                  torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), free,
                  fragtrace.scalars("m.")]))
"""


class Callbacks(real_process.RealProcessTest):
    def env(self, packages, record):
        path = [SOURCE / "preload" / "python"]
        for package in packages:
            path += sorted(CACHE.glob(f"{package}-*"))
        env = environment(
            CARD,
            self.folder if record else None,
            PYTHONPATH=":".join(map(str, path)),
            PYTHONDONTWRITEBYTECODE=1,
            HF_HUB_OFFLINE=1,
        )
        done = run(
            [TORCH_PYTHON, "-c", f"import {packages[0]}"], env=environment(PYTHONPATH=env["PYTHONPATH"])
        )
        if done.returncode != 0:
            self.skipTest(f"no {packages[0]} beside PyTorch (scripts/setup --tests installs it)")
        return env

    def train(self, program, packages, *arguments, record=True, expected=0):
        env = self.env(packages, record)
        return self.run_training([PROGRAMS / program, *arguments], expected, env=env, cwd=self.folder)

    def phases(self):
        """How often each phase began, and the phases that were open when it began."""
        begun, inside, open_phases = collections.Counter(), {}, []
        for line in self.events(self.only_trace()):
            found = re.search(r'(range_begin|range_end) text="(.*?)"', line)
            if found and found[1] == "range_begin":
                begun[found[2]] += 1
                inside.setdefault(found[2], set()).add(tuple(open_phases))
                open_phases.append(found[2])
            elif found:
                self.assertEqual(open_phases.pop(), found[2])
        self.assertEqual(open_phases, [])
        return begun, inside

    def test_a_run_of_lightning_shows_epochs_steps_and_validations(self):
        self.train("train_lightning.py", ["lightning"])
        begun, inside = self.phases()
        self.assertEqual(begun, {"epoch": 2, "step": 8, "validation": 2})
        self.assertEqual(inside, {"epoch": {()}, "step": {("epoch",)}, "validation": {("epoch",)}})
        report = self.report(self.only_trace())
        self.assertEqual(
            {row["name"]: row["count"] for row in report["phases"]}, {"epoch": 2, "step": 8, "validation": 2}
        )

    def test_a_run_of_the_trainer_shows_epochs_steps_and_evaluations(self):
        self.train("train_trainer.py", ["transformers"])
        begun, inside = self.phases()
        self.assertEqual(begun, {"epoch": 2, "step": 8, "evaluation": 3})
        self.assertEqual(inside, {"epoch": {()}, "step": {("epoch",)}, "evaluation": {()}})
        report = self.report(self.only_trace())
        self.assertEqual(
            {row["name"]: row["count"] for row in report["phases"]}, {"epoch": 2, "step": 8, "evaluation": 3}
        )

    def test_an_out_of_memory_in_lightning_is_in_the_trace_with_its_step(self):
        done = self.train("train_lightning.py", ["lightning"], "oom", expected=1)
        self.assertIn("OutOfMemoryError", done.stderr)
        begun, _ = self.phases()  # all phases ended
        self.assertEqual(begun, {"epoch": 1, "step": 3})

    def test_an_out_of_memory_writes_the_trace_at_once(self):
        for program, package in (("train_lightning.py", "lightning"), ("train_trainer.py", "transformers")):
            with self.subTest(package):
                folder = self.folder / package
                folder.mkdir()
                # A flight recorder makes one copy by itself, and one for the callback's call.
                env = self.env([package], True)
                env.update(FRAGTRACE_OUTPUT=str(folder), FRAGTRACE_FLIGHT="64MiB")
                self.run_training([PROGRAMS / program, "oom"], 1, env=env, cwd=self.folder)
                names = [path.name for path in folder.glob("*.ftrace")]
                self.assertTrue(any(re.search(r"\.call\d\.ftrace$", name) for name in names), names)

    def test_without_the_recorder_the_callbacks_change_nothing(self):
        for program, package in (("train_lightning.py", "lightning"), ("train_trainer.py", "transformers")):
            with self.subTest(package):
                done = self.train(program, [package], record=False)
                self.assertIn("trained", done.stdout)
                self.assertEqual(real_process.traces(self.folder), [])

    def test_lightning_loggers_get_the_memory_as_pytorch_counts_it(self):
        file = self.folder / "figures.json"
        self.train("train_lightning.py", ["lightning"], "figures", file, record=False)
        rows = json.loads(file.read_text())
        self.assertEqual([row[0] for row in rows], [4, 8])
        for _, values, allocated, reserved in rows:
            self.assertEqual(values["gpu_memory/allocated_bytes"], allocated)
            self.assertEqual(values["gpu_memory/reserved_bytes"], reserved)
            self.assertGreater(allocated, 0)

    def test_tensorboard_reads_the_figures_of_the_trainer(self):
        folder = self.folder / "board"
        packages = ["transformers", "tensorboard"]
        self.train("train_trainer.py", packages, "figures", folder)
        read = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[row.step, row.value] for row in events.Scalars(tag)]
                  for tag in events.Tags()["scalars"]}))
"""
        done = self.run_well([TORCH_PYTHON, "-c", read, folder], env=self.env(packages[1:], False))
        figures = json.loads(done.stdout)
        self.assertEqual(
            sorted(figures),
            sorted(
                f"gpu_memory/{name}_bytes"
                for name in ("allocated", "reserved", "largest_free_block", "device_free", "allocatable")
            ),
        )
        self.assertEqual([step for step, _ in figures["gpu_memory/allocated_bytes"]], [4, 8])
        peak = self.report(self.only_trace())["devices"][0]["peak"]["reserved"]
        self.assertLessEqual(figures["gpu_memory/reserved_bytes"][-1][1], peak)
        self.assertGreater(figures["gpu_memory/allocated_bytes"][-1][1], 0)

    def test_the_largest_free_block_and_what_can_be_allocated_are_exact(self):
        done = self.run_well([TORCH_PYTHON, "-c", MEMORY], env=self.env(["torch"], False))
        before, now, by_number, by_device, allocated, reserved, free, scalars = json.loads(done.stdout)
        self.assertEqual(before, [None, {}])
        mib = real_process.MIB
        self.assertEqual([allocated, reserved], [9 * mib, 20 * mib])
        self.assertEqual(now, [allocated, reserved, 6 * mib, free, reserved - allocated + free])
        self.assertEqual([by_number, by_device], [now, now])
        self.assertEqual(list(scalars.values()), now)
        self.assertIn("m.largest_free_block_bytes", scalars)


if __name__ == "__main__":
    real_process.main()
