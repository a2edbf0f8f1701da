"""CuPy's own memory pool in a real recording: blocks, fidelity, culprits and remedies.

The pool is that of CuPy's wheel. Only the calls to the CUDA runtime are replaced (cupy_over_stand_in.py).
"""

import json
import os
import pathlib
import sys

import real_process
import test_tools
from real_process import SOURCE, environment

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = test_tools.folder_of("cupy")
PACKAGE = SOURCE / "preload" / "python"
CARD = "1GiB,context=0"
MIB = 1 << 20
STAND_IN = os.environ["FRAGTRACE_RUNTIME_STAND_IN"]


class CupyTest(real_process.RealProcessTest):
    def run_program(self, *what, adaptor=("-m", "fragtrace"), off=""):
        env = environment(
            CARD, self.folder, FRAGTRACE_RUNTIME_STAND_IN=STAND_IN, PYTHONPATH=f"{HERE}:{PACKAGE}"
        )
        program = [HERE / "program.py", *map(str, what)]
        done = self.run_well([FOLDER / "bin" / "python", *adaptor, *program], env=env)
        said = [line for line in done.stderr.splitlines() if "not recorded" in line]
        self.assertEqual(said, [off] if off else [])
        return json.loads(done.stdout)

    def pools(self):
        return {pool["name"]: pool for pool in self.report(self.only_trace())["program_pools"]}

    def default_pool(self):
        pools = self.pools()
        self.assertEqual(list(pools), ["CuPy default pool"])
        pool = pools["CuPy default pool"]
        self.assertEqual((pool["kind"], pool["memory"], pool["device"]), ("cupy", "device", 0))
        return pool

    def assert_exact(self, pool):
        self.assert_pool_replayed(pool)
        own = pool["replays"][0]
        self.assertEqual((own["pool"], own["class"]), ("cupy", "exact"))
        self.assertEqual(own["peak_reserved_bytes"], pool["peak_reserved_bytes"])

    def test_random_requests_are_recorded_as_cupy_counts_them_and_replayed_exactly(self):
        for seed in range(3):
            with self.subTest(seed=seed):
                counted = self.run_program(seed)
                trace = max(self.folder.glob("*.ftrace"), key=lambda path: path.stat().st_mtime_ns)
                pool = self.report(trace)["program_pools"][0]
                self.assertEqual(pool["limit_bytes"], counted["limit"])
                self.assertEqual(pool["allocations"], counted["made"])
                self.assertEqual(pool["failed_requests"], counted["failed"])
                self.assertGreater(counted["failed"], 0)
                self.assertEqual(pool["peak_allocated_bytes"], counted["peak"])
                self.assertLessEqual(pool["peak_reserved_bytes"], counted["limit"])
                self.assert_exact(pool)

    def test_a_pool_that_is_split_by_small_blocks_fails_by_fragmentation_with_its_culprit(self):
        self.run_program("fragment")
        pool = self.default_pool()
        self.assert_exact(pool)
        failure = pool["failures"][0]
        self.assertEqual(failure["failure"], "fragmentation")
        self.assertEqual((failure["free_bytes"], failure["largest_free_bytes"]), (32 * MIB, MIB))
        self.assertIn("program.py", failure["culprit"]["label"])
        self.assertIn("keep", failure["culprit"]["label"])
        self.assertEqual((failure["culprit"]["bytes"], failure["culprit"]["blocks"]), (32 * MIB, 32))
        self.assertEqual(failure["culprit"]["largest_free_bytes"], 64 * MIB)
        self.assertEqual(pool["remedy_bytes"], 64 * MIB)
        emptied, driver, _, limit = pool["remedies"]
        self.assertTrue(emptied["serves"])
        self.assertIn("free_all_blocks()", emptied["change"])
        self.assertIn("MemoryAsyncPool", driver["change"])
        self.assertTrue(limit["serves"])
        self.assertEqual(limit["change"], f"mempool.set_limit(size={limit['limit_bytes']})")
        # The real pool, changed as the remedies say.
        self.assertEqual(self.run_program("emptied")["failed"], 0)
        self.assertEqual(self.run_program("fragment", limit["limit_bytes"])["failed"], 0)
        self.assertEqual(self.run_program("fragment", limit["limit_bytes"] - 2 * MIB)["failed"], 1)

    def test_a_limit_that_is_reached_by_free_segments_is_replayed_with_their_release(self):
        counted = self.run_program("cached")
        pool = self.default_pool()
        self.assert_exact(pool)
        self.assertEqual((counted["total"], pool["failed_requests"]), (16 * MIB, 0))
        self.assertEqual(pool["peak_reserved_bytes"], 64 * MIB)

    def test_a_refusal_of_the_driver_is_replayed_with_the_release_that_follows_it(self):
        counted = self.run_program("refused")
        pool = self.default_pool()
        self.assert_exact(pool)
        self.assertEqual(pool["failed_requests"], 1)
        self.assertEqual(pool["failures"][0]["failure"], "too_little")
        self.assertEqual(pool["failures"][0]["allocated_bytes"], counted["used"])
        self.assertEqual(pool["failures"][0]["reserved_bytes"], counted["total"])

    def test_an_adaptor_that_fails_says_so_once_and_the_program_goes_on(self):
        counted = self.run_program(
            "broken",
            off="fragtrace: CuPy's pools are not recorded any more: "
            "TypeError: 'NoneType' object is not callable",
        )
        self.assertEqual(counted["used"], 24 * MIB)
        pool = self.default_pool()
        self.assertEqual((pool["allocations"], pool["live_blocks"]), (2, 0))

    def test_pools_and_threads_are_kept_apart(self):
        self.run_program("several")
        pools = self.pools()
        self.assertEqual(set(pools), {"CuPy default pool", "CuPy pool 1"})
        default, own = pools["CuPy default pool"], pools["CuPy pool 1"]
        self.assertEqual((default["allocations"], default["peak_allocated_bytes"]), (2, 4 * MIB))
        self.assertEqual((own["allocations"], own["peak_allocated_bytes"]), (2, 6 * MIB))
        self.assertEqual((own["limit_bytes"], own["failed_requests"]), (8 * MIB, 1))
        self.assertEqual((default["failed_requests"], own["live_blocks"]), (0, 0))
        self.assert_exact(default)
        self.assert_exact(own)

    def test_the_adaptor_changes_nothing_without_the_recorder(self):
        env = environment(CARD, FRAGTRACE_RUNTIME_STAND_IN=STAND_IN, PYTHONPATH=f"{HERE}:{PACKAGE}")
        code = (
            "import sys; before = list(sys.meta_path)\n"
            "import fragtrace, cupy_over_stand_in, cupy, fragtrace.cupy\n"
            "hooks = cupy.cuda.memory_hook.get_memory_hooks()\n"
            "print(fragtrace.cupy.install(), sys.meta_path == before, len(hooks))\n"
        )
        done = self.run_well([FOLDER / "bin" / "python", "-c", code], env=env)
        self.assertEqual(done.stdout, "False True 0\n")

    def test_a_program_without_a_change_behaves_the_same_with_and_without_the_adaptor(self):
        self.assertEqual(self.run_program("several"), self.run_program("several", adaptor=()))


if __name__ == "__main__":
    if FOLDER is None:
        print(f"skipped: {test_tools.missing('cupy')}")
        sys.exit(77)
    real_process.main()
