"""PyTorch's own snapshots and our trace of the same process: same placements, peaks and verdict.

Every placement of a snapshot is replayed equal, from the start and in mid-life.
"""

import json
import pathlib
import re

import real_process
from real_process import environment
from torch_process import TorchTest

PROGRAM = pathlib.Path(__file__).with_name("programs") / "snapshot.py"
KINDS = pathlib.Path(__file__).with_name("programs") / "snapshot_kinds.py"
SETTINGS = ("", "expandable_segments:True", "max_split_size_mb:20", "roundup_power2_divisions:4")


class Snapshots(TorchTest):
    def placements(self, file):
        """Blocks as they were allocated: address, requested and block bytes."""
        out = self.run_well([real_process.ANALYZER, "dump", "--no-stacks", file]).stdout
        return re.findall(r" block_alloc (address=\S+ requested=\S+ bytes=\S+)", out)

    def test_snapshots_replay_equal_and_agree_with_our_trace(self):
        for conf in SETTINGS:
            with self.subTest(conf or "default"):
                folder = self.folder / (re.sub(r"\W", "_", conf) or "default")
                folder.mkdir()
                variables = {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}
                self.run_training([PROGRAM, folder], env=environment("16GiB", record_to=folder, **variables))
                trace = self.only_trace(folder)
                ours = self.placements(trace)
                for name in ("whole", "late"):
                    fidelity = self.report(folder / f"{name}.pickle")["fidelity"]
                    self.assertEqual(fidelity["reason"], "", name)
                    self.assertGreater(fidelity["placements"], 800)
                    self.assertEqual(fidelity["placements"], fidelity["placements_equal"])
                whole = self.placements(folder / "whole.pickle")
                self.assertEqual(whole, ours[: len(whole)])
                verdicts = [
                    self.report(file)["ooms"][0]["verdict"] for file in (trace, folder / "whole.pickle")
                ]
                self.assertEqual(verdicts[0], verdicts[1])
                state = self.report(folder / "state.pickle")
                self.assertIn("no history", state["fidelity"]["reason"])


class Kinds(TorchTest):
    """Snapshots as programs record them. One run of the program serves all tests."""

    def setUp(self):
        super().setUp()
        self.printed = self.run_training([KINDS, self.folder], env=environment("16GiB")).stdout

    def whole(self, name):
        """The JSON and the text of the full report."""
        file = self.folder / f"{name}.pickle"
        written = self.folder / f"{name}.json"
        text = self.run_well([real_process.ANALYZER, file, "--json", written]).stdout
        return json.loads(written.read_text()), text

    def holders(self, report):
        return [place["label"] for place in report["devices"][0]["holders"]["places"]]

    def assert_state(self, name):
        report, text = self.whole(name)
        device = report["devices"][0]
        self.assertTrue(device["state_only"], name)
        self.assertIn("State at one moment, without history", text)
        for wrong in ("No out-of-memory", "exact", "did nothing"):
            self.assertNotIn(wrong, text, name)
        self.assertEqual(report["whatif"], [])
        self.assertEqual(report["advice"], [])
        self.assertGreater(device["holders"]["allocated_bytes"], 90 << 20)
        largest = device["holes"][0]
        self.assertGreaterEqual(largest["bytes"], 9 << 20)
        self.assertEqual(largest["largest_request_bytes"], largest["bytes"])
        summary = self.run_well([real_process.ANALYZER, "summarize", self.folder / f"{name}.pickle"]).stdout
        self.assertIn("state at one moment", summary)
        self.assertIn(device["holders_at_peak"][0]["label"], summary)
        self.run_well(
            [real_process.ANALYZER, "check", self.folder / f"{name}.pickle", "--no-oom"], expected=1
        )
        return report, text

    def test_the_kind_of_each_snapshot_is_recognised(self):
        with self.subTest("the same lines with C++ frames as with Python frames alone"):
            lines = self.holders(self.whole("python")[0])
            self.assertTrue(lines[0].startswith("programs/snapshot_kinds.py:"), lines)
            for name in ("defaults", "stacks_of_allocations"):
                self.assertEqual(self.holders(self.whole(name)[0])[:3], lines[:3], name)
            # Only blocks that are live at the end have a holder.
            self.assertIn(lines[0], self.holders(self.whole("stacks_of_state")[0])[:2])
        with self.subTest("no stacks: sizes"):
            self.assertEqual(self.holders(self.whole("no_stacks")[0])[0], "no stack: blocks of 9 MiB")
        with self.subTest("a state alone"):
            state = self.assert_state("state")[0]
            self.assertTrue(self.holders(state)[0].startswith("programs/snapshot_kinds.py:"))
            self.assertEqual(self.holders(self.assert_state("never")[0])[0], "no stack: blocks of 9 MiB")
        with self.subTest("in mid-life"):
            report, text = self.whole("midlife")
            self.assertEqual(report["fidelity"]["reason"], "")
            waste = report["devices"][0]["waste_at_peak"]
            for row in report["whatif"]:
                if row["recorded"]:
                    self.assertEqual((row["class"], row["waste_at_peak"]), ("exact", waste))
                elif row["pool"] == "pytorch":
                    self.assertEqual(row["class"], "estimate", row["name"])
                    self.assertIn("keep their recorded addresses", row["class_reason"])
            report, text = self.whole("nothing_obtained")
            self.assertIn("all segments were allocated before the history", text)
            self.assertNotIn("did nothing", text)
            self.assertFalse([row for row in report["whatif"] if row["pool"] == "pytorch"])
        with self.subTest("an out-of-memory at the end"):
            for name in ("oom", "oom_of_state"):
                report, text = self.whole(name)
                self.assertIn("the last one an out-of-memory", text.splitlines()[0])
                self.assertEqual(len(report["ooms"]), 1)
                self.assertFalse(report["devices"][0]["state_only"])
        if "not written: labels" in self.printed:
            return
        with self.subTest("labels and pinned memory"):
            report, text = self.whole("labels")
            self.assertRegex(self.holders(report)[0], r'^programs/snapshot_kinds.py:\d+ .* "kv cache"$')
            self.assertRegex(self.holders(report)[1], r'"first blocks"$')
            self.assertEqual(report["memory"]["pinned"]["peak_bytes"], 32 << 20)
            self.assertTrue(report["facts"]["torch_version"].startswith("2.14"))
            self.assertNotIn("of no known release", text)


if __name__ == "__main__":
    real_process.main()
