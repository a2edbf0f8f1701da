"""188 blocks of 9 MiB, every other one freed, then a request of 256 MiB, under five settings.

The trace of the default run predicts the real outcome under each of them.
"""

import real_process
from real_process import MIB
from torch_process import HOLES, TorchTest

CARD = "1894MiB,context=0"
OUTCOMES = {  # setting: served?
    "": False,
    "expandable_segments:True": False,
    "max_split_size_mb:20": False,
    "garbage_collection_threshold:0.6": False,
    "roundup_power2_divisions:4": True,
}
REQUEST = 256 * MIB


class Holes(TorchTest):
    def trace_of_default(self):
        _, trace, done = self.train([HOLES], CARD, expected=1)
        self.assertIn("torch.OutOfMemoryError", done.stderr)
        return trace

    def test_the_real_outcome_depends_on_the_setting(self):
        for conf, served in OUTCOMES.items():
            with self.subTest(conf or "default"):
                _, _, done = self.train([HOLES], CARD, conf=conf, record=False, expected=0 if served else 1)
                self.assertEqual("served: 256 MiB" in done.stdout, served, done.stdout)
                self.assertEqual("torch.OutOfMemoryError" in done.stderr, not served, done.stderr)

    def test_outcomes_are_the_same_under_the_shim(self):
        for conf, served in OUTCOMES.items():
            with self.subTest(conf or "default"):
                _, trace, _ = self.train([HOLES], CARD, conf=conf, expected=0 if served else 1)
                report = self.report(trace)
                self.assertEqual(len(report["ooms"]), 0 if served else 1)
                self.assertEqual(report["devices"][0]["violations"], 0)

    def test_replay_predicts_each_outcome(self):
        trace = self.trace_of_default()
        for conf, served in OUTCOMES.items():
            with self.subTest(conf or "default"):
                ooms = self.replay(trace, conf)["ooms"]
                self.assertEqual([oom["requested_bytes"] for oom in ooms], [] if served else [REQUEST])

    def test_expandable_segments_leave_holes_smaller_than_a_page(self):
        trace = self.trace_of_default()
        (oom,) = self.replay(trace, "expandable_segments:True")["ooms"]
        self.assertEqual(oom["allocated_bytes"], 846 * MIB)
        self.assertEqual(oom["reserved_bytes"], 1700 * MIB)
        self.assertEqual(oom["free_bytes"], 854 * MIB)
        real, _, _ = self.train([HOLES], CARD, conf="expandable_segments:True", record=False, expected=1)
        self.assertEqual(real["reserved_bytes.all.current"], 1700 * MIB)

    def test_the_verdict_is_stitchable_and_names_the_blocking_lines(self):
        report = self.report(self.trace_of_default())
        (oom,) = report["ooms"]
        self.assertEqual(oom["verdict"], "stitchable")
        self.assertEqual(oom["requested_bytes"], REQUEST)
        self.assertEqual(oom["largest_free_bytes"], 11 * MIB)
        self.assertTrue(oom["culprits"])
        frames = [frame for culprit in oom["culprits"] for frame in culprit["stack"]]
        self.assertTrue(any(frame["file"].endswith("holes.py") for frame in frames), frames)

    def test_the_summary_has_sizes_and_remedy_within_25_lines(self):
        trace = self.trace_of_default()
        lines = self.run_well([real_process.ANALYZER, trace, "--summary"]).stdout.splitlines()
        self.assertLessEqual(len(lines), 25)
        text = "\n".join(lines)
        self.assertIn("11 MiB", text)
        self.assertIn("256 MiB", text)
        self.assertIn("roundup_power2_divisions:4", text)


if __name__ == "__main__":
    real_process.main()
