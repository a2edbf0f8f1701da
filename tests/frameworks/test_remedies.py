"""Exact what-if rows, confirmed by real runs that follow the remedy."""

import json
import pathlib

import real_process
from real_process import ANALYZER, MIB, TORCH_PYTHON, environment

STEPS = pathlib.Path(__file__).with_name("programs") / "steps.py"
CARD = "4GiB"


class Remedies(real_process.RealProcessTest):
    def run_steps(self, card=CARD, record=False, expected=0, **variables):
        folder = self.folder / f"run{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        env = environment(card, record_to=folder if record else None, **variables)
        done = self.run_well([TORCH_PYTHON, STEPS], expected, env=env)
        said = json.loads(done.stdout.splitlines()[-1]) if expected == 0 else {}
        return said, self.only_trace(folder) if record else None, done

    def whatif(self, trace, *arguments):
        return json.loads(self.run_well([ANALYZER, "whatif", trace, "--json", "-", *arguments]).stdout)

    def row(self, document, name):
        found = [row for row in document["whatif"] if row["name"] == name]
        self.assertEqual(len(found), 1, [row["name"] for row in document["whatif"]])
        return found[0]

    def test_exact_rows_equal_real_runs_with_the_remedy(self):
        recorded, trace, _ = self.run_steps(record=True)
        document = self.whatif(trace)
        as_run = next(row for row in document["whatif"] if row["recorded"])
        self.assertEqual(as_run["peak_reserved_bytes"], recorded["reserved"])

        with self.subTest("empty_cache() after each step"):
            row = self.row(document, "empty_cache() after each step")
            self.assertEqual(row["class"], "exact")
            real, _, _ = self.run_steps(STEPS_EMPTY_CACHE=1)
            self.assertEqual(row["peak_reserved_bytes"], real["reserved"])
            self.assertEqual(row["segments_allocated"], real["segments"])
            self.assertEqual(row["cost"]["driver_allocs"], real["segments"] - recorded["segments"])
            self.assertNotEqual(real["reserved"], recorded["reserved"], "it changes nothing here")

        with self.subTest("expandable segments"):
            row = self.row(document, "expandable_segments:True")
            self.assertEqual(row["class"], "exact")
            real, _, _ = self.run_steps(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
            self.assertEqual(row["peak_reserved_bytes"], real["reserved"])
            self.assertNotEqual(real["reserved"], recorded["reserved"], "it changes nothing here")

        with self.subTest("caching off"):
            row = self.row(document, "PYTORCH_NO_CUDA_MEMORY_CACHING=1")
            self.assertEqual(row["class"], "exact")
            _, uncached, _ = self.run_steps(record=True, PYTORCH_NO_CUDA_MEMORY_CACHING=1)
            report = self.report(uncached)["devices"][0]
            self.assertEqual(row["peak_reserved_bytes"], report["peak"]["reserved"])
            self.assertEqual(row["segments_allocated"], report["segments_allocated"])

        others = self.report(trace)["devices"][0]["others_bytes"]
        self.assertGreaterEqual(len(document["capacity_scans"]), 2)
        for scan in document["capacity_scans"]:
            variables = {"PYTORCH_CUDA_ALLOC_CONF": scan["config"]} if scan["config"] else {}
            if scan["remedy"] == "empty_cache":
                variables["STEPS_EMPTY_CACHE"] = 1
            with self.subTest("the least capacity that fits", setting=scan["name"]):
                self.assertEqual(scan["class"], "exact")
                self.run_steps(card=f"{(scan['least_fits_bytes'] + others) // MIB}MiB", **variables)
            if scan["largest_fails_bytes"] != 0:
                with self.subTest("the largest capacity that fails", setting=scan["name"]):
                    _, _, done = self.run_steps(
                        card=f"{(scan['largest_fails_bytes'] + others) // MIB}MiB", expected=1, **variables
                    )
                    self.assertIn("OutOfMemoryError", done.stderr)


if __name__ == "__main__":
    real_process.main()
