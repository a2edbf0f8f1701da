"""Signals between a terminal, the launcher and its program."""

import ctypes
import fcntl
import itertools
import os
import pathlib
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import real_process
from real_process import LAUNCHER, environment

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
RESERVED = (32, 33)  # the C library reserves these: no program can handle them
NOT_TAKEN = (signal.SIGKILL, signal.SIGSTOP, *RESERVED)

# Sets unusual signal masks and handlers, then becomes the program given as argument.
STRANGE = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGRTMIN + 3})
for each in (signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGTSTP):
    signal.signal(each, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""


def state_of(process):
    """The state letter of a process in /proc. Empty once the process is gone."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def wait_until(holds, what):
    until = time.monotonic() + 30
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(f"not within 30 s: {what}")
        time.sleep(0.01)


def send_value(process, number, value):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.sigqueue(process, number, ctypes.c_void_p(value)) != 0:
        raise OSError(ctypes.get_errno(), "sigqueue")


class Signals(real_process.RealProcessTest):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="fragtrace-test-")
        cls.addClassCleanup(holder.cleanup)
        cls.log_program = pathlib.Path(holder.name) / "signal_log"
        subprocess.run(["cc", "-o", cls.log_program, PROGRAMS / "signal_log.c"], check=True)

    def start(self, *arguments, options=("--no-record",), prefix=(), **more):
        """Starts the launcher with the program that logs its signals. `self.program` is that program's
        process id."""
        process = subprocess.Popen(
            [*prefix, LAUNCHER, "run", *options, "--", self.log_program, *arguments],
            env=environment(),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **{"start_new_session": True, **more},
        )
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.program = int(process.stdout.readline().split()[1])
        return process

    def end(self, process, expected=7):
        process.terminate()
        self.assertEqual(process.stdout.readline(), f"signal {int(signal.SIGTERM)} 0\n")
        self.assertEqual(process.stdout.readline(), "")
        self.assertEqual(process.wait(timeout=60), expected)

    def test_each_signal_that_a_program_can_handle_reaches_it_once(self):
        process = self.start()
        for number in range(1, 65):
            if number in NOT_TAKEN or number == signal.SIGTERM:
                continue
            process.send_signal(number)
            self.assertEqual(process.stdout.readline(), f"signal {number} 0\n")
        self.end(process)

    def test_values_of_queued_signals_are_kept_in_order(self):
        process = self.start()
        for value in range(1, 101):
            send_value(process.pid, signal.SIGRTMIN, value)
        for value in range(1, 101):
            self.assertEqual(process.stdout.readline(), f"signal {int(signal.SIGRTMIN)} {value}\n")
        send_value(process.pid, signal.SIGUSR1, 5)
        self.assertEqual(process.stdout.readline(), f"signal {int(signal.SIGUSR1)} 5\n")
        self.end(process)

    def test_signals_reserved_by_the_c_library_end_program_and_launcher(self):
        for number in RESERVED:
            process = self.start()
            os.kill(process.pid, number)
            self.assertEqual(process.wait(timeout=60), 128 + number)
            self.assertEqual(state_of(self.program), "")

    def test_a_killed_launcher_leaves_no_running_program(self):
        process = self.start()
        process.kill()
        process.wait(timeout=60)
        wait_until(lambda: state_of(self.program) in ("", "Z"), "the program ends")

    def test_a_signal_sent_before_the_program_exists_reaches_it(self):
        early = (
            "import os, signal, sys\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGRTMIN})\n"
            "os.kill(os.getpid(), signal.SIGUSR1)\n"
            "os.kill(os.getpid(), signal.SIGRTMIN)\n"
            "os.execv(sys.argv[1], sys.argv[1:])\n"
        )
        program = (
            "import signal\n"
            "for each in (signal.SIGUSR1, signal.SIGRTMIN):\n"
            "    print(signal.sigtimedwait({each}, 30).si_signo)\n"
        )
        done = self.run_well(
            [sys.executable, "-c", early, LAUNCHER, "run", "--no-record", "--", sys.executable, "-c", program]
        )
        self.assertEqual(done.stdout.split(), [str(int(signal.SIGUSR1)), str(int(signal.SIGRTMIN))])

    def test_the_program_inherits_the_launchers_signal_mask_and_handling(self):
        ask = ["grep", "-E", "^(Sig|Shd)", "/proc/self/status"]
        # The interpreter ignores some signals itself, so both commands begin with the interpreter.
        plain = self.run_well([sys.executable, "-c", STRANGE, "/usr/bin/env", *ask]).stdout
        launched = self.run_well(
            [sys.executable, "-c", STRANGE, LAUNCHER, "run", "--no-record", "--", "/usr/bin/env", *ask]
        ).stdout
        # SigQ counts the pending signals of all processes of the user.
        self.assertEqual(
            [line for line in plain.splitlines() if not line.startswith("SigQ")],
            [line for line in launched.splitlines() if not line.startswith("SigQ")],
        )
        self.run_well(
            [sys.executable, "-c", STRANGE, LAUNCHER, "run", "--no-record", "--", "sh", "-c", "exit 7"],
            expected=7,
        )

    # ---- stopping -------------------------------------------------------------------------------

    def test_the_launcher_stops_and_continues_with_its_program(self):
        for number in (signal.SIGSTOP, signal.SIGTSTP):
            with self.subTest(number=number):
                # In a process group whose parent is another one of its session. The kernel does not stop an
                # orphaned group by SIGTSTP.
                process = self.start("default", start_new_session=False, process_group=0)
                os.kill(self.program, number)
                wait_until(lambda p=process: state_of(p.pid) == "T", "the launcher stops")
                os.kill(self.program, signal.SIGCONT)
                wait_until(lambda p=process: state_of(p.pid) == "S", "the launcher continues")
                self.assertEqual(process.stdout.readline(), f"signal {int(signal.SIGCONT)} 0\n")
                self.end(process)

    def test_a_stopped_launcher_continues_its_program(self):
        process = self.start("default", start_new_session=False, process_group=0)
        process.send_signal(signal.SIGTSTP)
        wait_until(lambda: (state_of(process.pid), state_of(self.program)) == ("T", "T"), "both stop")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: (state_of(process.pid), state_of(self.program)) == ("S", "S"), "both continue")
        self.assertEqual(process.stdout.readline(), f"signal {int(signal.SIGCONT)} 0\n")
        self.end(process)

    # ---- at a terminal --------------------------------------------------------------------------

    def at_terminal(self, *arguments):
        """The launcher as the foreground job of a small shell. Returns its terminal, the shell, and a
        function that sends the shell a line and returns its answer."""
        controller, terminal = os.openpty()
        orders, to_shell = os.pipe()
        from_shell, answers = os.pipe()
        command = f'exec {sys.executable} {PROGRAMS}/shell.py "$@" 3<&{orders} 4>&{answers}'
        shell = subprocess.Popen(
            [
                "bash",
                "-c",
                command,
                "bash",
                LAUNCHER,
                "run",
                "--no-record",
                "--",
                self.log_program,
                *arguments,
            ],
            stdin=terminal,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd=self.folder,
            pass_fds=(orders, answers),
        )
        for each in (orders, answers, terminal):
            os.close(each)
        self.addCleanup(shell.stdout.close)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)
        self.program = int(shell.stdout.readline().split()[1])
        self.addCleanup(lambda: state_of(self.program) and os.kill(self.program, signal.SIGKILL))
        lines = os.fdopen(from_shell)
        self.addCleanup(lines.close)
        self.addCleanup(os.close, to_shell)

        def ask(word):
            os.write(to_shell, f"{word}\n".encode())
            return lines.readline().strip()

        return controller, shell, ask

    def nothing_more(self, stream):
        self.assertEqual(select.select([stream], [], [], 0.3)[0], [], "a signal came twice")

    def test_keys_and_resizing_reach_the_program_once(self):
        controller, shell, ask = self.at_terminal()
        for number, act in (
            (signal.SIGINT, lambda: os.write(controller, b"\x03")),
            (signal.SIGQUIT, lambda: os.write(controller, b"\x1c")),
            (signal.SIGTSTP, lambda: os.write(controller, b"\x1a")),
            (
                signal.SIGWINCH,
                lambda: fcntl.ioctl(controller, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 90, 0, 0)),
            ),
        ):
            with self.subTest(number=number):
                act()
                self.assertEqual(shell.stdout.readline(), f"signal {int(number)} 0\n")
                self.nothing_more(shell.stdout)
                self.assertEqual(ask("state"), "running")
        os.kill(self.program, signal.SIGTERM)
        self.assertEqual(ask("end"), "ended 7")
        os.close(controller)

    def test_a_job_stops_at_the_terminal_and_comes_back_to_the_foreground(self):
        controller, shell, ask = self.at_terminal("default")
        for _ in range(3):
            os.write(controller, b"\x1a")
            wait_until(lambda: ask("state") == f"stopped {int(signal.SIGTSTP)}", "the job stops")
            self.assertEqual(state_of(self.program), "T")
            self.assertEqual(ask("resume"), "running")
            self.assertEqual(shell.stdout.readline(), f"signal {int(signal.SIGCONT)} 0\n")
            self.nothing_more(shell.stdout)
        os.write(controller, b"\x03")
        self.assertEqual(shell.stdout.readline(), f"signal {int(signal.SIGINT)} 0\n")
        os.kill(self.program, signal.SIGTERM)
        self.assertEqual(ask("end"), "ended 7")
        os.close(controller)

    def test_a_closed_terminal_hangs_up_the_program_of_a_session_leader(self):
        controller, terminal = os.openpty()
        starter = (
            "import fcntl, os, sys, termios\n"
            "os.setsid()\n"
            "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
            "os.execv(sys.argv[1], sys.argv[1:])\n"
        )
        process = self.start(prefix=(sys.executable, "-c", starter), stdin=terminal, start_new_session=False)
        os.close(terminal)
        os.close(controller)
        self.assertEqual(process.stdout.readline(), f"signal {int(signal.SIGHUP)} 0\n")
        self.end_with_continue(process)

    def end_with_continue(self, process):
        process.terminate()
        rest = process.stdout.read().splitlines()  # the hang-up is followed by a SIGCONT
        self.assertIn(f"signal {int(signal.SIGTERM)} 0", rest)
        self.assertNotIn(f"signal {int(signal.SIGHUP)} 0", rest)
        self.assertEqual(process.wait(timeout=60), 7)

    # ---- after the run --------------------------------------------------------------------------

    def test_an_interrupted_summary_ends_at_once_with_the_programs_exit_code(self):
        prefix = self.folder / "prefix"
        (prefix / "bin").mkdir(parents=True)
        launcher = prefix / "bin" / "fragtrace"
        shutil.copy(LAUNCHER, launcher)
        (prefix / "lib").symlink_to(LAUNCHER.parents[1] / "lib")
        analyzer = prefix / "bin" / "fraganalyze"
        analyzer.touch(0o755)
        # It is asked for a list first, and then for a summary.
        asked = self.folder / "asked"
        slow = f"echo $$ > {asked}.new\nmv {asked}.new {asked}\nexec sleep 60\n"
        slow_list = f"#!/bin/sh\n{slow}"
        slow_summary = f'#!/bin/sh\n[ "$1" = list ] && exit\n{slow}'
        for number, text in itertools.product(
            (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1), (slow_list, slow_summary)
        ):
            with self.subTest(number=number, text=text):
                analyzer.write_text(text)
                with subprocess.Popen(
                    [launcher, "run", "--", "sh", "-c", "touch -d '1 hour' a.ftrace; exit 5"],
                    cwd=self.folder,
                    env=environment(),
                    text=True,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                ) as process:
                    wait_until(asked.exists, "fraganalyze starts")
                    process.send_signal(number)
                    self.assertEqual(process.wait(timeout=20), 5)
                    analyzer_process = int(asked.read_text())
                wait_until(lambda pid=analyzer_process: state_of(pid) in ("", "Z"), "fraganalyze ends")
                asked.unlink()


if __name__ == "__main__":
    real_process.main()
