"""ONNX Runtime's arena: a library with its names and functions is recorded as pools of the program, or the
trace says why not. Exceptions pass the recorder."""

import os
import pathlib

import real_process
from real_process import environment

CLIENTS = pathlib.Path(os.environ["FRAGTRACE_CLIENTS"])
CARD = "1GiB,context=0"
KIB = 1 << 10
MIB = 1 << 20
OUTPUT = "2 1 1 7\n"


class OnnxRuntimeArenaTest(real_process.RealProcessTest):
    def run_client(self, variant, record_to=None):
        libraries = (
            CLIENTS / "libonnxruntime_providers_cuda.so",
            CLIENTS / variant / "onnxruntime_pybind11_state.so",
        )
        done = self.run_well([CLIENTS / "onnxruntime_client", *libraries], env=environment(CARD, record_to))
        self.assertEqual(done.stdout, OUTPUT)

    def record(self, variant):
        self.run_client(variant, self.folder)
        return self.only_trace()

    def facts(self, trace):
        shown = self.run_well([real_process.ANALYZER, "dump", "--facts", trace]).stdout
        return dict(line.split("\t", 1) for line in shown.splitlines() if "\t" in line)

    def test_blocks_failures_streams_and_settings_are_recorded(self):
        trace = self.record("known")
        facts = self.facts(trace)
        self.assertEqual(facts["onnxruntime.pool"], "recorded")
        pools = {pool["name"]: pool for pool in self.report(trace)["program_pools"]}
        self.assertEqual(set(pools), {"Cuda", "CudaPinned"})  # not that of the CPU
        pool = pools["Cuda"]
        self.assertEqual((pool["kind"], pool["memory"]), ("bfc", "device"))
        self.assertEqual((pool["allocations"], pool["limit_bytes"]), (2, 64 * MIB))
        self.assertEqual(pool["failed_requests"], 2)
        self.assertEqual(pool["failures"][0]["requested_bytes"], 900 * KIB)
        self.assertEqual(
            pool["settings"],
            "preallocate:0,onnxruntime:True,exact_regions:True,first_region:1048576,most_waste:134217728,"
            "region_after_shrink:2097152,most_doubled:1073741824",
        )
        self.assertIsNone(pools["CudaPinned"]["limit_bytes"])
        events = [line for line in self.events(trace) if " program_" in line]
        names = [next(word for word in line.split() if word.startswith("program_")) for line in events]
        self.assertEqual(
            names,
            ["program_block_alloc"] * 2
            + ["program_request_failed"] * 2
            + ["program_block_free", "program_stream_end"]
            + ["program_block_alloc"]
            + ["program_pool_end"] * 2,
        )
        self.assertIn("requested=1000 bytes=1024", events[0])
        self.assertIn("stream=0x4d", events[1])
        self.assertIn("stream=0x4d", events[2])
        self.assertIn("stream=0x4d", events[5])

    def test_an_arena_with_other_functions_is_left_alone_and_the_trace_says_so(self):
        trace = self.record("other")
        self.assertIn(
            "off: the arena of this release has other functions", self.facts(trace)["onnxruntime.pool"]
        )
        self.assertEqual(self.report(trace)["program_pools"], [])

    def test_the_program_runs_as_without_the_recorder(self):
        self.run_client("known")


if __name__ == "__main__":
    real_process.main()
