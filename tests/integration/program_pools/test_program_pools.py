"""Pools that a program reports by <fragtrace/mark.h> and by fragtrace.pool, in a real recording."""

import json
import os
import pathlib
import re
import sys

import real_process
from real_process import environment, traces

CLIENTS = pathlib.Path(os.environ["FRAGTRACE_CLIENTS"])
PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "preload" / "python"
CARD = "1GiB,context=0"
MIB = 1 << 20

PYTHON = """
import ctypes, fragtrace, sys
cuda = ctypes.CDLL("libcudart.so.13")
base = ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(base), 16 << 20) == 0
with fragtrace.pool("tiles", kind="best-fit", limit=16 << 20) as tiles:
    tiles.alloc(base.value, 1000, 1024)
    with fragtrace.label("cache"):
        tiles.alloc(base.value + 1024, 4096, stream=None)
    tiles.free(base.value)
    tiles.failed(17 << 20)
    tiles.label(base.value + 1024, "hot")
tiles.alloc(base.value, 1)   # after the end: nothing
"""

# Values that are no int: integers like those of numpy, floats, and no number at all.
VALUES = """
import ctypes, sys
if len(sys.argv) > 1:
    cuda = ctypes.CDLL("libcudart.so.13")
    assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 1 << 20) == 0
import fragtrace

class Integer:
    def __init__(self, value):
        self.value = value
    def __index__(self):
        return self.value

pool = fragtrace.pool("values", limit=0.5 * 2**30)
pool.alloc(Integer(4096), Integer(1000), Integer(1024), Integer(0))
pool.alloc(8192, 1024.0)
pool.label(Integer(4096), "kept")
pool.failed(Integer(1 << 20), stream=Integer(7))
pool.limit(Integer(1 << 20))
pool.free(Integer(8192))
pool.alloc(ctypes.c_void_p(1 << 20), 512, stream=ctypes.c_void_p(5))
pool.label(ctypes.c_void_p(1 << 20), "of ctypes")
pool.failed(1 << 20, stream=ctypes.c_void_p())
pool.free(ctypes.c_void_p(1 << 20))
for call in (pool.free, pool.failed, pool.limit, lambda value: pool.alloc(1, value)):
    try:
        call("many")
        print("no error")
    except ValueError:
        print("error")
"""


class ProgramPoolsTest(real_process.RealProcessTest):
    def run_client(self, mode, **variables):
        return self.run_well(
            [CLIENTS / "program_pools_client", mode], env=environment(CARD, self.folder, **variables)
        )

    def pools(self, trace):
        return {pool["name"]: pool for pool in self.report(trace)["program_pools"]}

    def count(self, trace, kind):
        return sum(re.search(rf"\b{kind}\b", line) is not None for line in self.events(trace))

    def test_a_pool_from_c_appears_with_its_name_and_its_fragmentation(self):
        self.assertEqual(self.run_client("cuda").stdout, "1\n")
        trace = self.only_trace()
        pools = self.pools(trace)
        frames = pools["frame buffers"]
        self.assertEqual(
            (frames["kind"], frames["memory"], frames["device"], frames["limit_bytes"]),
            ("rmm-pool", "device", 0, 64 * MIB),
        )
        self.assertEqual(frames["allocations"], 8)
        self.assertEqual(frames["peak_allocated_bytes"], 64 * MIB)
        self.assertEqual(frames["peak_reserved_bytes"], 64 * MIB)
        self.assertEqual((frames["live_blocks"], frames["live_bytes"]), (4, 32 * MIB))
        self.assertEqual(frames["failed_requests"], 1)
        failure = frames["failures"][0]
        self.assertEqual(failure["requested_bytes"], 16 * MIB)
        self.assertEqual(failure["free_bytes"], 32 * MIB)
        self.assertEqual(failure["largest_free_bytes"], 8 * MIB)
        self.assertEqual([row["pool"] for row in frames["replays"]], ["rmm-pool", "best-fit"])
        self.assertEqual([row["peak_reserved_bytes"] for row in frames["replays"]], [64 * MIB, 64 * MIB])
        labels = {line["label"].rsplit('"', 2)[1]: line["bytes"] for line in frames["at_peak"]["lines"]}
        self.assertEqual(labels["even"], 32 * MIB)
        rows = pools["rows"]
        self.assertEqual((rows["kind"], rows["live_blocks"], rows["allocations"]), ("My_Rows", 0, 1))
        self.assertIn("main", rows["at_peak"]["lines"][0]["label"])  # not mark.h
        self.assertEqual(self.count(trace, "program_block_alloc"), 9)
        self.assertEqual(self.count(trace, "program_pool_end"), 1)
        self.assertIn("pool=2(program rmm-pool frame buffers)", "\n".join(self.events(trace)))

    def test_a_child_goes_on_with_its_parents_pool(self):
        self.run_client("fork")
        ended = sorted(
            (pools["frame buffers"]["allocations"], pools["frame buffers"]["live_blocks"])
            for pools in map(self.pools, traces(self.folder))
        )
        self.assertEqual(ended, [(1, 0), (8, 4)])

    def test_a_pause_keeps_the_live_blocks_with_their_labels(self):
        self.run_client("pause")
        trace = self.only_trace()
        frames = self.pools(trace)["frame buffers"]
        self.assertEqual((frames["live_blocks"], frames["live_bytes"]), (4, 32 * MIB))
        self.assertEqual(self.count(trace, "program_block_free"), 0)
        self.assertNotIn("contradict", "\n".join(self.report(trace)["warnings"]))

    def test_without_cuda_or_without_the_recorder_nothing_is_written(self):
        self.run_client("")
        self.assertEqual(traces(self.folder), [])
        done = self.run_well([CLIENTS / "program_pools_client", "cuda"], env=environment(CARD))
        self.assertEqual(done.stdout, "1\n")

    def test_anonymous_traces_keep_the_kind_and_lose_the_name(self):
        self.run_client("cuda")
        trace = self.only_trace()
        other = self.folder / "anonymous.ftrace"
        self.run_well([real_process.ANALYZER, "anonymize", trace, other])
        pools = self.pools(other)
        self.assertEqual(sorted(pool["kind"] for pool in pools.values()), ["other", "rmm-pool"])
        self.assertNotIn("frame buffers", json.dumps(self.report(other)))

    def test_a_pool_from_python_appears_with_its_lines(self):
        self.run_well(
            [sys.executable, "-c", PYTHON],
            env=environment(CARD, self.folder, PYTHONPATH=str(PACKAGE)),
        )
        tiles = self.pools(self.only_trace())["tiles"]
        self.assertEqual((tiles["kind"], tiles["limit_bytes"]), ("best-fit", 16 * MIB))
        self.assertEqual((tiles["allocations"], tiles["peak_allocated_bytes"]), (2, 5120))
        self.assertEqual((tiles["failed_requests"], tiles["live_blocks"]), (1, 0))
        lines = "".join(line["label"] for line in tiles["at_peak"]["lines"])
        self.assertIn('"hot"', lines)
        self.assertNotIn("_pools.py", lines)

    def test_no_view_says_that_nothing_failed_if_a_pool_could_not_serve_a_request(self):
        for folder in ("first", "second"):
            (self.folder / folder).mkdir()
            self.run_well(
                [sys.executable, "-c", PYTHON],
                env=environment(CARD, self.folder / folder, PYTHONPATH=PACKAGE),
            )
        (trace,) = traces(self.folder / "first")
        (other,) = traces(self.folder / "second")
        said = {
            name: self.run_well([real_process.ANALYZER, *words, "--color", "never"]).stdout
            for name, words in {
                "report": [trace],
                "job": [trace, other],
                "whatif": ["whatif", trace],
            }.items()
        }
        self.assertIn("Pool tiles ran out of memory: 17 MiB requested", said["report"])
        self.assertTrue(
            said["job"].startswith("no device is known to have run out of memory in 2 processes"), said["job"]
        )
        self.assertRegex(said["job"], r"pools +pools of the program's own could not serve 2 requests in pid")
        self.assertIn("not replayed: PyTorch's allocator", said["whatif"])
        self.assertIn("replays the pools of the program's own", said["whatif"])

    def test_more_names_than_are_kept_share_one_entry_and_leave_numbers_for_other_pools(self):
        self.run_client("names")
        trace = self.only_trace()
        report = self.report(trace)
        self.assertEqual(len(report["program_pools"]), 1025)
        shared = self.pools(trace)["(more pools than are kept)"]
        self.assertEqual((shared["pool"], shared["kind"], shared["allocations"]), (1, "other", 5000 - 1024))
        self.assertIn("the program created more pools than are kept", "\n".join(report["warnings"]))
        self.assertEqual(self.count(trace, "program_pool_end"), 1024)

    def test_the_last_limit_counts_until_it_has_changed_too_often(self):
        self.run_client("limits")
        trace = self.only_trace()
        limits = {name: pool["limit_bytes"] for name, pool in self.pools(trace).items()}
        self.assertEqual(limits, {"again": 64 * MIB, "seven": 7 * MIB, "many": None})
        text = self.run_well([real_process.ANALYZER, "report", trace]).stdout
        self.assertIn("many (other, device 0, limit unknown (changed too often))", text)
        other = self.folder / "anonymous.ftrace"
        self.run_well([real_process.ANALYZER, "anonymize", trace, other])
        self.assertIn("limit unknown", self.run_well([real_process.ANALYZER, "report", other]).stdout)

    def test_a_name_is_cut_to_200_bytes_between_letters(self):
        self.run_client("long")
        self.assertEqual(list(self.pools(self.only_trace())), ["n" * 199])

    def test_values_that_are_no_int_do_the_same_with_and_without_the_recorder(self):
        wanted = "error\n" * 4
        for words, folder in (([], None), (["cuda"], self.folder)):
            done = self.run_well(
                [sys.executable, "-c", VALUES, *words],
                env=environment(CARD, *([folder] if folder else []), PYTHONPATH=str(PACKAGE)),
            )
            self.assertEqual(done.stdout, wanted)
        values = self.pools(self.only_trace())["values"]
        self.assertEqual((values["allocations"], values["limit_bytes"]), (3, MIB))

    def test_heaps_and_regions_of_nvtx_are_pools_and_blocks(self):
        done = self.run_well([CLIENTS / "program_pools_nvtx_client"], env=environment(CARD, self.folder))
        self.assertEqual(done.stdout, "1\n")
        trace = self.only_trace()
        pools = self.pools(trace)
        self.assertEqual(sorted(pools), ["NVTX heaps", "umpire: DEVICE pool", "umpire: rows"])
        device = pools["umpire: DEVICE pool"]
        self.assertEqual((device["kind"], device["memory"]), ("other", "device"))
        # 16 blocks, one in the second heap, and the same one smaller.
        self.assertEqual(device["allocations"], 18)
        self.assertEqual((device["live_blocks"], device["live_bytes"]), (9, 12 * MIB))
        self.assertEqual(device["peak_reserved_bytes"], 32 * MIB)
        self.assertEqual((pools["umpire: rows"]["allocations"], pools["umpire: rows"]["live_blocks"]), (1, 0))
        unnamed = pools["NVTX heaps"]
        self.assertEqual((unnamed["allocations"], unnamed["live_blocks"]), (3, 0))
        self.assertEqual(self.count(trace, "program_pool_end"), 2)
        lines = "\n".join(self.events(trace))
        self.assertIn("weights", lines)
        self.assertIn(
            "lost.completions", self.run_well([real_process.ANALYZER, "dump", "--facts", trace]).stdout
        )
        self.assertNotIn("contradict", "\n".join(self.report(trace)["warnings"]))

    def test_nvtx_without_a_recorder_or_switched_off_has_no_handles(self):
        for variables in ({}, {"FRAGTRACE_NVTX": "0"}):
            folder = [self.folder] if variables else []
            done = self.run_well(
                [CLIENTS / "program_pools_nvtx_client"], env=environment(CARD, *folder, **variables)
            )
            self.assertEqual(done.stdout, "0\n")
        self.assertEqual(self.report(self.only_trace())["program_pools"], [])

    def test_the_python_example_of_the_page_runs(self):
        page = (real_process.SOURCE / "docs" / "program-pools.md").read_text(encoding="utf-8")
        program = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(program), 1)
        self.run_well(
            [sys.executable, "-c", program[0]],
            env=environment(CARD, self.folder, PYTHONPATH=str(PACKAGE)),
        )

    def test_python_without_the_recorder_does_nothing(self):
        program = "import fragtrace\np = fragtrace.pool('a')\np.alloc(1, 2)\np.free(1)\np.close()\nprint(1)"
        done = self.run_well([sys.executable, "-c", program], env=environment(CARD, PYTHONPATH=str(PACKAGE)))
        self.assertEqual(done.stdout, "1\n")


if __name__ == "__main__":
    real_process.main()
