"""ONNX Runtime on the virtual GPU: inference, and a request that fails although enough of the arena is free.

Needs an interpreter with ONNX Runtime for CUDA; NVIDIA's libraries are not needed:

    python3 -m venv ENV && ENV/bin/pip install onnxruntime-gpu==1.31.1 onnx==1.23.2

FRAGTRACE_ONNXRUNTIME_PYTHON names the interpreter (CMake); otherwise that of scripts/compatibility-programs
is used.
"""

import os
import pathlib
import re
import sys

import real_process
from real_process import MIB, VIRTUAL_GPU, environment

DEFAULT = pathlib.Path.home() / ".cache" / "fragtrace" / "onnxruntime-gpu-1.31.1" / "bin" / "python"
PYTHON = pathlib.Path(os.environ["FRAGTRACE_ONNXRUNTIME_PYTHON"] or DEFAULT)
PROGRAMS = pathlib.Path(__file__).parent / "programs"
CARD = "1536MiB,context=256MiB"


class OnnxRuntime(real_process.RealProcessTest):
    def run_program(self, name, *arguments, record_to=None):
        env = environment(CARD, record_to)
        env["LD_LIBRARY_PATH"] = f"{env['LD_LIBRARY_PATH']}:{VIRTUAL_GPU / 'without-cuda'}"
        return self.run_well([PYTHON, PROGRAMS / name, *arguments], env=env).stdout.splitlines()

    def recorded(self, name, *arguments):
        output = self.run_program(name, *arguments, record_to=self.folder)
        report = self.report(self.only_trace())
        self.assertEqual((report["source"]["ended"], report["source"]["events_lost"]), ("normal", 0))
        (pool,) = [pool for pool in report["program_pools"] if pool["name"] == "Cuda"]
        self.assertEqual((pool["kind"], pool["memory"]), ("bfc", "device"))
        return output, pool

    def test_inference_is_the_same_as_without_the_recorder(self):
        plain = self.run_program("onnxruntime_growing.py")
        output, pool = self.recorded("onnxruntime_growing.py")
        self.assertEqual(output, plain)
        # The weights, 3 small blocks of the first run, and 3 of each of the other 4 runs.
        self.assertEqual(pool["allocations"], 16)
        self.assertEqual(pool["peak_allocated_bytes"], 256 * 1024 + 3 * 4 * MIB)
        self.assertIn("onnxruntime_growing.py", pool["at_peak"]["lines"][0]["label"])
        self.assertIsNone(pool["limit_bytes"])
        self.assert_pool_replayed(pool)

    def test_threads_with_streams_of_their_own_are_recorded_in_the_order_of_the_arena(self):
        output, pool = self.recorded("onnxruntime_threads.py")
        self.assertEqual(output, ["done"])
        self.assertEqual(pool["live_blocks"], 0)
        self.assertGreater(pool["allocations"], 500)
        self.assert_pool_replayed(pool)

    def test_a_fragmented_arena_is_the_verdict_and_each_remedy_does_what_the_report_says(self):
        output, pool = self.recorded("onnxruntime_fragmented.py")
        self.assertEqual(
            output, [f"failed: Available memory of 0 is smaller than requested bytes of {11 * MIB}"]
        )
        self.assertEqual((pool["limit_bytes"], pool["failed_requests"]), (48 * MIB, 1))
        failure = pool["failures"][0]
        self.assertEqual(failure["requested_bytes"], 11 * MIB)
        self.assertEqual(failure["failure"], "fragmentation")
        self.assertGreater(failure["free_bytes"], 11 * MIB)
        self.assertLess(failure["largest_free_bytes"], 11 * MIB)
        self.assertIn("onnxruntime_fragmented.py", failure["culprit"]["label"])
        self.assert_pool_replayed(pool)
        extend, shrink, limit = pool["remedies"]
        self.assertEqual(extend["change"], "provider option arena_extend_strategy=kSameAsRequested")
        self.confirm(extend, "arena_extend_strategy=kSameAsRequested")
        self.assertEqual(
            shrink["change"], "run option memory.enable_memory_arena_shrinkage=gpu:0 for every run"
        )
        self.assertIs(shrink["serves"], True)
        self.confirm(shrink, "shrink")
        bytes_of_limit = re.fullmatch(r"provider option gpu_mem_limit=(\d+)", limit["change"])
        self.assertIsNotNone(bytes_of_limit, limit["change"])
        self.assertIs(limit["serves"], True)
        self.confirm(limit, f"gpu_mem_limit={bytes_of_limit[1]}")

    def confirm(self, remedy, argument):
        output = self.run_program("onnxruntime_fragmented.py", argument)
        self.assertEqual(output == ["served"], remedy["serves"], (remedy, output))

    def test_a_run_with_a_remedy_is_replayed_exactly_too(self):
        for argument in ("shrink", "arena_extend_strategy=kSameAsRequested"):
            with self.subTest(argument=argument):
                for trace in self.folder.glob("*"):
                    trace.unlink()
                _, pool = self.recorded("onnxruntime_fragmented.py", argument)
                self.assert_pool_replayed(pool)


if __name__ == "__main__":
    if not PYTHON.is_file():
        print("skipped: no interpreter with ONNX Runtime (-DFRAGTRACE_ONNXRUNTIME_PYTHON=PATH)")
        sys.exit(77)
    real_process.main()
