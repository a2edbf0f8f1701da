"""fraganalyze compare on runs of a real PyTorch: a trace, the JSON of one, and a program that keeps
what it should not."""

import json
import pathlib

import real_process
from real_process import ANALYZER, SOURCE, TORCH_PYTHON, environment

PROGRAM = pathlib.Path(__file__).with_name("programs") / "grows.py"


class Compare(real_process.RealProcessTest):
    def trace(self, name, *arguments):
        folder = self.folder / name
        folder.mkdir()
        self.run_well([TORCH_PYTHON, PROGRAM, *arguments],
                      env=environment("4GiB", record_to=folder,
                                      PYTHONPATH=SOURCE / "preload/python"))
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
        self.assertEqual([row["key"] for row in result["settings"]], ["command_line"])
        text = self.run_well([ANALYZER, "compare", good, bad]).stdout
        self.assertIn("part first in the 1st step", text)

    def test_a_run_against_its_own_json(self):
        good = self.trace("good")
        summary = self.folder / "good.json"
        self.run_well([ANALYZER, "summarize", good, "--json", summary])
        device = self.compare(summary, good)["devices"][0]
        self.assertEqual(device["a"]["peak"], device["b"]["peak"])
        self.assertEqual([row["label"] for row in device["holders_at_peak"]
                          if row["a"] and row["a"] != row["b"]], [])
        report = self.folder / "report.json"
        report.write_text(json.dumps(self.report(good)))
        self.assertEqual(self.compare(report, good)["settings"], [])
        self.run_well([ANALYZER, "compare", good, PROGRAM], expected=2)


if __name__ == "__main__":
    real_process.main()
