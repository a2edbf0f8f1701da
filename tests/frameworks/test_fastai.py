"""The scenario with fastai, if that is installed: the figures of its page are those of a run here."""

import os
import sys
import types

import real_process
from real_process import BUILD, SOURCE, TORCH_PYTHON

sys.path.insert(0, str(SOURCE / "scripts/scenarios"))

from scenario_runner import Runner  # noqa: E402  (found by the line above)


class Fastai(real_process.RealProcessTest):
    def test_the_page_says_what_runs_say(self):
        said = self.run_well([sys.executable, SOURCE / "scripts/scenarios/run", "fastai", "--python",
                              TORCH_PYTHON, "--build", BUILD], timeout=800,
                             env=dict(os.environ)).stdout
        page = (SOURCE / "docs/scenarios/fastai.md").read_text()
        table = [line for line in page.splitlines() if line.startswith("|")]
        self.assertGreater(len(table), 3)
        for line in table:
            self.assertIn(line, said.splitlines())


if __name__ == "__main__":
    RUNNER = Runner(types.SimpleNamespace(python=TORCH_PYTHON, build=BUILD, install=False), SOURCE)
    if not RUNNER.has("fastai"):
        print(f"fastai: {RUNNER.why_skipped('fastai')}")
        sys.exit(77)
    real_process.main()
