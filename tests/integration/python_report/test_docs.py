"""Runs all examples of docs/python.md."""

import re
import sys

import package
import real_process
from real_process import GIB, SOURCE, TORCH_PYTHON, environment, run

PAGE = (SOURCE / "docs" / "python.md").read_text()
TRAINING = SOURCE / "tests" / "frameworks" / "programs" / "snapshot.py"
SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
for line in sys.argv[1].splitlines():
    shell.run_cell(line).raise_error()
"""


def examples(kind):
    """The code blocks of the page with this word after the marks."""
    found = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found, kind
    return found


class Docs(real_process.RealProcessTest):
    def variables(self):
        return package.variables("pyarrow", "ipython", "pytest-tools", IPYTHONDIR=self.folder / "ipython")

    def test_every_block_is_of_a_kind_that_is_run(self):
        kinds = re.findall(r"^```(\w+)$", PAGE, re.MULTILINE)
        self.assertEqual(set(kinds), {"python", "ipython", "pytest"})
        self.assertEqual(len(re.findall("^```", PAGE, re.MULTILINE)), 2 * len(kinds))

    def test_reports_tables_and_notebooks(self):
        traces = self.folder / "traces"
        traces.mkdir()
        self.run_training([TRAINING, traces], env=environment("16GiB", record_to=traces))
        self.only_trace(traces).rename(self.folder / "train.4711.ftrace")
        (self.folder / "train.py").write_text("print('training')\n")
        done = self.run_well(
            [TORCH_PYTHON, "-c", "\n".join(examples("python"))],
            env=environment(**self.variables()),
            cwd=self.folder,
        )
        self.assertEqual(done.stderr, "")
        for expected in (
            f"{64 * GIB} genuine",
            r"  culprit ",
            r"optimizer_state programs/snapshot\.py:\d+ ",
            r"train\.py: is not a trace",
            r"bytes +line\n\d+ +\d{8} ",
            r"block_alloc +\d+",
            r"run: \[\[\"train\.4711\"\]\]",
            r"│ train\.4711 │",
        ):
            self.assertRegex(done.stdout, expected)
        self.assertIn(" - fragtrace</title>", (self.folder / "timeline.html").read_text())
        (cells,) = examples("ipython")
        done = self.run_well(
            [TORCH_PYTHON, "-c", SHELL, cells], env=environment(**self.variables()), cwd=self.folder
        )
        self.assertIn("<fragtrace report on train.4711.ftrace>", done.stdout)

    def test_tests_with_limits(self):
        (example,) = examples("pytest")
        (self.folder / "test_example.py").write_text(example)
        done = self.run_well(
            [TORCH_PYTHON, "-m", "pytest", "-p", "fragtrace.pytest_plugin"],
            env=environment(**self.variables()),
            cwd=self.folder,
        )
        self.assertIn("3 passed", done.stdout)


if __name__ == "__main__":
    program = "import IPython, duckdb, pandas, pyarrow, pytest"
    variables = package.variables("pyarrow", "ipython", "pytest-tools")
    if run([TORCH_PYTHON, "-c", program], env=environment(**variables)).returncode != 0:
        print("skipped: pyarrow, IPython or pytest is missing (scripts/setup --tests)")
        sys.exit(77)
    package.main()
