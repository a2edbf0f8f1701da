"""Runs real programs with the built recorder and the built virtual GPU, and reads their traces.

For tests that are Python files. ctest sets FRAGTRACE_BUILD (the build tree) and FRAGTRACE_PYTHON (an
interpreter with PyTorch, or empty).
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["FRAGTRACE_BUILD"])
# For tests that limit addresses, bring a sanitizer of their own, or load the analyzer into Python.
not_sanitized = unittest.skipIf(
    os.environ.get("FRAGTRACE_SANITIZE"), "this build has a sanitizer, which does not allow it"
)
SOURCE = pathlib.Path(__file__).resolve().parents[2]
LAUNCHER = BUILD / "bin" / "fragtrace"
ANALYZER = BUILD / "bin" / "fraganalyze"
SHIM = BUILD / "lib" / "libfragtrace.so"
VIRTUAL_GPU = BUILD / "lib" / "fragtrace" / "vgpu"
TORCH_PYTHON = os.environ.get("FRAGTRACE_PYTHON", "")
DEMOS = SOURCE / "scripts" / "demos"
sys.path.append(str(SOURCE / "scripts"))

import abort_at_end
import check_report
import json_schema

MIB = 2**20
GIB = 2**30


def environment(card=None, record_to=None, **variables):
    """The environment of a program: virtual GPU and recorder only by LD_PRELOAD, the recorder first."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FRAGTRACE_", "PYTORCH_", "LD_"))
    }
    env["FRAGTRACE_KEEP_FREE"] = "0"  # the tests also run where less than 10 % of the disk is free
    preload = []
    if record_to is not None:
        preload.append(str(SHIM))
        env["FRAGTRACE_OUTPUT"] = str(record_to)
        # A killed program leaves its ring, which is removed with the test's folder.
        env["FRAGTRACE_RING_DIRECTORY"] = str(record_to)
    if card is not None:
        names = (VIRTUAL_GPU / "preload.list").read_text().split()
        preload += [str(VIRTUAL_GPU / name) for name in names]
        env["LD_LIBRARY_PATH"] = str(VIRTUAL_GPU)
        env["FRAGTRACE_VIRTUAL_GPU"] = card
    if preload:
        env["LD_PRELOAD"] = ":".join(preload)
    env.update({name: str(value) for name, value in variables.items()})
    return env


def run(command, **options):
    options.setdefault("timeout", 300)
    options.setdefault("env", environment())
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        **options,
    )
    json_schema.check_command(command, done.returncode, done.stdout, options.get("cwd"))
    return done


def with_escapes(text):
    """Text as the analyzer prints and exports it: no control character."""
    names = {"\n": "\\n", "\t": "\\t"}
    return re.sub("[\0-\x1f\x7f]", lambda found: names.get(found[0], f"\\u{ord(found[0]):04x}"), text)


def traces(folder):
    return sorted(pathlib.Path(folder).glob("*.ftrace"))


def page_header(file):
    """The small part of a page's data."""
    return json.loads(re.search(r'id="ft-header">(.*?)</script>', file.read_text(), re.DOTALL).group(1))


def interpreters():
    """Installed interpreters with ctypes, by version: the first of each in FRAGTRACE_PYTHONS."""
    found = {}
    for path in os.environ["FRAGTRACE_PYTHONS"].split(":"):
        asked = subprocess.run(
            [path, "-c", "import sys, ctypes; print(sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode == 0:
            found.setdefault(asked.stdout.strip(), path)
    return found


class RealProcessTest(unittest.TestCase):
    """A test with its own folder, which is removed afterwards."""

    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="fragtrace-test-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def run_well(self, command, expected=0, **options):
        done = run(command, **options)
        self.assert_status(command, done, expected)
        return done

    def assert_status(self, command, done, expected):
        self.assertEqual(
            done.returncode, expected, f"{command}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
        )

    def run_training(self, command, expected=0, *, env, **options):
        """Like run_well, for a program with a PyTorch backward pass, which may abort at its end."""
        done = self.without_abort_at_end(run([TORCH_PYTHON, *command], env=env, **options), env)
        self.assert_status(command, done, expected)
        return done

    def without_abort_at_end(self, done, env):
        """The outcome without PyTorch's own abort at the end of a training, which is printed.

        The trace must say how the process ended.
        """
        status = abort_at_end.status_but_for_abort(done.returncode, done.stderr)
        if status is None:
            return done
        print(f"{self.id()}: PyTorch aborted at its end (scripts/abort_at_end.py)", file=sys.stderr)
        if "FRAGTRACE_OUTPUT" in env:
            newest = max(traces(env["FRAGTRACE_OUTPUT"]), key=lambda trace: trace.stat().st_mtime_ns)
            self.assertTrue(abort_at_end.trace_ends_killed(ANALYZER, newest), newest)
        stderr = "".join(
            line for line in done.stderr.splitlines(keepends=True) if line.rstrip("\n") != abort_at_end.LINE
        )
        return subprocess.CompletedProcess(done.args, status, done.stdout, stderr)

    def container(self):
        """A command that starts another one with process ids of its own; the first has the id 1."""
        command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--map-current-user"]
        if shutil.which("unshare") is None or run([*command, "true"]).returncode != 0:
            self.skipTest("no other PID namespace: unshare --pid is not allowed here")
        return command

    def only_trace(self, folder=None):
        found = traces(folder or self.folder)
        self.assertEqual(len(found), 1, f"traces: {found}")
        return found[0]

    def report(self, trace, *arguments, process=None):
        """The JSON of `fraganalyze TRACE` without the what-if table, which takes longest.

        It must be consistent, and agree with the text of the same run, with `fraganalyze summarize`, and with
        `process`, its line in the JSON of a job.
        """
        with tempfile.TemporaryDirectory(prefix="fragtrace-report-") as folder:
            file = pathlib.Path(folder, "report.json")
            done = self.run_well([ANALYZER, trace, "--no-whatif", "--json", file, *arguments])
            report = json.loads(file.read_text())
        summary = json.loads(self.run_well([ANALYZER, "summarize", trace, "--json", "-"]).stdout)
        self.assert_agrees(
            trace, report, text=done.stdout, summary=summary, process=process, arguments=arguments
        )
        return report

    def replay(self, trace, conf, *arguments):
        replay = json.loads(
            self.run_well(
                [ANALYZER, "replay", trace, "--pool", "pytorch", "--conf", conf, *arguments, "--json", "-"]
            ).stdout
        )
        self.assert_agrees(trace, replay, arguments=arguments)
        return replay

    def assert_all_agree(self, trace, *arguments):
        """Checks all kinds of reports of this trace or snapshot, including the what-if table. Returns the
        JSON."""
        reports = check_report.all_reports(ANALYZER, trace, *arguments)
        self.assert_agrees(trace, **reports, arguments=arguments)
        return reports["report"]

    def assert_agrees(self, trace, report, **others):
        """Checks that check_report.contradictions() finds none."""
        self.assertEqual(check_report.contradictions(report, **others), [], trace)

    def assert_pool_replayed(self, pool):
        """The replay of a pool of the program placed all its blocks and segments as recorded."""
        fidelity = pool["fidelity"]
        self.assertEqual(fidelity["reason"], "")
        self.assertEqual(fidelity["placements_equal"], fidelity["placements"])
        self.assertEqual(fidelity["segments_equal"], fidelity["segments"])
        self.assertGreaterEqual(fidelity["placements"], pool["allocations"], "not all were compared")
        self.assertGreater(fidelity["placements"], 0)

    def events(self, trace):
        """The lines of `fraganalyze dump`."""
        return self.run_well([ANALYZER, "dump", trace, "--no-stacks"]).stdout.splitlines()

    def assert_events_hold(self, trace, logged, kind):
        """Checks that every logged (address, bytes) is an event of this kind, in that order.

        Addresses are used again, so the search continues after the last match.
        """
        lines = [line for line in self.events(trace) if re.search(rf"\b{kind}\b", line)]
        position = 0
        for number, (address, size) in enumerate(logged):
            wanted = re.compile(rf"\b0x0*{address:x}\b")
            while position < len(lines) and not wanted.search(lines[position]):
                position += 1
            self.assertLess(
                position,
                len(lines),
                f"allocation {number} of {len(logged)}, {address:#x} of {size} bytes, "
                f"is not among the {len(lines)} events of {trace}",
            )
            position += 1


def read_log(path):
    """The (address, bytes) pairs that a client wrote, one per line, after each call had returned."""
    logged = []
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):  # the last line may have been cut by the kill
            address, size = line.split()
            logged.append((int(address, 16), int(size)))
    return logged


def main():
    """Exit status 77, with the names on the last line, if all tests passed but some were skipped."""
    ran = unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]], exit=False).result
    if not ran.wasSuccessful():
        sys.exit(1)
    for test, reason in ran.skipped:
        print(f"skipped: {test}: {reason}")
    if ran.skipped:
        sys.exit(77)
    if not ran.testsRun:
        sys.exit("no test was run")
