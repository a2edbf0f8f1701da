"""The simulated pytorch pool against PyTorch's own allocator, on the virtual GPU."""

import pathlib

import real_process
from real_process import TORCH_PYTHON, environment

SCRIPTS = 130
RUNNER = real_process.BUILD / "bin" / "pool_script"


class PoolAgainstTorch(real_process.RealProcessTest):
    def test_random_scripts_are_identical(self):
        program = pathlib.Path(__file__).with_name("pool_against_torch.py")
        done = self.run_well([TORCH_PYTHON, "-B", program, RUNNER, SCRIPTS],
                             env=environment("256MiB,context=0"))
        self.assertIn(f"{SCRIPTS} scripts, 0 different", done.stdout)


if __name__ == "__main__":
    real_process.main()
