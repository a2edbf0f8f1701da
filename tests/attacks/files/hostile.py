"""Runs fraganalyze on hostile files: each command must end within 10 s and 1 GiB.

A refusal is one line with exit status 2.
"""

import os
import pathlib
import resource
import subprocess
import tempfile
import time
import unittest

import json_schema
from trace_bytes import *

SOURCE = pathlib.Path(__file__).resolve().parents[3]

ANALYZER = pathlib.Path(os.environ.get("FRAGTRACE_BUILD", "build")).resolve() / "bin/fraganalyze"
# A sanitizer makes the analyzer about ten times slower. Such a build is tested for what the sanitizer finds.
MOST_SECONDS = 100 if os.environ.get("FRAGTRACE_SANITIZE") else 10
MOST_BYTES = 1 << 30
CARD = 16 << 30
BASE = 0x7F0000000000
READING = (
    ["dump"],
    ["dump", "--facts"],
    ["list"],
    ["summarize"],
    ["check", "--max-ooms", "9"],
    ["replay"],
    ["validate"],
    ["whatif"],
)


class Result:
    def __init__(self, status, out, err, seconds, peak_bytes):
        self.status, self.out, self.err = status, out, err
        self.seconds, self.peak_bytes = seconds, peak_bytes


def run(*command, stdout=None, **options):
    """Runs fraganalyze and measures its memory. Twice the allowed memory is a hard limit."""

    def limit():
        if not os.environ.get("FRAGTRACE_SANITIZE"):  # a sanitizer reserves terabytes of addresses
            resource.setrlimit(resource.RLIMIT_DATA, (3 * MOST_BYTES, 3 * MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = subprocess.Popen(
            [ANALYZER, *command],
            stdin=subprocess.DEVNULL,
            stdout=stdout or out,
            stderr=err,
            preexec_fn=limit,
            **options,
        )
        deadline = begin + 3 * MOST_SECONDS
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
                deadline += 60
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        # Wall-clock time, but without the processor time that other programs use.
        seconds = min(time.monotonic() - begin, usage.ru_utime + usage.ru_stime)
        result = Result(process.returncode, out.read(), err.read(), seconds, usage.ru_maxrss << 10)
    json_schema.check_command([ANALYZER, *command], result.status, result.out, options.get("cwd"))
    return result


class Attacks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def bounded(self, *command, statuses=(0, 1, 2), **options):
        with self.subTest(command=" ".join(map(str, command[:1] + command[2:]))):
            result = run(*command, **options)
            note = result.err[-400:]
            self.assertIn(result.status, statuses, note)
            self.assertLess(result.seconds, MOST_SECONDS, note)
            self.assertLess(result.peak_bytes, MOST_BYTES, note)
            self.assertNotIn(b"internal error", result.err)
            if result.status == 2:
                self.assertEqual(result.err.count(b"\n"), 1, result.err[:400])
            return result

    def refused(self, *command, saying=b"", **options):
        result = self.bounded(*command, statuses=(2,), **options)
        if result:
            self.assertIn(saying, result.err)
        return result

    def read_by_all(self, path, *more):
        """Runs every command that reads one file, and the report as text, JSON and page."""
        for command in READING:
            self.bounded(command[0], path, *command[1:], *more)
        report = self.bounded(path, "--json", "-", *more)
        page = self.bounded(path, "--html", self.folder / "page.html", *more)
        if report and page:
            self.assertEqual(page.status, report.status, page.err)  # a readable file can also be drawn
        self.bounded("compare", path, path)

    def small_trace(self):
        """A trace of one segment with one block."""
        segment = Event(DEVICE_ALLOC, BASE, 2 << 20, flags=FROM_ALLOCATOR)
        trace = self.card().events(segment, Event(BLOCK_ALLOC, BASE, 512, 512))
        return trace.save(self.folder / "t.ftrace")

    def card(self, **more):
        return Trace(**more).facts(
            command_line="train", device__0__total_bytes=str(CARD), allocator_backend="native"
        )
