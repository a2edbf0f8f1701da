"""JAX's allocator: a plug-in with its name and functions is recorded as a pool of the program, or the trace
says why not."""

import os
import pathlib

import real_process
from real_process import environment

CLIENTS = pathlib.Path(os.environ["FRAGTRACE_CLIENTS"])
CARD = "1GiB,context=0"
MIB = 1 << 20
NAME = "GPU_0_bfc, with a name that is longer than a short string"


class JaxPluginTest(real_process.RealProcessTest):
    def record(self, library):
        done = self.run_well(
            [CLIENTS / "jax_plugin_client", CLIENTS / library], env=environment(CARD, self.folder)
        )
        self.assertEqual(done.stdout, "1 7\n")
        return self.only_trace()

    def facts(self, trace):
        shown = self.run_well([real_process.ANALYZER, "dump", "--facts", trace]).stdout
        return dict(line.split("\t", 1) for line in shown.splitlines() if "\t" in line)

    def check_pool(self, trace):
        pool = self.report(trace)["program_pools"][0]
        self.assertEqual((pool["name"], pool["kind"], pool["memory"]), (NAME, "bfc", "device"))
        self.assertEqual((pool["allocations"], pool["limit_bytes"]), (16, 64 * MIB))
        self.assertEqual((pool["live_blocks"], pool["live_bytes"]), (8, 32 * MIB))
        self.assertEqual(pool["peak_allocated_bytes"], 64 * MIB)
        self.assertEqual((pool["failed_requests"], pool["failures"][0]["requested_bytes"]), (1, 8 * MIB))
        self.assertEqual(pool["failures"][0]["largest_free_bytes"], 4 * MIB)
        self.assertIn("allocate", pool["at_peak"]["lines"][0]["label"])
        events = "\n".join(self.events(trace))
        self.assertIn(f"requested={4 * MIB - 100} bytes={4 * MIB}", events)
        return pool

    def test_symbols_that_are_only_in_the_file_are_found(self):
        trace = self.record("hidden/xla_cuda_plugin.so")
        self.assertEqual(self.facts(trace)["jax.pool"], "recorded")
        self.check_pool(trace)
        # The second allocator of the name was destroyed before the end.
        self.assertEqual(sum("program_pool_end" in line for line in self.events(trace)), 1)

    def test_a_library_without_symbols_is_left_alone_and_the_trace_says_so(self):
        trace = self.record("stripped/xla_cuda_plugin.so")
        self.assertIn("off: its file has no symbol table", self.facts(trace)["jax.pool"])
        self.assertEqual(self.report(trace)["program_pools"], [])

    def test_a_release_with_other_functions_is_left_alone_and_the_trace_says_so(self):
        trace = self.record("other/xla_cuda_plugin.so")
        self.assertIn("off: the allocator has other functions", self.facts(trace)["jax.pool"])
        self.assertEqual(self.report(trace)["program_pools"], [])

    def test_the_program_runs_as_without_the_recorder(self):
        library = CLIENTS / "hidden" / "xla_cuda_plugin.so"
        done = self.run_well([CLIENTS / "jax_plugin_client", library], env=environment(CARD))
        self.assertEqual(done.stdout, "1 7\n")


if __name__ == "__main__":
    real_process.main()
