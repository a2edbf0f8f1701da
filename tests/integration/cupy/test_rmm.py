"""RMM's own pools in a real recording: blocks, fidelity, culprits and remedies."""

import json
import pathlib
import sys

import real_process
import test_tools
from real_process import SOURCE, environment

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = test_tools.folder_of("rmm")
PACKAGE = SOURCE / "preload" / "python"
CARD = "1GiB,context=0"
MIB = 1 << 20


class RmmTest(real_process.RealProcessTest):
    def run_program(self, kind, what, *, recorded=True):
        env = environment(CARD, self.folder if recorded else None, PYTHONPATH=PACKAGE)
        command = [FOLDER / "bin" / "python", HERE / "rmm_program.py", kind, str(what)]
        return json.loads(self.run_well(command, env=env).stdout)

    def pool(self):
        trace = max(self.folder.glob("*.ftrace"), key=lambda path: path.stat().st_mtime_ns)
        (pool,) = self.report(trace)["program_pools"]
        return pool

    def test_random_requests_are_recorded_and_replayed_exactly(self):
        for seed in range(3):
            with self.subTest(seed=seed):
                counted = self.run_program("grows", seed)
                pool = self.pool()
                self.assertEqual((pool["kind"], pool["memory"]), ("rmm-pool", "device"))
                self.assertEqual(pool["allocations"], counted["made"])
                self.assertEqual(pool["failed_requests"], counted["failed"])
                self.assertEqual(pool["peak_allocated_bytes"], counted["peak"])
                self.assert_pool_replayed(pool)
                self.assertEqual(pool["replays"][0]["class"], "exact")

    def test_a_pool_that_small_blocks_split_fails_by_fragmentation_with_its_culprit(self):
        self.run_program("whole", "fragment")
        pool = self.pool()
        self.assertEqual(pool["failures"][0]["failure"], "fragmentation")
        self.assertEqual(pool["failures"][0]["free_bytes"], 32 * MIB)
        self.assertIn("rmm_program.py", pool["failures"][0]["culprit"]["label"])
        self.assertEqual(
            [remedy["pool"] for remedy in pool["remedies"]], ["cuda-async", "rmm-arena", "rmm-pool"]
        )

    def test_without_the_recorder_the_pool_itself_is_returned(self):
        self.assertTrue(self.run_program("whole", "fragment", recorded=False)["same"])
        self.assertFalse(self.run_program("whole", "fragment")["same"])


if __name__ == "__main__":
    if FOLDER is None:
        print(f"skipped: {test_tools.missing('rmm')}")
        sys.exit(77)
    real_process.main()
