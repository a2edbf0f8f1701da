"""ggml's CUDA backend (llama.cpp inside of gpt4all) on the virtual GPU: prompts, a pool that grows in place,
a request that ends the process, and the pool for cards that cannot map memory.

Needs an interpreter with gpt4all; NVIDIA's libraries are not needed:

    python3 -m venv ENV && ENV/bin/pip install gpt4all==2.8.2

FRAGTRACE_GPT4ALL_PYTHON names the interpreter (CMake); otherwise that of scripts/compatibility-programs is
used.
"""

import os
import pathlib
import signal
import sys

import real_process
from real_process import MIB, VIRTUAL_GPU, environment

DEFAULT = pathlib.Path.home() / ".cache" / "fragtrace" / "gpt4all-2.8.2" / "bin" / "python"
PYTHON = pathlib.Path(os.environ["FRAGTRACE_GPT4ALL_PYTHON"] or DEFAULT)
PROGRAMS = pathlib.Path(__file__).parent / "programs"
KIB = 1024


class Ggml(real_process.RealProcessTest):
    def run_program(self, name, *, card="1GiB,context=256MiB", record_to=None, expected=0):
        env = environment(card, record_to)
        env["LD_LIBRARY_PATH"] = f"{env['LD_LIBRARY_PATH']}:{VIRTUAL_GPU / 'without-cuda'}"
        model = self.folder / "model.gguf"
        done = self.run_well([PYTHON, PROGRAMS / name, model], env=env, expected=expected)
        return done.stdout.splitlines()

    def recorded(self, name, **options):
        output = self.run_program(name, record_to=self.folder, **options)
        report = self.report(self.only_trace())
        self.assertEqual(report["source"]["events_lost"], 0)
        (pool,) = report["program_pools"]
        self.assertEqual((pool["name"], pool["memory"]), ("ggml", "device"))
        return output, report, pool

    def test_prompts_are_answered_as_without_the_recorder_and_a_pool_that_grows_is_one_segment(self):
        plain = self.run_program("ggml_prompt.py")
        output, report, pool = self.recorded("ggml_prompt.py")
        self.assertEqual(output, plain)
        self.assertEqual(output, ["answered on cuda"])
        self.assertEqual(report["source"]["ended"], "normal")
        self.assertEqual((pool["kind"], pool["failed_requests"], pool["live_blocks"]), ("ggml-vmm", 0, 0))
        self.assertGreater(pool["allocations"], 100)
        # The longest prompt: 128 KiB for the input of a product, 4 MiB for its result.
        self.assertEqual(pool["peak_allocated_bytes"], 4 * MIB + 128 * KIB)
        self.assertEqual(pool["peak_reserved_bytes"], 6 * MIB)  # three mappings
        self.assertIn("prompt_model", pool["at_peak"]["lines"][0]["label"])

    def test_a_request_that_ends_the_process_is_in_the_trace_with_what_the_pool_held(self):
        _, report, pool = self.recorded(
            "ggml_prompt.py", card="348MiB,context=256MiB", expected=-signal.SIGABRT
        )
        self.assertEqual(report["source"]["ended"], "killed")
        self.assertEqual([oom["requested_bytes"] for oom in report["ooms"]], [2 * MIB])
        self.assertEqual(pool["failed_requests"], 0)  # only the request to the driver failed
        self.assertEqual(pool["live_blocks"], 1)

    def test_blocks_of_the_pool_without_mappings_are_recorded_as_the_pool_counts_them(self):
        output, report, pool = self.recorded("ggml_legacy_pool.py")
        sizes = [int(word) for word in output[-1].split()]
        self.assertEqual(sizes, [1280, 3303168, 5505024, 3303168, 5505024, 6606080])
        self.assertEqual(report["source"]["ended"], "normal")
        self.assertEqual((pool["kind"], pool["live_blocks"]), ("ggml-legacy", 0))
        self.assertEqual(pool["allocations"], len(sizes))
        # Both blocks of 2 MiB take whole buffers that were cached.
        self.assertEqual(pool["peak_allocated_bytes"], sum(sizes[3:]))
        self.assertEqual(pool["peak_reserved_bytes"], sum(sizes[3:]) + sizes[0])


if __name__ == "__main__":
    if not PYTHON.is_file():
        print("skipped: no interpreter with gpt4all (-DFRAGTRACE_GPT4ALL_PYTHON=PATH)")
        sys.exit(77)
    real_process.main()
