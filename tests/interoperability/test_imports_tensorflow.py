"""A profile that TensorFlow writes is an input of fraganalyze.

It needs a Python interpreter with TensorFlow (tensorflow-cpu is enough): FRAGTRACE_TENSORFLOW_PYTHON names
it, or the one that runs this test has it.
"""

import gzip
import importlib.util
import json
import os
import pathlib
import sys

import real_process
from real_process import ANALYZER

PROGRAM = pathlib.Path(__file__).with_name("programs") / "tensorflow_profile.py"
PYTHON = os.environ.get("FRAGTRACE_TENSORFLOW_PYTHON") or (
    sys.executable if importlib.util.find_spec("tensorflow") else None
)


class TensorFlow(real_process.RealProcessTest):
    def test_a_profile_has_the_peak_that_tensorflow_counts(self):
        if not PYTHON:
            self.skipTest("TensorFlow is not there (FRAGTRACE_TENSORFLOW_PYTHON)")
        told = json.loads(self.run_well([PYTHON, PROGRAM, self.folder]).stdout.splitlines()[-1])
        report = json.loads(self.run_well([ANALYZER, told["profile"], "--json", "-"]).stdout)
        self.assertEqual(report["source"]["import"]["format"], "XLA profile")
        (device,) = report["devices"]
        self.assertEqual(device["name"], "bfc_cpu_allocator_for_gpu")
        self.assertEqual(device["peak"]["allocated"], told["peak"])
        self.assertIsNone(device["peak"]["reserved"])
        self.assertIn(("train", 4), [(phase["name"], phase["count"]) for phase in report["phases"]])
        self.assertEqual(report["warnings"], [])
        self.assertGreater(report["source"]["start_unix_ns"], 10**18)
        labels = " ".join(row["label"] for row in device["holders"]["places"])
        self.assertIn("MatMul", labels)
        # The same as a GPU's, gzipped.
        packed = self.folder / "gpu.xplane.pb.gz"
        packed.write_bytes(gzip.compress((self.folder / "gpu.xplane.pb").read_bytes()))
        of_gpu = json.loads(self.run_well([ANALYZER, packed, "--json", "-"]).stdout)
        self.assertEqual(of_gpu["devices"][0]["index"], 1)
        self.assertEqual(of_gpu["devices"][0]["peak"], device["peak"])
        for command in (["summarize"], ["whatif", "--no-scan"], ["replay", "--pool", "bfc"], ["validate"]):
            self.run_well([ANALYZER, *command[:1], told["profile"], *command[1:]])


if __name__ == "__main__":
    real_process.main()
