"""The shortest scenarios, run as documented: their pages have the figures of a run here.

The runner fails if an exact prediction is contradicted.
"""

import re
import sys

import real_process
from real_process import LAUNCHER, SOURCE, TORCH_PYTHON, environment, run
from scenario_process import RUNNER, ScenarioTest

TABLE = SOURCE / "scripts/scenarios/scenario_table.py"


class Scenarios(ScenarioTest):
    def test_the_figures_on_the_pages_equal_those_of_runs(self):
        self.assert_pages_say_what_runs_say("three_pieces", "pinned_loader", "no_caching")

    def test_the_figures_in_the_guide_equal_those_of_its_runs(self):
        guide = (SOURCE / "docs/guide.md").read_text()
        part = guide.split("## From an out-of-memory to the fix")[1].split("\n## ")[0]
        part = re.sub(r"^```$.*?^```$", "", part, flags=re.MULTILINE | re.DOTALL)  # other programs' output
        shown = re.findall(
            r"^ {7}(?! *(?:fragtrace|python|PYTORCH_CUDA_ALLOC_CONF=\S+ fragtrace) )(.*)$", part, re.MULTILINE
        )
        self.assertGreater(len(shown), 5)
        said = []
        for conf, expected in (("", 1), ("expandable_segments:True", 0)):
            env = environment(FRAGTRACE_OUTPUT=self.folder, PYTORCH_CUDA_ALLOC_CONF=conf)
            done = self.without_abort_at_end(
                run(
                    [
                        LAUNCHER,
                        "run",
                        "--virtual-gpu",
                        "3.5GiB,context=0",
                        "--",
                        TORCH_PYTHON,
                        RUNNER.with_name("variable_lengths.py"),
                    ],
                    env=env,
                ),
                env,
            )
            self.assertEqual(done.returncode, expected, done.stderr)
            said += done.stderr.splitlines()
        for line in shown:
            self.assertIn(line, said)

    def test_each_scenario_has_its_page(self):
        names = set(re.findall(r'^    "(\w+)": Scenario\(', TABLE.read_text(), re.MULTILINE))
        pages = {page.stem for page in (SOURCE / "docs/scenarios").glob("*.md")}
        self.assertEqual(names, pages - {"README"})
        self.assertGreater(len(names), 11)

    def test_an_unknown_scenario_is_refused(self):
        done = self.run_well([sys.executable, RUNNER, "nonsense"], expected=2)
        self.assertIn("no scenario nonsense", done.stderr)

    def test_without_pytorch_a_scenario_is_skipped_and_not_a_success(self):
        for program in ("run", "confirm"):
            done = self.run_well(
                [sys.executable, RUNNER.with_name(program), "three_pieces", "--python", "/bin/false"],
                expected=77,
            )
            self.assertIn("three_pieces: skipped, /bin/false has no PyTorch", done.stdout)

    def test_counts_of_some_rows_are_not_written_into_the_page(self):
        for some in (["three_pieces"], ["--rows", "expandable"]):
            done = self.run_well([sys.executable, RUNNER.with_name("confirm"), "--pages", *some], expected=2)
            self.assertIn("without NAME and --rows", done.stderr)


if __name__ == "__main__":
    real_process.main()
