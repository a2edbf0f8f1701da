"""Runs all examples of docs/python.md, docs/callbacks.md and docs/labels.md."""

import re
import sys

import package
import real_process
from real_process import GIB, SOURCE, TORCH_PYTHON, environment, run

TRAINING = SOURCE / "tests" / "frameworks" / "programs" / "snapshot.py"
SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
for line in sys.argv[1].splitlines():
    shell.run_cell(line).raise_error()
"""


def page(name):
    return (SOURCE / "docs" / name).read_text()


def examples(kind, name="python.md"):
    """The code blocks of the page with this word after the marks."""
    found = re.findall(rf"^```{kind}\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)
    assert found, kind
    return found


class Docs(real_process.RealProcessTest):
    def variables(self):
        return package.variables("pyarrow", "ipython", "pytest-tools", IPYTHONDIR=self.folder / "ipython")

    def test_every_block_is_of_a_kind_that_is_run(self):
        for name, known in (
            ("python.md", {"python", "ipython", "pytest"}),
            ("callbacks.md", {"python"}),
            ("labels.md", {"python"}),
        ):
            kinds = re.findall(r"^```(\w+)$", page(name), re.MULTILINE)
            self.assertEqual(set(kinds), known)
            self.assertEqual(len(re.findall("^```", page(name), re.MULTILINE)), 2 * len(kinds))

    def test_reports_tables_and_notebooks(self):
        traces = self.folder / "traces"
        traces.mkdir()
        self.run_training([TRAINING, traces], env=environment("16GiB", record_to=traces))
        self.only_trace(traces).rename(self.folder / "train.myhost.4711.ftrace")
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
            r"run: \[\[\"train\.myhost\.4711\"\]\]",
            r"│ train\.myhost\.4711 │",
        ):
            self.assertRegex(done.stdout, expected)
        self.assertIn(" - fragtrace</title>", (self.folder / "timeline.html").read_text())
        (cells,) = examples("ipython")
        done = self.run_well(
            [TORCH_PYTHON, "-c", SHELL, cells], env=environment(**self.variables()), cwd=self.folder
        )
        self.assertIn("<fragtrace report on train.myhost.4711.ftrace>", done.stdout)

    def test_tests_with_limits(self):
        (example,) = examples("pytest")
        (self.folder / "test_example.py").write_text(example)
        done = self.run_well(
            [TORCH_PYTHON, "-m", "pytest", "-p", "fragtrace.pytest_plugin"],
            env=environment(**self.variables()),
            cwd=self.folder,
        )
        self.assertIn("3 passed", done.stdout)


class Callbacks(real_process.RealProcessTest):
    """docs/callbacks.md: each example with the package that it imports."""

    def test_every_example_is_one_of_these(self):
        self.assertEqual(len(examples("python", "callbacks.md")), 4)

    def run_example(self, words, *packages):
        """Runs the example with these words. Returns its output."""
        (example,) = [one for one in examples("python", "callbacks.md") if words in one]
        variables = package.variables(*packages)
        env = environment("2GiB", self.folder, HF_HUB_OFFLINE=1, **variables)
        for name in packages:
            module = name.replace("-", "_")
            if run([TORCH_PYTHON, "-c", f"import {module}"], env=environment(**variables)).returncode != 0:
                self.skipTest(f"no {name} beside PyTorch (scripts/setup --tests installs it)")
        return self.run_well([TORCH_PYTHON, "-c", example], env=env, cwd=self.folder).stdout

    def test_lightning(self):
        self.run_example("lightning.Trainer", "lightning")

    def test_transformers(self):
        self.run_example("transformers.Trainer", "transformers")

    def test_figures(self):
        printed = self.run_example("fragtrace.memory()")
        self.assertIn("Memory(allocated_bytes=4194304, reserved_bytes=20971520, ", printed)
        self.assertIn("{'gpu_memory/allocated_bytes': 4194304, ", printed)

    def test_tensorboard(self):
        self.run_example("SummaryWriter", "tensorboard")
        self.assertEqual(len(list((self.folder / "logs").glob("events.out.*"))), 1)


class Labels(real_process.RealProcessTest):
    def test_labels(self):
        program = "\n".join(examples("python", "labels.md"))
        env = environment("2GiB", self.folder, **package.variables())
        self.run_well([TORCH_PYTHON, "-c", program + "\ngrow()\n"], env=env, cwd=self.folder)
        text = "\n".join(self.events(self.only_trace()))
        for label in ("kv cache", "embedding", "model.0"):
            self.assertIn(f'"{label}"', text)


if __name__ == "__main__" and sys.argv[1:2] in (["Callbacks"], ["Labels"]):
    package.main()
elif __name__ == "__main__":
    program = "import IPython, duckdb, pandas, pyarrow, pytest"
    variables = package.variables("pyarrow", "ipython", "pytest-tools")
    if run([TORCH_PYTHON, "-c", program], env=environment(**variables)).returncode != 0:
        print("skipped: pyarrow, IPython or pytest is missing (scripts/setup --tests)")
        sys.exit(77)
    package.main()
