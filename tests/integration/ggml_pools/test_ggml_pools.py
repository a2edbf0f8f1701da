"""The pools of ggml's CUDA backend: libraries with their names and functions are recorded as pools of the
program, or the trace says why not."""

import os
import pathlib

import real_process
from real_process import environment

CLIENTS = pathlib.Path(os.environ["FRAGTRACE_CLIENTS"])
CARD = "1GiB,context=0"
KIB = 1 << 10
OUTPUT = "1280 322560 5376 322560 1 7\n1024 307200 5120 204800 1 7\n"
OFF = "off: the pool of this release has other functions than those that are known"


class GgmlPoolsTest(real_process.RealProcessTest):
    def run_client(self, *variants, record_to=None):
        libraries = [CLIENTS / variant / "libggml-cuda.so" for variant in variants]
        done = self.run_well([CLIENTS / "ggml_client", *libraries], env=environment(CARD, record_to))
        self.assertEqual(done.stdout, OUTPUT * len(variants))

    def record(self, *variants):
        self.run_client(*variants, record_to=self.folder)
        return self.only_trace()

    def state(self, trace):
        shown = self.run_well([real_process.ANALYZER, "dump", "--facts", trace]).stdout
        return dict(line.split("\t", 1) for line in shown.splitlines() if "\t" in line)["ggml.pool"]

    def program_events(self, trace):
        """Name and sizes of each event of a pool, in order."""
        events = []
        for line in self.events(trace):
            words = line.split()
            kind = next((word for word in words if word.startswith("program_")), None)
            if kind is not None:
                sizes = [word for word in words if word.startswith(("requested=", "bytes="))]
                events.append(" ".join([kind, *sizes]))
        return events

    def assert_recorded(self, trace, libraries=1):
        self.assertEqual(self.state(trace), "recorded")
        alloc, free = "program_block_alloc", "program_block_free"
        both = []
        for sizes in ([1280, 322560, 5376, 322560], [1024, 307200, 5120, 204800]):
            both += [
                f"{alloc} requested=1000 bytes={sizes[0]}",
                f"{alloc} requested={300 * KIB} bytes={sizes[1]}",
                f"{alloc} requested=5000 bytes={sizes[2]}",
                free,
                f"{alloc} requested={200 * KIB} bytes={sizes[3]}",
                free,
                free,
                free,
                "program_pool_end",
                "program_pool_end",
            ]
        self.assertEqual(self.program_events(trace), both * libraries)
        pools = self.report(trace)["program_pools"]
        self.assertEqual({(pool["name"], pool["memory"]) for pool in pools}, {("ggml", "device")})
        by_kind = {}
        for pool in pools:
            self.assertEqual(pool["live_blocks"], 0)
            by_kind.setdefault(pool["kind"], []).append(pool["peak_allocated_bytes"])
        self.assertEqual(
            {kind: sorted(peaks) for kind, peaks in by_kind.items()},
            {
                "ggml-legacy": [5376, 1280 + 322560],
                "ggml-vmm": [5120, 1024 + 307200],
            },
        )

    def test_blocks_and_ends_of_both_kinds_of_pools_are_recorded(self):
        self.assert_recorded(self.record("known"))

    def test_pools_of_a_library_that_does_not_export_them_are_recorded(self):
        self.assert_recorded(self.record("hidden"))

    def test_pools_of_two_libraries_call_the_functions_of_their_own_library(self):
        self.assert_recorded(self.record("known", "hidden"), libraries=2)

    def test_pools_with_other_functions_are_left_alone_and_the_trace_says_so(self):
        for variant in ("added", "parameters"):
            with self.subTest(variant=variant):
                for trace in self.folder.glob("*"):
                    trace.unlink()
                trace = self.record(variant)
                self.assertEqual(self.state(trace), OFF)
                report = self.report(trace)
                self.assertEqual(report["program_pools"], [])
                self.assertIn(f"the record of ggml's pools is {OFF}", report["warnings"])

    def test_the_program_runs_as_without_the_recorder(self):
        self.run_client("known")


if __name__ == "__main__":
    real_process.main()
