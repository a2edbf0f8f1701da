"""Warp and CTranslate2 on the virtual GPU, as far as their calls reach it.

Both have the CUDA runtime linked statically. Such a runtime asks the driver for private tables of NVIDIA's,
which the virtual GPU does not have.

Needs an interpreter with each; without it, the tests of that package are skipped by name:

    python3 -m venv ENV && ENV/bin/pip install warp-lang==1.19.0 numpy
    python3 -m venv ENV && ENV/bin/pip install ctranslate2==4.8.5

FRAGTRACE_WARP_PYTHON and FRAGTRACE_CTRANSLATE2_PYTHON name them (CMake); otherwise those of
scripts/compatibility-programs are used.
"""

import collections
import os
import pathlib
import re

import real_process
from real_process import environment

CACHE = pathlib.Path.home() / ".cache" / "fragtrace"
PYTHONS = {
    name: pathlib.Path(os.environ[f"FRAGTRACE_{name}_PYTHON"] or CACHE / folder / "bin" / "python")
    for name, folder in (("WARP", "warp-lang-1.19.0"), ("CTRANSLATE2", "ctranslate2-4.8.5"))
}
PROGRAMS = pathlib.Path(__file__).parent / "programs"
ACCEPTANCE = pathlib.Path(__file__).parents[2] / "scripts" / "acceptance"
CARD = "1GiB,context=256MiB"
ALLOCATION = re.compile(r" (device|async)_alloc address=0x([0-9a-f]+) bytes=(\d+)")
NO_STATIC_RUNTIME = "fragtrace: a CUDA runtime linked statically"


class StaticRuntimes(real_process.RealProcessTest):
    def run_program(self, package, *words, record_to=None, expected=0):
        if not PYTHONS[package].is_file():
            self.skipTest(f"no interpreter with the package (-DFRAGTRACE_{package}_PYTHON=PATH)")
        env = environment(
            CARD,
            record_to,
            WARP_CACHE_PATH=self.folder / "kernels",
            FRAGTRACE_WARP_MEMORY=os.environ["FRAGTRACE_WARP_MEMORY"],
        )
        return self.run_well([PYTHONS[package], *words], env=env, expected=expected)

    def warp(self, program, record_to=None):
        return self.run_program("WARP", PROGRAMS / "warp_over_stand_ins.py", program, record_to=record_to)

    def recorded(self):
        report = self.report(self.only_trace())
        self.assertEqual(report["source"]["events_lost"], 0)
        self.assertEqual(report["source"]["ended"], "normal")
        return report

    def unchanged(self, plain, recorded):
        self.assertEqual(recorded.stdout, plain.stdout)
        self.assertEqual(recorded.stderr, plain.stderr)
        self.assertIn(NO_STATIC_RUNTIME, plain.stderr)

    def test_ctranslate2_ends_in_the_same_ordinary_error_with_and_without_the_recorder(self):
        program = ACCEPTANCE / "ctranslate2_arrays.py"
        plain = self.run_program("CTRANSLATE2", program, expected=1)
        self.assertIn("RuntimeError: CUDA failed with error operation not supported", plain.stderr)
        self.unchanged(plain, self.run_program("CTRANSLATE2", program, record_to=self.folder, expected=1))

    def test_warp_without_stand_ins_ends_in_the_same_ordinary_error_with_and_without_the_recorder(self):
        program = ACCEPTANCE / "warp_arrays.py"
        plain = self.run_program("WARP", program, expected=1)
        self.assertIn("RuntimeError: Failed to allocate 100000 bytes on device 'cuda:0'", plain.stderr)
        self.unchanged(plain, self.run_program("WARP", program, record_to=self.folder, expected=1))

    def test_each_array_of_warp_is_recorded_with_its_address_and_size(self):
        program = ACCEPTANCE / "warp_arrays.py"
        done = self.warp(program, record_to=self.folder)
        self.recorded()
        printed = sorted(tuple(map(int, line.split())) for line in done.stdout.splitlines())
        self.assertEqual(len(printed), 50)
        found = [ALLOCATION.search(line) for line in self.events(self.only_trace())]
        self.assertEqual(sorted((int(one[2], 16), int(one[3])) for one in found if one), printed)
        kinds = collections.Counter(one[1] for one in found if one)
        self.assertEqual(kinds, {"device": 25, "async": 25})  # without and with the device's memory pool

    def test_particles_of_warp_that_fill_the_card_are_named_by_their_line(self):
        program = PROGRAMS / "warp_particles.py"
        plain = self.warp(program)
        done = self.warp(program, record_to=self.folder)
        self.unchanged(plain, done)
        steps = int(done.stdout.splitlines()[-1])
        self.assertGreater(steps, 10)
        report = self.recorded()
        (oom,) = report["ooms"]
        self.assertEqual(oom["requested_bytes"], 24_000_000)
        self.assertFalse(oom["despite_free_memory"])
        line = oom["holders"]["places"][0]
        self.assertEqual(line["label"], "programs/warp_particles.py:15 kept_positions")
        self.assertEqual((line["blocks"], line["bytes"]), (steps, steps * 24_000_000))


if __name__ == "__main__":
    real_process.main()
