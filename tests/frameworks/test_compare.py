"""fraganalyze compare on runs of a real PyTorch: traces, JSON reports, a leak, and other batch sizes.

Predictions for other batch sizes are compared with runs that have them.
"""

import json
import pathlib
import re

import real_process
from real_process import ANALYZER, DEMOS, SOURCE, environment, page_header

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

    def page(self, a, b, *options):
        """The data of the page that compares two runs, and the text beside it."""
        file = self.folder / "compare.html"
        text = self.run_well([ANALYZER, "compare", a, b, "--html", file, *options]).stdout
        return page_header(file), text

    def test_the_page_of_two_runs_says_what_the_terminal_says(self):
        good, bad = self.trace("good"), self.trace("bad", "--keep")
        header, text = self.page(good, bad, "--no-whatif")
        result, said = self.compare(good, bad), header["comparison"]
        (device,) = said["devices"]
        self.assertIn(device["headline"], text)
        grown = result["devices"][0]["holders_at_peak"][0]
        self.assertIn(f"{grown['label']} holds", device["headline"])
        for run in said["runs"]:
            self.assertIn(run, text)
        for place in said["places"]:
            self.assertIn(place["text"].removeprefix("Phases: "), text)
        for row in device["figures"]:
            self.assertRegex(
                text, r"\s+".join(map(re.escape, filter(None, (row["name"], row["a"], row["b"]))))
            )
        recorded = result["devices"][0]["holders_at_peak"]
        self.assertEqual(
            [(line["label"], line["a"], line["b"]) for line in device["lines"]],
            [(line["label"], line["a"]["bytes"], line["b"]["bytes"]) for line in recorded],
        )
        # B comes first in the file: the page opens with it. Each device's peak is that of its run.
        self.assertEqual((device["devices"], said["processes"]), ([1, 0], [1, 0]))
        for side, place in zip("ab", device["devices"]):
            totals = {row["label"]: row["value"] for row in header["devices"][place]["totals"]}
            self.assertEqual(totals["peak reserved"], result["devices"][0][side]["peak"]["reserved"])
            self.assertLess(device["peaks_ns"]["ab".index(side)], header["devices"][place]["end_ns"] + 1)
        # The first step differs: its time in each run is that of the page's first step.
        (steps,) = [place for place in said["places"] if place["text"].startswith("Steps")]
        for span in steps["times_ns"]:
            self.assertLess(span[0], span[1])

    def test_the_page_needs_events_and_a_file_that_is_no_input(self):
        good = self.trace("good")
        summary = self.folder / "good.json"
        self.run_well([ANALYZER, "summarize", good, "--json", summary])
        for arguments, wrong in (
            ((summary, good, "--html", self.folder / "page.html"), "JSON does not contain the events"),
            ((good, good, "--html", "-", "--json", "-"), "cannot both go to standard output"),
            ((good, good, "--no-whatif"), "add --html FILE"),
            ((good, good, "--html", good), str(good)),
        ):
            with self.subTest(arguments=arguments):
                done = self.run_well([ANALYZER, "compare", *arguments], expected=2)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(wrong, done.stderr)
        self.assertFalse((self.folder / "page.html").exists())
        page = self.run_well([ANALYZER, "compare", good, good, "--html", "-", "--no-whatif"]).stdout
        self.assertTrue(page.startswith("<!DOCTYPE html>"))

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
