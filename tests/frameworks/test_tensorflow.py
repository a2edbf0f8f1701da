"""TensorFlow runs on the virtual GPU, and its allocator is recorded as a pool of the program.

Needs an interpreter with TensorFlow, for example from

    python3 -m venv ENV && ENV/bin/pip install tensorflow==2.21.0

FRAGTRACE_TENSORFLOW_PYTHON names it (CMake); otherwise that of scripts/compatibility-programs is used.
NVIDIA's libraries are not needed. Those that are installed in the interpreter are used.
"""

import os
import pathlib
import re
import sys

import real_process
from real_process import GIB, MIB, VIRTUAL_GPU, environment, traces

PROGRAMS = pathlib.Path(__file__).parent / "programs"
DEFAULT = pathlib.Path.home() / ".cache" / "fragtrace" / "python-tensorflow-2.21.0" / "bin" / "python"
PYTHON = pathlib.Path(os.environ["FRAGTRACE_TENSORFLOW_PYTHON"] or DEFAULT)


class TensorFlow(real_process.RealProcessTest):
    def train(self, program, *arguments, record_to=None, expected=0, **variables):
        env = environment("16GiB", record_to, TF_CPP_MIN_LOG_LEVEL="2", **variables)
        installed = list(PYTHON.parent.parent.glob("lib/python3*/site-packages/nvidia/*/lib"))
        folders = installed or [VIRTUAL_GPU / "without-cuda"]
        env["LD_LIBRARY_PATH"] = ":".join([env["LD_LIBRARY_PATH"], *map(str, folders)])
        return self.run_well([PYTHON, PROGRAMS / program, *arguments], expected, env=env).stdout

    def recorded(self, program, *arguments, **variables):
        output = self.train(program, *arguments, record_to=self.folder, **variables)
        (trace,) = traces(self.folder)
        report = self.report(trace)
        self.assertEqual((report["source"]["ended"], report["source"]["events_lost"]), ("normal", 0))
        (pool,) = [pool for pool in report["program_pools"] if pool["name"] == "GPU_0_bfc"]
        return output, report, pool

    def test_training_is_the_same_as_without_the_recorder(self):
        plain = self.train("tensorflow_training.py")
        self.assertEqual(plain.splitlines()[0], "1", "TensorFlow sees no GPU")
        output, report, pool = self.recorded("tensorflow_training.py")
        self.assertEqual(output, plain)
        self.assertGreater(report["devices"][0]["peak"]["allocated"], 2 * MIB)
        self.assertGreater(pool["allocations"], 100)
        self.assert_pool_replayed(pool)

    def test_a_convolutional_keras_model_is_fitted_and_its_blocks_replay_exactly(self):
        output, _, pool = self.recorded("tensorflow_fit.py", "conv", TF_FORCE_GPU_ALLOW_GROWTH="true")
        self.assertEqual(output.split(), ["1", "done"])
        self.assertEqual(pool["settings"], "preallocate:0,garbage_collection:True")
        self.assert_pool_replayed(pool)

    def test_a_dense_keras_model_is_fitted_in_a_preallocated_pool(self):
        output, _, pool = self.recorded("tensorflow_fit.py", "dense")
        self.assertEqual(output.split(), ["1", "done"])
        self.assertEqual(pool["settings"], "preallocate:1,garbage_collection:True")
        self.assertEqual(pool["fidelity"]["segments"], 1)
        self.assertGreater(pool["peak_reserved_bytes"], 13 * GIB)
        self.assert_pool_replayed(pool)

    def test_a_fragmented_pool_is_the_verdict_and_a_setting_of_tensorflow_the_remedy(self):
        output, _, pool = self.recorded("tensorflow_fragmented.py")
        self.assertEqual(output.split(), ["failed"])
        self.assertEqual((pool["limit_bytes"], pool["failed_requests"]), (256 * MIB, 1))
        failure = pool["failures"][0]
        self.assertEqual(failure["requested_bytes"], 32 * MIB)
        self.assertGreater(failure["free_bytes"], 100 * MIB)
        self.assertLess(failure["largest_free_bytes"], 32 * MIB)
        self.assertIn("tensorflow_fragmented.py", failure["lines"][0]["label"])
        self.assert_pool_replayed(pool)
        self.assertEqual(failure["failure"], "fragmentation")
        other, limit = pool["remedies"]
        self.assertEqual(other["change"], "TF_GPU_ALLOCATOR=cuda_malloc_async")
        self.assertIsNot(other["serves"], False)
        confirmed = self.train("tensorflow_fragmented.py", TF_GPU_ALLOCATOR="cuda_malloc_async")
        self.assertEqual(confirmed.split(), ["served"])
        self.assertIs(limit["serves"], True)
        change = re.fullmatch(
            r"tf\.config\.LogicalDeviceConfiguration\(memory_limit=(\d+)\)", limit["change"]
        )
        self.assertIsNotNone(change, limit["change"])
        confirmed = self.train("tensorflow_fragmented.py", change[1])
        self.assertEqual(confirmed.split(), ["served"])


if __name__ == "__main__":
    if not PYTHON.is_file():
        print("skipped: no interpreter with TensorFlow (-DFRAGTRACE_TENSORFLOW_PYTHON=PATH)")
        sys.exit(77)
    real_process.main()
