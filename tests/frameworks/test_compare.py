"""fraganalyze compare on runs of a real PyTorch: traces, JSON reports, a leak, and other batch sizes.

Predictions for other batch sizes are compared with runs that have them.
"""

import json
import pathlib

import real_process
from real_process import ANALYZER, DEMOS, SOURCE, environment

PROGRAM = pathlib.Path(__file__).with_name("programs") / "grows.py"


class Compare(real_process.RealProcessTest):
    def trace(self, name, *arguments):
        folder = self.folder / name
        folder.mkdir()
        self.run_training(
            [PROGRAM, *arguments],
            env=environment("4GiB", record_to=folder, PYTHONPATH=SOURCE / "preload/python"),
        )
        return self.only_trace(folder)

    def compare(self, a, b):
        return json.loads(self.run_well([ANALYZER, "compare", a, b, "--json", "-"]).stdout)

    def test_a_step_that_keeps_its_activations_is_found(self):
        good, bad = self.trace("good"), self.trace("bad", "--keep")
        result = self.compare(good, bad)
        device = result["devices"][0]
        for side, run in (("a", good), ("b", bad)):
            told = json.loads(self.run_well([ANALYZER, "summarize", run, "--json", "-"]).stdout)
            self.assertEqual(device[side]["peak"], told["devices"][0]["peak"])
            self.assertEqual(device[side]["waste_at_peak"], told["devices"][0]["waste_at_peak"])
        first = device["holders_at_peak"][0]
        self.assertIn("grows.py", first["label"])
        self.assertGreater(first["b"]["bytes"], first["a"]["bytes"])
        (phase,) = [row for row in result["phases"] if row["parts_first"]]
        self.assertEqual((phase["name"], phase["parting"]["occurrence"]), ("step", 0))
        self.assertGreater(phase["parting"]["b"]["left_bytes"], phase["parting"]["a"]["left_bytes"])
        (steps,) = result["iterations"]
        self.assertEqual((steps["a_count"], steps["b_count"], steps["class"]), (3, 3, "exact"))
        self.assertEqual(steps["parting"]["iteration"], 0)
        for side in "ab":  # the phases are the iterations, and the last one lasts until the end of the run
            self.assertEqual(
                steps["parting"][side]["peak_allocated_bytes"], phase["parting"][side]["peak_allocated_bytes"]
            )
        self.assertEqual([row["key"] for row in result["settings"]], ["command_line"])
        text = self.run_well([ANALYZER, "compare", good, bad]).stdout
        self.assertIn("first difference in the 1st step", text)

    def test_a_run_compared_with_its_own_json_has_no_differences(self):
        good = self.trace("good")
        summary = self.folder / "good.json"
        self.run_well([ANALYZER, "summarize", good, "--json", summary])
        device = self.compare(summary, good)["devices"][0]
        self.assertEqual(device["a"]["peak"], device["b"]["peak"])
        self.assertEqual(
            [row["label"] for row in device["holders_at_peak"] if row["a"] and row["a"] != row["b"]], []
        )
        report = self.folder / "report.json"
        report.write_text(json.dumps(self.report(good)))
        self.assertEqual(self.compare(report, good)["settings"], [])
        self.run_well([ANALYZER, "compare", good, PROGRAM], expected=2)


class Batches(real_process.RealProcessTest):
    CARD = "4GiB,context=0"

    def train(self, batch, expected=0):
        folder = self.folder / str(batch)
        folder.mkdir()
        self.run_training(
            [
                DEMOS / "gpt.py",
                "--steps",
                "3",
                "--layers",
                "3",
                "--width",
                "256",
                "--max-length",
                "256",
                "--batch",
                batch,
            ],
            expected,
            env=environment(self.CARD, record_to=folder),
        )
        return self.only_trace(folder)

    def test_two_runs_predict_the_memory_of_other_batch_sizes(self):
        small, large = self.train(4), self.train(8)
        (told,) = json.loads(
            self.run_well(
                [ANALYZER, "compare", small, large, "--batch", "4,8", "--predict", "6,12,16", "--json", "-"]
            ).stdout
        )["batches"]
        self.assertEqual(told["class"], "estimate")
        self.assertEqual([row["batch"] for row in told["rows"]], [4, 6, 8, 12, 16])
        for row in told["rows"]:
            recorded = row["recorded_peak_reserved_bytes"]
            if recorded is not None:  # at its own batch size a fitted run equals the recorded one
                self.assertEqual(row["card_peak_reserved_bytes"], recorded)
                continue
            peak = self.report(self.train(row["batch"]))["devices"][0]["peak"]
            with self.subTest(batch=row["batch"]):
                self.assertAlmostEqual(row["peak_allocated_bytes"] / peak["allocated"], 1, delta=0.01)
                self.assertEqual(row["ooms"], 0)
                self.assertAlmostEqual(row["card_peak_reserved_bytes"] / peak["reserved"], 1, delta=0.03)
        self.assertEqual(told["least_that_fails"], told["largest_that_fits"] + 1)
        self.train(told["largest_that_fits"])
        self.train(told["least_that_fails"], expected=1)

    def test_batches_must_be_two_and_different(self):
        run = self.train(4)
        for batches in ("4,4", "4", "0,4"):
            done = self.run_well([ANALYZER, "compare", run, run, f"--batch={batches}"], expected=2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    real_process.main()
