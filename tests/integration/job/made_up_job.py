"""A made-up job on disk, and what `fragtrace job analyze` and analyze-job must make of it."""

import contextlib
import json
import os
import pathlib
import socket

import real_process
import test_tools
from real_process import ANALYZER, LAUNCHER

MAKE_JOB = os.environ["FRAGTRACE_MAKE_JOB"]
ANALYZE_JOB = real_process.SOURCE / "scripts" / "job" / "analyze-job"
DASK = test_tools.folder_of("distributed")
DASK_PYTHON = DASK / "bin" / "python" if DASK else None
RANKS = 8


class MadeUpJobTest(real_process.RealProcessTest):
    """Eight ranks of 150,000 events, and a file that is no trace."""

    def setUp(self):
        super().setUp()
        with contextlib.suppress(OSError):  # somebody else's Dask has its usual port
            self.addCleanup(socket.create_server(("", 8787)).close)
        self.job = self.folder / "traces"
        self.run_well([MAKE_JOB, "traces", self.job, RANKS, 150_000])
        self.bad = self.job / "train.9.ftrace"
        self.bad.write_text("no trace")
        self.names = sorted(path.name for path in self.job.glob("*.ftrace"))

    def serial(self):
        """The file of one command that reads the traces one after the other on the same machine."""
        whole = self.folder / "serial.json"
        self.run_well([ANALYZER, "summarize", self.job, "-o", whole], 2)
        return whole.read_bytes()

    def analyze(self, *options, folder=None, python=DASK_PYTHON, **others):
        command = [LAUNCHER, "job", "analyze", folder or self.job, "--python", python, *options]
        done = real_process.run(command, **others)
        for line in done.stderr.splitlines():
            self.assertRegex(line, r"^(fragtrace|fraganalyze): ", done.stderr)
        return done

    def result(self, output=None):
        """The merged file. Each trace must be in it exactly once."""
        content = pathlib.Path(output or self.job / "job", "job.json").read_bytes()
        document = json.loads(content)
        rows = document["process_summaries"] + document.get("unreadable", [])
        self.assertEqual(sorted(row["file"] for row in rows), self.names)
        self.assertEqual([row["file"] for row in document["unreadable"]], [self.bad.name])
        return content

    def summaries(self):
        """{name: (inode, time of change)} of the summaries."""
        return {
            path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
            for path in (self.job / "job" / "summaries").glob("*.json")
        }

    def readable(self, summaries):
        """Without the file that cannot be read, which is tried again each time."""
        return {name: value for name, value in summaries.items() if not name.startswith(self.bad.name)}
