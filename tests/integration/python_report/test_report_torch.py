"""Reports in Python on a PyTorch training with retries and an out-of-memory."""

import json
import sys

import package
import real_process
from real_process import ANALYZER, SOURCE, environment

TRAINING = SOURCE / "tests" / "frameworks" / "programs" / "snapshot.py"
PROGRAM = """
import json, sys
import fragtrace
report = fragtrace.load(sys.argv[1])
short = fragtrace.load(sys.argv[1], whatif=False, capacity=12 << 30)
print(json.dumps({
    "json": report.json, "verdict": report.verdict, "holders": report.holders, "retries": report.retries,
    "replay": report.replay(conf="expandable_segments:True", capacity="6 GiB"),
    "pool": report.replay(pool="best-fit", capacity=6 << 30), "short": short.json,
}))
"""


class Torch(real_process.RealProcessTest):
    def command(self, *arguments):
        return json.loads(self.run_well([ANALYZER, *arguments, "--json", "-"]).stdout)

    def test_a_trace_and_a_snapshot(self):
        run = self.folder / "run"
        run.mkdir()
        self.run_training([TRAINING, run], env=environment("16GiB", record_to=run))
        for path in (self.only_trace(run), run / "whole.pickle", run / "state.pickle"):
            with self.subTest(path.name):
                done = self.run_well(
                    [sys.executable, "-c", PROGRAM, path], env=environment(**package.variables())
                )
                found = json.loads(done.stdout)
                self.assertEqual(found["json"], self.command(path))
                for key, options in (
                    ("replay", ["--conf", "expandable_segments:True"]),
                    ("pool", ["--pool", "best-fit"]),
                ):
                    expected = self.command("replay", path, *options, "--capacity", "6GiB")
                    self.assertEqual(found[key], expected)
                self.assertEqual(found["short"], self.command(path, "--no-whatif", "--capacity", "12GiB"))
                text = self.run_well([ANALYZER, path]).stdout
                for line in found["verdict"].splitlines():
                    self.assertIn(line, text)
                if path.suffix == ".ftrace":
                    self.assertEqual(len(found["verdict"].splitlines()), 3)
                    oom = found["json"]["ooms"][0]
                    self.assertEqual({row["at"] for row in found["holders"]}, {"out_of_memory"})
                    self.assertEqual(
                        [(row["label"], row["bytes"]) for row in found["holders"]],
                        [(row["label"], row["bytes"]) for row in oom["holders"]["places"]],
                    )
                    self.assertIn("snapshot.py", found["holders"][0]["label"])


if __name__ == "__main__":
    package.main()
