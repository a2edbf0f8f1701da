"""Shared by the tests of scenarios: a run, compared with its page."""

import os
import sys

import real_process
from real_process import BUILD, SOURCE, TORCH_PYTHON

RUNNER = SOURCE / "scripts/scenarios/run"


class ScenarioTest(real_process.RealProcessTest):
    def assert_pages_say_what_runs_say(self, *names):
        said = self.run_well(
            [sys.executable, RUNNER, *names, "--python", TORCH_PYTHON, "--build", BUILD],
            timeout=800,
            env=dict(os.environ),
        ).stdout.splitlines()
        for name in names:
            with self.subTest(name):
                page = (SOURCE / "docs/scenarios" / f"{name}.md").read_text()
                table = [line for line in page.splitlines() if line.startswith("|")]
                self.assertGreater(len(table), 3)
                for line in table:
                    self.assertIn(line, said)
