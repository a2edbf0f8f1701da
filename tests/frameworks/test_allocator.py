"""Compares the simulated pytorch pool with PyTorch's own allocator, linked with a stand-in for CUDA."""

import itertools
import os
import pathlib
import sys

import real_process
from real_process import BUILD, MIB, TORCH_PYTHON

ALLOCATOR = pathlib.Path(__file__).parent / "allocator"
sys.path.append(str(ALLOCATOR))

import against

SCRIPTS = 400


class Allocator(real_process.RealProcessTest):
    def test_random_scripts_are_equal_in_every_event_block_and_statistic(self):
        done = self.run_well(
            [
                sys.executable,
                "-B",
                ALLOCATOR / "against.py",
                "--build",
                BUILD,
                "--scripts",
                SCRIPTS,
                TORCH_PYTHON,
            ],
            env=dict(os.environ),
        )
        self.assertRegex(done.stdout, rf"\| {SCRIPTS} \| [1-9]\d* \|")
        self.assertIn("0 unexplained", done.stdout)

    def test_a_request_for_the_whole_memory_fraction_has_the_same_outcome(self):
        """A fraction times the card's size is often slightly below a whole number of bytes."""
        folder = BUILD / "allocator"
        release = against.Release(TORCH_PYTHON, (folder / "cuda_include.txt").read_text(), folder)
        comparison = against.Comparison(BUILD / "bin" / "simulated_allocator", release)
        throws = [""]
        if "throw_on_cudamalloc_oom" in release.keys:
            throws.append("throw_on_cudamalloc_oom:True,")
        below = 0
        for card, tenths, throw in itertools.product((350 * MIB, 650 * MIB, 700 * MIB), range(1, 10), throws):
            allowed = card * tenths // 10
            below += int(card * (tenths / 10)) < allowed
            in_settings = f"{throw}per_process_memory_fraction:{tenths / 10}"
            for config, calls in ((throw.rstrip(","), [f"m {tenths / 10}"]), (in_settings, [])):
                head = ["script 0", f"config {config}", f"card {card} {card}", "addresses 0 0", "streams 0"]
                found = comparison.differs(head, [*calls, f"a 1 {allowed} 0"])
                self.assertEqual(found, [], (card // MIB, tenths, config))
        self.assertEqual(below, 3 * len(throws))


if __name__ == "__main__":
    real_process.main()
