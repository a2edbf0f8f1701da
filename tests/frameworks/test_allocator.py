"""The simulated pytorch pool against PyTorch's own allocator, linked with a stand-in for CUDA."""

import os
import pathlib
import sys

import real_process
from real_process import BUILD, TORCH_PYTHON

SCRIPTS = 400


class Allocator(real_process.RealProcessTest):
    def test_random_scripts_are_equal_in_every_event_block_and_statistic(self):
        program = pathlib.Path(__file__).parent / "allocator" / "against.py"
        done = self.run_well([sys.executable, "-B", program, "--build", BUILD, "--scripts", SCRIPTS,
                              TORCH_PYTHON], env=dict(os.environ))
        self.assertRegex(done.stdout, rf"\| {SCRIPTS} \| [1-9]\d* \|")
        self.assertIn("0 unexplained", done.stdout)


if __name__ == "__main__":
    real_process.main()
