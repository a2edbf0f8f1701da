"""The scenario with fastai, if it is installed: the figures on its page equal those of a run here."""

import sys
import types

import real_process
from real_process import BUILD, SOURCE, TORCH_PYTHON
from scenario_process import RUNNER, ScenarioTest

sys.path.insert(0, str(RUNNER.parent))

from scenario_runner import Runner


class Fastai(ScenarioTest):
    def test_the_figures_on_the_page_equal_those_of_a_run(self):
        self.assert_pages_say_what_runs_say("fastai")


if __name__ == "__main__":
    runner = Runner(types.SimpleNamespace(python=TORCH_PYTHON, build=BUILD, install=False), SOURCE)
    if not runner.has("fastai"):
        print(f"fastai: {runner.why_skipped('fastai')}")
        sys.exit(77)
    real_process.main()
