"""Starts the launcher in a test, with a small program that allocates on the virtual GPU."""

import sys

import real_process
from real_process import LAUNCHER

CLIENT = real_process.SOURCE / "tests" / "integration" / "process_life" / "client.py"
CARD = "1GiB,context=0"


class LauncherTest(real_process.RealProcessTest):
    def launch(self, *arguments, expected=0, **options):
        options.setdefault("cwd", self.folder)
        return self.run_well([LAUNCHER, *arguments], expected, **options)

    def client(self, count=50, ending="return"):
        return [sys.executable, str(CLIENT), "/dev/null", str(count), ending]


def fake_python(version, *more):
    """A program in place of an interpreter, which answers the questions of the doctor."""
    lines = [f"version\t{version}", "implementation\tcpython", "bits\t64", "executable\t/usr/bin/python"]
    lines += ["conda\tFalse", "virtual\tFalse", "recorder\tTrue", *more, "end\t1"]
    return "#!/bin/sh\ncat << 'EOF'\n" + "\n".join(lines) + "\nEOF\n"
