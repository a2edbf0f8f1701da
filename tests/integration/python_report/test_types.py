"""The Python package agrees with its types, and programs that use it see them."""

import shutil
import sys

import package
import real_process
from real_process import environment

USER = """
import fragtrace
report = fragtrace.load("a.ftrace", capacity="16GiB", whatif=False)
reveal_type(report)
reveal_type(report.verdict)
reveal_type(report.ooms)
reveal_type(report.blocks())
reveal_type(fragtrace.start())
fragtrace.load(17)
with fragtrace.load("b.ftrace") as other:
    other.replay(confs="x")
"""


class Types(real_process.RealProcessTest):
    def mypy(self, *arguments, expected=0, **options):
        return self.run_well(
            [MYPY, "-m", "mypy", f"--cache-dir={self.folder}", *arguments],
            expected,
            env=environment(PYTHONDONTWRITEBYTECODE=1),
            **options,
        ).stdout

    def test_the_package_agrees_with_its_types(self):
        said = self.mypy("-p", "fragtrace", cwd=package.PACKAGE)
        self.assertRegex(said, r"Success: no issues found in \d+ source files")

    def test_a_program_sees_them_where_the_package_is_installed(self):
        installed = self.folder / "environment"
        self.run_well([sys.executable, "-m", "venv", "--without-pip", installed])
        (site,) = installed.glob("lib/python3*/site-packages")
        shutil.copytree(package.PACKAGE / "fragtrace", site / "fragtrace")
        program = self.folder / "program.py"
        program.write_text(USER)
        said = self.mypy(
            "--strict",
            f"--python-executable={installed}/bin/python",
            program,
            expected=1,
            cwd=self.folder,
        )
        for kind in (
            "fragtrace.report.Report",
            "str",
            "list[dict[str, Any]]",
            "fragtrace.report.Table",
            "bool",
        ):
            self.assertIn(f'Revealed type is "{kind}"', said.replace("builtins.", "").replace("typing.", ""))
        self.assertIn('"load" has incompatible type "int"', said)
        self.assertIn('Unexpected keyword argument "confs"', said)
        self.assertIn("Found 2 errors", said)


MYPY = package.tool_python("mypy")

if __name__ == "__main__":
    if MYPY is None:
        print("skipped: mypy is not installed (scripts/setup --tests)")
        sys.exit(77)
    real_process.main()
