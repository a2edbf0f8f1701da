"""The first example of docs/jobs.md: its commands print what the page shows, and its remedy helps."""

import os
import pathlib
import re

import real_process
from real_process import BUILD, SOURCE, TORCH_PYTHON, environment, run

RELEASE = "2.15."  # of PyTorch, whose numbers the page shows


def without_chance(text):
    """Without process ids and times."""
    text = re.sub(r"(?m)^( +\d) +\d+ ", r"\1 PID ", text)
    return re.sub(r"first, .* after the job began", "first, TIME after the job began", text)


class Example(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        version = run([TORCH_PYTHON, "-c", "import torch; print(torch.__version__)"]).stdout
        if not version.startswith(RELEASE):
            self.skipTest(f"the page has the numbers of PyTorch {RELEASE}x, not of {version.strip()}")

    def test_the_commands_print_what_the_page_shows(self):
        page = (SOURCE / "docs" / "jobs.md").read_text()
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        self.assertEqual([kind for kind, _ in blocks], ["python", "sh", "text", "sh"])
        (_, program), (_, commands), (_, shown), (_, again) = blocks
        folder = self.folder / "job"
        folder.mkdir()
        (folder / "train.py").write_text(program)
        env = environment()
        env["PATH"] = os.pathsep.join(
            [str(BUILD / "bin"), str(pathlib.Path(TORCH_PYTHON).parent), env.get("PATH", "")]
        )
        done = self.run_well(["bash", "-c", commands], cwd=folder, env=env)
        self.assertEqual(without_chance(done.stdout), without_chance(shown))
        done = self.run_well(["bash", "-c", again], cwd=folder, env=env)
        self.assertNotIn("OutOfMemoryError", done.stderr)


if __name__ == "__main__":
    real_process.main()
