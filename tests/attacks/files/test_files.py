"""Hostile files and folders: fraganalyze refuses or reads them within 10 s and 1 GiB.

Each test makes the file itself, so that it can be read here what is hostile about it."""
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time
import unittest

from trace_bytes import *

ANALYZER = pathlib.Path(os.environ.get("FRAGTRACE_BUILD", "build")).resolve() / "bin/fraganalyze"
MOST_SECONDS = 10
MOST_BYTES = 1 << 30
CARD = 16 << 30
BASE = 0x7F0000000000
READING = (["dump"], ["dump", "--facts"], ["list"], ["summarize"], ["check", "--max-ooms", "9"],
           ["replay"], ["validate"], ["whatif"])


class Result:
    def __init__(self, status, out, err, seconds, peak_bytes):
        self.status, self.out, self.err = status, out, err
        self.seconds, self.peak_bytes = seconds, peak_bytes


def run(*command, stdout=None, **options):
    """Runs fraganalyze; memory beyond the bound is measured, twice the bound is refused."""
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (3 * MOST_BYTES, 3 * MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = subprocess.Popen([ANALYZER, *command], stdin=subprocess.DEVNULL,
                                   stdout=stdout or out, stderr=err, preexec_fn=limit, **options)
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
        return Result(process.returncode, out.read(), err.read(), time.monotonic() - begin,
                      usage.ru_maxrss << 10)


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
        """Every command that reads one file, and the report as text, JSON and page."""
        for command in READING:
            self.bounded(command[0], path, *command[1:], *more)
        self.bounded(path, "--json", "-", *more)
        self.bounded(path, "--html", self.folder / "page.html", *more)
        self.bounded("compare", path, path)

    def card(self, **more):
        return Trace(**more).facts(command_line="train", device__0__total_bytes=str(CARD),
                                   allocator_backend="native")


class RingsOfOthers(Attacks):
    """What is absorbed into a trace, and by whom."""

    def killed(self, folder=None):
        folder = folder or self.folder
        ring = folder / "t.ring"
        trace = self.card(ring_path=ring)
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20, flags=FROM_ALLOCATOR),
                     Event(BLOCK_ALLOC, BASE, 512, 512))
        ring.write_bytes(trace.ring([Event(BLOCK_ALLOC, BASE + 512, 500, 512)], tail=2))
        return trace.save(folder / "t.ftrace"), ring

    def assert_untouched(self, path, ring, before):
        self.assertEqual(path.read_bytes(), before)
        self.assertTrue(ring.exists())

    def test_commands_that_only_read_change_nothing_and_show_the_rings_events(self):
        path, ring = self.killed()
        before = path.read_bytes()
        for command in READING:
            self.bounded(command[0], path, *command[1:])
        self.bounded("compare", path, path)
        self.bounded("list", self.folder)
        self.assert_untouched(path, ring, before)
        self.assertIn(b"requested=500", self.bounded("dump", path).out)

    def test_the_report_absorbs_the_ring_of_its_own_users_trace(self):
        path, ring = self.killed()
        before = path.read_bytes()
        self.bounded(path)
        self.assertGreater(len(path.read_bytes()), len(before))
        self.assertFalse(ring.exists())
        self.assertIn(b"requested=500", self.bounded("dump", path).out)

    @unittest.skipUnless(os.geteuid() == 0, "changes owners")
    def test_a_trace_or_ring_of_another_user_is_read_and_not_absorbed(self):
        for number, strangers in enumerate(({"t.ftrace"}, {"t.ring"}, {"t.ftrace", "t.ring"})):
            folder = self.folder / str(number)
            folder.mkdir()
            path, ring = self.killed(folder)
            for name in strangers:
                os.chown(folder / name, 65534, 65534)
            before = path.read_bytes()
            self.bounded(path)
            self.bounded(folder)
            self.assert_untouched(path, ring, before)

    def test_a_trace_that_is_a_symbolic_link_is_read_and_not_absorbed(self):
        path, ring = self.killed()
        before = path.read_bytes()
        link = self.folder / "link.ftrace"
        link.symlink_to(path)
        self.assertIn(b"train", self.bounded(link).out)
        self.assert_untouched(path, ring, before)

    def test_a_ring_in_a_folder_where_others_may_rename_is_not_removed(self):
        path, ring = self.killed()
        shared = self.folder / "shared"
        shared.mkdir()
        ring.rename(shared / "t.ring")
        shared.chmod(0o777)
        trace = self.card(ring_path=shared / "t.ring")
        trace.save(path)
        self.bounded(path)
        self.assertTrue((shared / "t.ring").exists())

    def test_a_signal_is_noted_in_the_users_own_traces_only(self):
        path = self.card(pid=4194304).save(self.folder / "a.ftrace")
        before = path.read_bytes()
        link = self.folder / "link.ftrace"
        link.symlink_to(path)
        self.bounded(link, "--killed", "4194304=9")
        self.assertEqual(path.read_bytes(), before)
        self.bounded(path, "--killed", "4194304=9")
        self.assertGreater(len(path.read_bytes()), len(before))


if __name__ == "__main__":
    unittest.main()
