"""On a terminal the report wraps to its width; in a file or a pipe each line stays whole."""

import fcntl
import os
import pathlib
import re
import shlex
import struct
import subprocess
import termios
import threading

import real_process

TRACE = pathlib.Path(__file__).resolve().parents[2] / "format" / "golden" / "v1-ended.ftrace"


def shown_on_terminal(command, columns, stream="stdout"):
    """The output (or the errors) of `command` on a terminal with so many columns."""
    env = real_process.environment()
    controller, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: terminal}
    # This process keeps the terminal open and writes a mark when the command has ended: the end of a
    # terminal that everybody closed can reach the reader before the last output.
    mark = b"-- end of the command --"
    shown = b""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env, **streams) as process:
        ended = threading.Thread(target=lambda: (process.wait(), os.write(terminal, mark)))
        ended.start()
        while not shown.endswith(mark):
            shown += os.read(controller, 65536)
        ended.join()
    os.close(terminal)
    os.close(controller)
    return process.returncode, shown.removesuffix(mark).decode().replace("\r\n", "\n")


class Terminal(real_process.RealProcessTest):
    def commands(self):
        yield [real_process.ANALYZER, TRACE, "--color", "never"]
        yield [real_process.ANALYZER, "whatif", TRACE, "--color", "never"]
        yield [real_process.ANALYZER, "check", "--help"]

    def test_the_output_wraps_to_the_terminal_and_loses_no_word(self):
        for command in self.commands():
            whole = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            self.assertGreater(max(map(len, whole.splitlines())), 80)
            for columns in (50, 80, 300):
                with self.subTest(command=command, columns=columns):
                    code, shown = shown_on_terminal(command, columns)
                    self.assertEqual(code, 0)
                    self.assertEqual(shown.split(), whole.split())
                    for line in shown.splitlines():
                        longest = max(map(len, line.split()), default=0)
                        self.assertLessEqual(len(line), max(columns, longest), line)

    def test_the_bar_of_memory_fits_the_terminal(self):
        for columns in (50, 60, 80):
            _, shown = shown_on_terminal([real_process.ANALYZER, TRACE, "--color", "always"], columns)
            bars = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown.splitlines() if "█" in line]
            self.assertTrue(bars)
            for bar in bars:
                self.assertLessEqual(len(bar), columns)

    def test_an_export_shows_its_progress(self):
        for to in ("perfetto", "sqlite", "snapshot"):
            with self.subTest(to):
                command = [real_process.ANALYZER, "export", TRACE, "--to", to, "-o", self.folder / to]
                code, shown = shown_on_terminal(command, 80, "stderr")
                self.assertEqual(code, 0)
                self.assertRegex(shown, r"writing events \[.*\] 0/\d+")


class BadCommandLines(real_process.RealProcessTest):
    def refusal(self, *words):
        done = real_process.run([real_process.ANALYZER, *words])
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_a_mistyped_option_is_named_before_what_it_causes(self):
        for words, typed, meant in (
            (("export", TRACE, "--too", "csv", "-o", "x"), "--too", "--to"),
            (("export", TRACE, "--to", "csv", "--outptu", "x"), "--outptu", "--output"),
            (("top", "--srve", ":1"), "--srve", "--serve"),
            (("report", TRACE, "--htlm", "x"), "--htlm", "--html"),
        ):
            with self.subTest(typed):
                self.assertIn(f"{typed} is no option; did you mean '{meant}'?", self.refusal(*words))

    def test_limits_of_a_check_are_not_taken_by_a_report(self):
        said = self.refusal(TRACE, "--max-waste", "10")
        self.assertIn("--max-waste is no option here; it belongs to 'fraganalyze check'", said)

    def test_a_mistyped_command_is_not_taken_for_a_trace(self):
        self.assertIn("did you mean 'export'?", self.refusal("xport"))
        self.assertIn("did you mean 'whatif'?", self.refusal("whatfi", "--no-scan"))
        self.assertIn("no such file", self.refusal("somewhere/train.1.ftrace"))

    def test_an_argument_of_explain_that_is_no_file_and_no_message_is_refused(self):
        said = self.refusal("explain", "hello")
        self.assertIn("hello: neither a file nor an out-of-memory message", said)

    def test_a_share_without_its_sign_is_not_taken_for_bytes(self):
        said = self.refusal("check", TRACE, "--max-waste", "10")
        self.assertIn("'10' has no unit; write 10% for a share, or a size such as 10MiB", said)
        done = real_process.run([real_process.ANALYZER, "check", TRACE, "--max-waste", "0"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_decimal_gigabytes_of_a_capacity_are_pointed_out(self):
        for size, noted in (("16GB", True), ("16GiB", False)):
            done = real_process.run([real_process.ANALYZER, "whatif", TRACE, "--capacity", size])
            self.assertEqual(done.returncode, 0, done.stderr)
            note = "note: --capacity 16GB is 14.9 GiB; a card sold with 16 GB has about 16GiB"
            self.assertEqual(note in done.stderr, noted, done.stderr)

    def test_messages_that_cannot_be_written_change_no_exit_code(self):
        for words, code in (
            (("no-such.ftrace",), 2),
            (("--bogus",), 2),
            (("list", "no-such"), 2),
            (("check", TRACE, "--max-reserved", "1KiB"), 1),
            (("report", TRACE, "--progress"), 0),
        ):
            command = shlex.join(map(str, (real_process.ANALYZER, *words)))
            for redirection in ("2>&-", "2>/dev/full", "<&- 2>&-"):
                with self.subTest(words, redirection=redirection):
                    done = real_process.run(["sh", "-c", f"{command} {redirection}"])
                    self.assertEqual(done.returncode, code, done.stdout)

    def test_two_results_need_two_files(self):
        target = self.folder / "both"
        other_name = f"{self.folder}/../{self.folder.name}/both"
        for json in (target, other_name):
            said = self.refusal("report", TRACE, "--html", target, "--json", json)
            self.assertIn("--html and --json need two files", said)
            self.assertFalse(target.exists())

    def test_a_database_needs_a_file(self):
        said = self.refusal("export", TRACE, "--to", "sqlite", "-o", "-")
        self.assertIn("standard output cannot take this format", said.replace(": ", " "))

    def test_an_output_that_cannot_be_written_is_refused_before_the_work(self):
        missing = self.folder / "missing" / "file"
        for words in (
            ("report", "/no/such", "--html", missing),
            ("whatif", "/no/such", "--json", missing),
            ("report", "/no/such", "--json", self.folder),
        ):
            with self.subTest(words[0]):
                self.assertRegex(self.refusal(*words), "cannot (create|be written)")
        self.assertIn("cannot create", self.refusal("export", "/no/such", "--to", "sqlite", "-o", missing))


class DamagedTraces(real_process.RealProcessTest):
    def test_an_export_says_what_it_lacks(self):
        whole = TRACE.read_bytes()
        cut = self.folder / "cut.ftrace"
        cut.write_bytes(whole[: len(whole) - len(whole) // 3])
        for to in ("perfetto", "csv", "sqlite", "snapshot"):
            with self.subTest(to):
                output = self.folder / f"{to}.out"
                done = real_process.run([real_process.ANALYZER, "export", cut, "--to", to, "-o", output])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, r"\.out lacks events: .* of .*cut\.ftrace cannot be read")
        self.assertIn("the file is damaged", (self.folder / "csv.out" / "warnings.csv").read_text())


if __name__ == "__main__":
    real_process.main()
