"""Shared by the tests with a real PyTorch."""

import json
import pathlib

import real_process
from real_process import environment

GPT = real_process.DEMOS / "gpt.py"
HOLES = real_process.DEMOS / "holes.py"
PEAKS = pathlib.Path(__file__).with_name("peaks.py")


class TorchTest(real_process.RealProcessTest):
    def train(self, program, card, *, conf="", record=True, expected=0):
        """Runs a program (path, arguments); returns its statistics, its trace and its outcome."""
        name = conf.replace(":", "_").replace(",", "_") or "default"
        folder = self.folder / (name + ("" if record else "_real"))
        folder.mkdir()
        variables = {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}
        env = environment(card, record_to=folder if record else None, **variables)
        done = self.run_training([PEAKS, folder / "statistics.json", *program], expected, env=env)
        statistics = json.loads((folder / "statistics.json").read_text())
        return statistics, self.only_trace(folder) if record else None, done
