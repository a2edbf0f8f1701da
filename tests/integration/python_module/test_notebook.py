"""The IPython extension, in a real IPython with the real PyTorch on the virtual GPU."""

import os
import pathlib
import re
import sys

import real_process
from real_process import SOURCE, TORCH_PYTHON, environment, run

CLIENT = pathlib.Path(__file__).with_name("notebook_client.py")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
# scripts/setup installs IPython separately, so that PyTorch's environment does not change.
PATH = ":".join(
    str(path) for path in (SOURCE / "preload" / "python", *sorted((CACHE / "fragtrace").glob("ipython-*")))
)


def start(**variables):
    return environment("2GiB", PYTHONPATH=PATH, PYTHONDONTWRITEBYTECODE=1, **variables)


class Notebook(real_process.RealProcessTest):
    def notebook(self, record):
        env = start(IPYTHONDIR=self.folder / "ipython")
        if record:
            env = environment(
                "2GiB",
                self.folder,
                PYTHONPATH=PATH,
                PYTHONDONTWRITEBYTECODE=1,
                IPYTHONDIR=self.folder / "ipython",
            )
        return self.run_training([CLIENT], env=env)

    def test_each_cell_reports_its_allocations_and_the_live_memory(self):
        done = self.notebook(record=True)
        text = done.stdout
        # Equal to PyTorch's own account to the byte, in every cell.
        compared = 0
        for part in text.split("truth: ")[:-1]:
            truth = text[text.index(part) + len(part) + len("truth: ") :].split("\n", 1)[0]
            said = re.search(r"In \[(\d+)\]: allocated (\S+) B .*?, reserved (\S+) B", part)
            if said:
                self.assertEqual(f"{said[2]} {said[3]}", truth, part)
                compared += 1
        self.assertGreaterEqual(compared, 6)
        self.assertIn("In [3]: allocated +4,194,304 B (now 4.0 MiB)", text)

        after_error, rest = text.split("== the traceback is let go")
        report = after_error[after_error.index("tensors hold") :]
        for line in (
            r"64\.0 MiB  h in step \(.*:\d+\)  \(float32 16777216\)",
            r"20\.0 MiB  kept in the closure of keep  \(float32 5242880\)",
            r"12\.0 MiB  trainer\.ema  \(float32 3145728\)",
            r"4\.0 MiB  x, views\[0\], views\[1\]  \(float32 1048576\)",
            r"4\.0 MiB  model\.weight  \(float32 1024x1024\)",
            r"4\.0 KiB  model\.bias",
            r"4 B  Out\[5\]",
        ):
            self.assertRegex(report, line)
        self.assertRegex(report, r"tensors hold 104\.0 MiB")
        self.assertLess(report.index("h in step"), report.index("trainer.ema"))
        self.assertIn("%fragtrace forget", report)
        self.assertRegex(report, r"to free: del .*\bkeep\b")

        # The advice works, and looking at the objects keeps nothing alive.
        let_go, rest = rest.split("== caught")
        self.assertIn("allocated -67,108,864 B", let_go)
        self.assertNotIn("h in step", let_go)
        caught, rest = rest.split("== off")
        self.assertIn("tensors hold", caught)
        off, rest = rest.split("== kept")
        cells, freed = rest.split("== everything is freed")
        self.assertNotIn("allocated", off)
        # Memory left by a cell is named by the variable that leads to it: a new variable, or one whose
        # contents changed.
        still = re.findall(r"(?m)^  still held: (.*)$", cells)
        self.assertEqual(
            still[:3],
            [
                "net 4.0 MiB",
                "optimizer 8.0 MiB in 2 tensors, batch 4.0 MiB, batches 4.0 MiB",
                "Out[18] 4.0 MiB",
            ],
        )
        self.assertRegex(still[3], r"^loss 4 B, [48]\.0 MiB elsewhere \(saved for a backward pass")
        self.assertEqual(
            still[4:],
            [
                "several 8.0 MiB in 8 tensors",
                "again 2.0 MiB",
                "2.0 MiB elsewhere (not all was looked at: %fragtrace report)",
            ],
        )
        self.assertIn("  still held: x 4.0 MiB\n", text)
        self.assertIn("  still held: keep 20.0 MiB, trainer 12.0 MiB\n", text)
        self.assertNotIn("still held", freed)
        choices = "use %fragtrace page [TRACE], on, off, report or forget"
        self.assertIn(f"unknown word 'maybe'; {choices}", done.stderr)
        self.assertIn(f"a word is missing; {choices}", done.stderr)
        self.assertRegex(freed, r"(?m)^0$")
        self.assertNotIn("fragtrace", freed.rsplit("\n0\n", 1)[1])

        cells = [line for line in self.events(self.only_trace()) if "range_begin" in line]
        self.assertTrue(any('text="In [3] x = torch.empty(1 << 20' in line for line in cells))
        self.assertTrue(any('text="In [4] model = torch.nn.Linear' in line for line in cells))

    def test_without_the_recorder_nothing_is_done(self):
        done = self.notebook(record=False)
        self.assertNotIn("allocated +", done.stdout)
        self.assertNotIn("tensors hold", done.stdout)
        self.assertIn("fragtrace run -- jupyter lab", done.stderr)


if __name__ == "__main__":
    if run([TORCH_PYTHON, "-c", "import IPython"], env=start()).returncode != 0:
        print("skipped: no IPython beside PyTorch (scripts/setup --tests installs it)")
        sys.exit(77)
    real_process.main()
