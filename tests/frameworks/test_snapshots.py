"""PyTorch's own snapshots beside our trace of the same process: the same placements, the same peaks,
the same verdict; every placement of a snapshot is replayed equal, from the start and in mid-life."""

import pathlib
import re

from real_process import environment
from torch_process import TorchTest

import real_process

PROGRAM = pathlib.Path(__file__).with_name("programs") / "snapshot.py"
SETTINGS = ("", "expandable_segments:True", "max_split_size_mb:20", "roundup_power2_divisions:4")


class Snapshots(TorchTest):
    def placements(self, file):
        """Blocks as they were handed out: address, requested and block bytes."""
        out = self.run_well([real_process.ANALYZER, "dump", "--no-stacks", file]).stdout
        return re.findall(r" block_alloc (address=\S+ requested=\S+ bytes=\S+)", out)

    def test_snapshots_replay_equal_and_say_what_our_trace_says(self):
        for conf in SETTINGS:
            with self.subTest(conf or "default"):
                folder = self.folder / (re.sub(r"\W", "_", conf) or "default")
                folder.mkdir()
                variables = {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}
                self.run_training([PROGRAM, folder],
                                  env=environment("16GiB", record_to=folder, **variables))
                trace = self.only_trace(folder)
                ours = self.placements(trace)
                for name in ("whole", "late"):
                    fidelity = self.report(folder / f"{name}.pickle")["fidelity"]
                    self.assertEqual(fidelity["reason"], "", name)
                    self.assertGreater(fidelity["placements"], 800)
                    self.assertEqual(fidelity["placements"], fidelity["placements_equal"])
                whole = self.placements(folder / "whole.pickle")
                self.assertEqual(whole, ours[:len(whole)])
                verdicts = [self.report(file)["ooms"][0]["verdict"]
                            for file in (trace, folder / "whole.pickle")]
                self.assertEqual(verdicts[0], verdicts[1])
                state = self.report(folder / "state.pickle")
                self.assertIn("no history", state["fidelity"]["reason"])


if __name__ == "__main__":
    real_process.main()
