"""`fragtrace demo`: the training, its report and its page; and one clear line if it cannot run."""

import pathlib
import sys
import unittest

import real_process
from real_process import LAUNCHER, TORCH_PYTHON, environment, run, traces


class Refused(real_process.RealProcessTest):
    def refused(self, *arguments, **options):
        done = run([LAUNCHER, "demo", *arguments], cwd=self.folder, **options)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("fragtrace: "), done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(list(self.folder.iterdir()), [])
        return done.returncode, done.stderr

    def test_an_interpreter_without_pytorch_is_named_with_what_to_install(self):
        python = self.folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        python.chmod(0o755)
        self.addCleanup(python.unlink)
        done = run([LAUNCHER, "demo", "--python", python], cwd=self.folder)
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr),
            (
                2,
                "",
                (
                    f"fragtrace: demo: {python} has no PyTorch. Run pip install 'fragtrace[demo]', or give "
                    "an interpreter that has PyTorch: --python PATH\n"
                ),
            ),
        )

    def test_an_unknown_option_and_a_missing_interpreter_are_refused(self):
        self.assertEqual(
            self.refused("--outpt", "x"),
            (2, "fragtrace: unknown option --outpt; did you mean '--output'? (fragtrace demo --help)\n"),
        )
        self.assertEqual(self.refused("--python", "/nowhere/python")[0], 2)

    def test_without_any_python_one_line_says_so(self):
        code, said = self.refused(env=environment(PATH="/nowhere"))
        self.assertEqual((code, said), (127, "fragtrace: python3: command not found\n"))

    def test_help_names_the_options(self):
        for option in ("-h", "--help"):
            shown = self.run_well([LAUNCHER, "demo", option])
            self.assertIn("\nUsage: fragtrace demo [OPTIONS]\n", shown.stdout)
            self.assertIn("--output FILE", shown.stdout)


class Demo(real_process.RealProcessTest):
    def test_the_demo_prints_the_report_and_writes_trace_and_page(self):
        page = pathlib.Path("new", "demo.html")
        command = [LAUNCHER, "demo", "--python", TORCH_PYTHON, "-o", page]
        done = self.run_well(command, cwd=self.folder)
        (trace,) = traces(self.folder / "new")
        self.assertIn("GPT with 163.", done.stdout)
        self.assertIn("step   40", done.stdout)
        self.assertIn(str(self.folder / page), done.stdout)
        report = self.report(trace)
        self.assertEqual(report["source"]["events_lost"], 0)
        self.assertEqual(report["fidelity"]["placements"], report["fidelity"]["placements_equal"])
        self.assertIn("gpt.py:", done.stdout)
        self.assertGreater((self.folder / page).stat().st_size, 100_000)

        # A second run replaces the page and keeps the earlier trace.
        again = self.run_well(command, cwd=self.folder)
        self.assertEqual(len(traces(self.folder / "new")), 2)
        self.assertIn("gpt.py:", again.stdout)


if __name__ == "__main__":
    unittest.main()
