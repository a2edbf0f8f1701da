"""Files of other users: rings are not absorbed, and outputs replace nothing by mistake.

Each test makes its file itself, so that the code shows why the file is hostile.
"""

import os
import signal
import subprocess
import time
import unittest

from hostile import ANALYZER, BASE, READING, Attacks
from trace_bytes import *


class RingsOfOthers(Attacks):
    """Which rings are absorbed into a trace, and for which user."""

    def killed(self, folder=None):
        folder = folder or self.folder
        ring = folder / "t.ring"
        trace = self.card(ring_path=ring)
        trace.events(
            Event(DEVICE_ALLOC, BASE, 2 << 20, flags=FROM_ALLOCATOR), Event(BLOCK_ALLOC, BASE, 512, 512)
        )
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

    def test_the_report_absorbs_the_ring_of_the_users_own_trace(self):
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

    def test_a_ring_in_a_folder_that_others_may_change_is_not_removed(self):
        path, ring = self.killed()
        shared = self.folder / "shared"
        shared.mkdir()
        ring.rename(shared / "t.ring")
        shared.chmod(0o777)
        trace = self.card(ring_path=shared / "t.ring")
        trace.save(path)
        self.bounded(path)
        self.assertTrue((shared / "t.ring").exists())

    def test_a_signal_is_noted_only_in_the_users_own_traces(self):
        path = self.card(pid=4194304).save(self.folder / "a.ftrace")
        before = path.read_bytes()
        link = self.folder / "link.ftrace"
        link.symlink_to(path)
        self.bounded(link, "--killed", "4194304=9")
        self.assertEqual(path.read_bytes(), before)
        for wrong in ("4194304=9@", "4194304=9@x", "4194304=9@1@2", "4194304=9@99999999999999999999"):
            self.bounded(path, "--killed", wrong)
            self.assertEqual(path.read_bytes(), before)
        self.bounded(path, "--killed", "4194304=9@77")
        self.assertGreater(len(path.read_bytes()), len(before))
        self.assertIn(b"end.signal_seen_ns\t77\n", path.read_bytes())


class Outputs(Attacks):
    def setUp(self):
        super().setUp()
        self.trace = self.small_trace()

    def test_an_output_that_is_an_input_is_refused(self):
        before = self.trace.read_bytes()
        link = self.folder / "link.json"
        link.symlink_to(self.trace)
        hard = self.folder / "hard.json"
        os.link(self.trace, hard)
        for output in (self.trace, link, hard):
            for command in (
                [self.trace, "--json"],
                [self.trace, "--html"],
                ["whatif", self.trace, "--json"],
                ["summarize", self.trace, "--json"],
                ["replay", self.trace, "--force", "--json"],
                ["check", self.trace, "--no-oom", "--json"],
                ["anonymize", self.trace],
            ):
                self.refused(*command, output, saying=b"this command reads")
        self.assertEqual(self.trace.read_bytes(), before)

    def test_a_file_that_a_trace_names_as_its_ring_is_replaced_unless_it_is_a_ring(self):
        report = self.folder / "r.json"
        for name in (report, "/nowhere/r.json", self.folder / "missing.json"):
            path = self.card(ring_path=name).events(Event(DEVICE_ALLOC, BASE, 2 << 20))
            path = path.save(self.folder / "named.ftrace")
            for command in ([path], ["summarize", path], ["whatif", path], ["replay", path]):
                for _ in range(2):
                    self.bounded(*command, "--json", report, statuses=(0,))
            self.bounded(path, "--json", self.folder / "missing.json", statuses=(0,))
        trace = self.card(ring_path=self.folder / "t.ring", session=(3, 4))
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20))
        path = trace.save(self.folder / "named.ftrace")
        for ring in (
            trace.ring(),
            Trace().ring(),
            trace.ring(head=MASK),
        ):  # its own, another's, a damaged one
            (self.folder / "t.ring").write_bytes(ring)
            said = b"this command reads"
            self.refused("summarize", path, "--force", "--json", self.folder / "t.ring", saying=said)
            self.assertEqual((self.folder / "t.ring").read_bytes(), ring)

    def test_a_foreign_file_is_replaced_only_with_force(self):
        notes = self.folder / "notes.txt"
        notes.write_text("mine")
        self.refused("summarize", self.trace, "--json", notes, saying=b"--force")
        self.assertEqual(notes.read_text(), "mine")
        self.bounded("summarize", self.trace, "--force", "--json", notes, statuses=(0,))
        self.assertIn('"schema"', notes.read_text())

    def test_files_that_resemble_ours_are_foreign(self):
        mine = self.folder / "mine"
        plan = self.folder / "plan.csv"
        plan.write_text("id,lower,upper,size\n1,0,2,10\n")
        for text, command in (
            ('{"schema": "https://example.org/data", "precious": 1}', ["summarize", self.trace, "--json"]),
            ("a flower at supper\nmore\n", [self.trace, "--html"]),
            ("id,lower,upper,note\n1,0,2,precious\n", ["plan", plan, "-o"]),
        ):
            mine.write_text(text)
            self.refused(*command, mine, saying=b"--force")
            self.assertEqual(mine.read_text(), text)

    def test_our_own_files_are_replaced(self):
        for command in (
            [self.trace, "--json"],
            [self.trace, "--html"],
            ["summarize", self.trace, "--json"],
            ["whatif", self.trace, "--json"],
            ["replay", self.trace, "--json"],
            ["compare", self.trace, self.trace, "--json"],
            ["check", self.trace, "--no-oom", "--json"],
            ["list", self.trace, "--json"],
        ):
            output = self.folder / "out"
            for _ in range(2):
                self.bounded(*command, output, statuses=(0,))
            output.unlink()

    def test_new_outputs_follow_the_umask_and_old_ones_keep_their_mode(self):
        report = self.folder / "r.json"
        old = os.umask(0o027)
        self.addCleanup(os.umask, old)
        self.bounded("summarize", self.trace, "--json", report, statuses=(0,))
        self.assertEqual(report.stat().st_mode & 0o777, 0o640)
        report.chmod(0o600)
        self.bounded("summarize", self.trace, "--json", report, statuses=(0,))
        self.assertEqual(report.stat().st_mode & 0o777, 0o600)
        sent = self.folder / "sent.ftrace"
        self.bounded("anonymize", self.trace, sent, statuses=(0,))
        self.assertEqual(sent.stat().st_mode & 0o777, 0o600)

    def test_an_exported_folder_keeps_its_mode(self):
        tables = self.folder / "tables"
        for mode in (0o700, 0o750):
            self.bounded("export", self.trace, "--to", "csv", "-o", tables, statuses=(0,))
            tables.chmod(mode)
            self.bounded("export", self.trace, "--to", "csv", "-o", tables, statuses=(0,))
            self.assertEqual(tables.stat().st_mode & 0o777, mode)
        self.assertEqual(list(self.folder.glob("*.tmp")), [])

    @unittest.skipUnless(os.geteuid() == 0, "changes owners")
    def test_a_link_of_another_user_in_a_shared_folder_is_not_followed(self):
        shared = self.folder / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        victim = self.folder / "victim"
        link = shared / "r.json"
        link.symlink_to(victim)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        self.refused("summarize", self.trace, "--json", link, saying=b"symbolic link")
        victim.write_text('{"schema": 1}')
        self.refused("summarize", self.trace, "--json", link, saying=b"symbolic link")
        self.assertEqual(victim.read_text(), '{"schema": 1}')

    def test_writing_to_a_full_device_is_an_error(self):
        for command in (
            ["dump", self.trace],
            ["--help"],
            ["--version"],
            ["list", self.trace],
            [self.trace],
            ["dump", "--help"],
            ["summarize", self.trace, "--json", "-"],
            ["dump", "--facts", self.trace],
        ):
            with open("/dev/full", "wb") as full:
                self.refused(*command, stdout=full, saying=b"standard output")
        self.refused("summarize", self.trace, "--json", "/dev/full", saying=b"/dev/full")
        self.refused("export", self.trace, "--to", "folded", "-o", "/dev/full", saying=b"/dev/full")

    def test_a_command_that_is_killed_leaves_no_temporary_file(self):
        trace = self.card()
        trace.events(
            *[Event(DEVICE_ALLOC, BASE + i * (2 << 20), 2 << 20, flags=FROM_ALLOCATOR) for i in range(3000)]
        )
        path = trace.save(self.folder / "long.ftrace")
        for number, name in enumerate(("SIGINT", "SIGTERM", "SIGHUP") * 3):
            process = subprocess.Popen(
                [ANALYZER, path, "--json", self.folder / "r.json"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(0.03 * (number % 4))
            process.send_signal(getattr(signal, name))
            process.wait()
            self.assertEqual(list(self.folder.glob("*.tmp")), [])


if __name__ == "__main__":
    unittest.main()
