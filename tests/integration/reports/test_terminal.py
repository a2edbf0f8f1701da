"""On a terminal the report wraps to its width; in a file or a pipe each line stays whole."""

import fcntl
import os
import pathlib
import struct
import subprocess
import termios

import real_process

TRACE = pathlib.Path(__file__).resolve().parents[2] / "format" / "golden" / "v1-ended.ftrace"


def shown_on_terminal(command, columns):
    """The output of `command` on a terminal with so many columns."""
    env = real_process.environment()
    controller, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, env=env) as process:
        os.close(terminal)
        shown = b""
        try:
            while data := os.read(controller, 65536):
                shown += data
        except OSError:  # the end, on Linux
            pass
    os.close(controller)
    return process.returncode, shown.decode().replace("\r\n", "\n")


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
                        self.assertTrue(len(line) <= columns or len(line.split()) == 1, line)


if __name__ == "__main__":
    real_process.main()
