"""The virtual GPU under programs that nvcc compiled, with the shared and with the static runtime."""

import real_process
from real_process import environment
from test_vgpu import CLIENTS


class Compiled(real_process.RealProcessTest):
    def test_a_program_with_the_shared_runtime_runs(self):
        done = self.run_well([CLIENTS / "vgpu_runtime_client"], env=environment("1GiB"))
        self.assertIn("ran on the virtual GPU", done.stdout)

    def test_a_program_with_the_static_runtime_ends_in_an_ordinary_error(self):
        done = self.run_well([CLIENTS / "vgpu_static_client"], 3, env=environment("1GiB"))
        self.assertEqual(done.stderr.count("-cudart shared"), 1, done.stderr)


if __name__ == "__main__":
    real_process.main()
