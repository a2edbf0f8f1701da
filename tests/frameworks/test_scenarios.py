"""The shortest scenarios, run as documented: the figures on their pages are those of a run here, and
no exact prediction is contradicted (the runner fails then)."""

import os
import re
import sys

import real_process
from real_process import BUILD, SOURCE, TORCH_PYTHON

SHORT = ("three_pieces", "pinned_loader", "no_caching")
RUNNER = SOURCE / "scripts/scenarios/run"
TABLE = SOURCE / "scripts/scenarios/scenario_table.py"


class Scenarios(real_process.RealProcessTest):
    def test_pages_say_what_runs_say(self):
        said = self.run_well([sys.executable, RUNNER, *SHORT, "--python", TORCH_PYTHON, "--build",
                              BUILD], timeout=600, env=dict(os.environ)).stdout
        for name in SHORT:
            with self.subTest(name):
                page = (SOURCE / "docs/scenarios" / f"{name}.md").read_text()
                table = [line for line in page.splitlines() if line.startswith("|")]
                self.assertGreater(len(table), 3)
                for line in table:
                    self.assertIn(line, said.splitlines())

    def test_each_scenario_has_its_page(self):
        names = set(re.findall(r'^    "(\w+)": Scenario\(', TABLE.read_text(), re.MULTILINE))
        pages = {page.stem for page in (SOURCE / "docs/scenarios").glob("*.md")}
        self.assertEqual(names, pages - {"README"})
        self.assertGreater(len(names), 11)

    def test_a_name_that_is_none_is_refused(self):
        done = self.run_well([sys.executable, RUNNER, "nonsense"], expected=2)
        self.assertIn("no scenario nonsense", done.stderr)


if __name__ == "__main__":
    real_process.main()
