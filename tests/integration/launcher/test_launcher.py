"""The launcher: its options, exit codes and signals, and what the program sees."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import real_process
from launching import CARD, LauncherTest
from real_process import ANALYZER, LAUNCHER, SHIM, VIRTUAL_GPU, environment, run, traces

# Prints that it has started, then the signal that came, and ends with 40 + its number.
WAITER = """
import os, signal, sys, time
def ended(number, frame):
    os.write(1, b'signal %d\\n' % number)  # print() may be interrupted by this
    sys.exit(40 + number)
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    assert signal.getsignal(each) is not signal.SIG_IGN
    signal.signal(each, ended)
print('up', flush=True)
time.sleep(60)
"""


def running_in_group(group):
    """Running processes of a process group. Zombies do not count."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = entry.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # the process has just ended
        if int(of_group) == group and state not in "ZX":
            found.append(entry.parent.name)
    return found


class Launcher(LauncherTest):
    # ---- usage ----------------------------------------------------------------------------------

    def test_help_begins_with_examples_and_lists_the_variables(self):
        text = self.launch("--help").stdout
        self.assertTrue(text.startswith("Examples:\n"), text)
        for name in ("FRAGTRACE_OUTPUT", "FRAGTRACE_OFF", "FRAGTRACE_VIRTUAL_GPU"):
            self.assertIn(name, text)
        self.assertEqual(self.launch("run", "--help").stdout, text)

    def test_limits_reach_the_recorder_and_a_bad_size_is_refused(self):
        self.launch("run", "--virtual-gpu", CARD, "--quiet", "--flight-recorder", *self.client())
        facts = self.run_well([ANALYZER, "dump", "--facts", self.only_trace()]).stdout
        self.assertIn(f"options.size_limit\t{64 * real_process.MIB}\n", facts)
        for arguments in (
            ["--size-limit"],
            ["--size-limit", "12"],
            ["--size-limit=1KiB"],
            ["--flight-recorder=much"],
        ):
            with self.subTest(arguments=arguments):
                done = self.launch("run", *arguments, "true", expected=2)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_options_set_the_recorders_variables_and_are_checked(self):
        program = "import os; print({k: v for k, v in os.environ.items() if 'FRAGTRACE_S' in k})"
        done = self.launch(
            "run",
            "--stacks",
            "native",
            "--stack-depth=128",
            "--start",
            "off",
            "--start-after=60",
            "--signal",
            "USR2",
            "--",
            sys.executable,
            "-c",
            program,
        )
        self.assertEqual(
            eval(done.stdout),
            {
                "FRAGTRACE_STACKS": "native",
                "FRAGTRACE_STACK_DEPTH": "128",
                "FRAGTRACE_START": "off",
                "FRAGTRACE_START_AFTER": "60",
                "FRAGTRACE_SIGNAL": "USR2",
            },
        )
        self.launch("run", "--quiet", "--min-bytes", "1MiB", "--virtual-gpu", CARD, "--", *self.client())
        facts = self.run_well([ANALYZER, "dump", "--facts", self.only_trace()]).stdout
        self.assertIn(f"options.min_bytes\t{real_process.MIB}\n", facts)
        for arguments in (
            ["--stacks", "some"],
            ["--stack-depth", "129"],
            ["--stack-depth"],
            ["--min-bytes=much"],
            ["--start", "later"],
            ["--signal=KILL"],
            ["--nothing=1"],
            ["--nothing", "1"],
        ):
            with self.subTest(arguments=arguments):
                done = self.launch("run", *arguments, "true", expected=2)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_top_is_fraganalyze_top(self):
        text = self.launch("top", "--help").stdout
        self.assertIn("fragtrace top 4711", text)
        self.assertEqual(
            text.replace("fragtrace top", "fraganalyze top"),
            self.run_well([ANALYZER, "top", "--help"]).stdout,
        )
        for wrong in (["--interval", "much"], [str(2**31)]):
            done = self.launch("top", *wrong, expected=2)
            self.assertRegex(done.stderr, r"^fragtrace: .*\n$")

    def test_the_option_version_prints_name_and_number(self):
        self.assertRegex(self.launch("--version").stdout, r"^fragtrace \d+\.\d+\.\d+\n$")

    def test_an_output_that_cannot_be_written_is_said(self):
        for words in (["--help"], ["--version"], ["run", "--help"], ["clean"], ["doctor", "--help"]):
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(
                    [LAUNCHER, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
                )
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("standard output: cannot be written: No space left on device", done.stderr)

    def test_messages_cannot_control_the_terminal(self):
        done = run([LAUNCHER, "run", "--", "./a\u202eb\u009bc\x1bd\ne\u2028é\udcff"])
        self.assertEqual(done.returncode, 127)
        self.assertIn(r"./a\u202eb\u009bc\u001bd\ne\u2028é?", done.stderr)

    def test_bad_usage_is_one_line_and_exit_code_2(self):
        for arguments in (
            [],
            ["frob"],
            ["run"],
            ["run", "--"],
            ["run", "--bogus", "true"],
            ["run", "--virtual-gpu"],
            ["run", "--virtual-gpu", "", "true"],
            ["run", "--virtual-gpu", "24XiB", "true"],
            ["run", "--virtual-gpu", "24GiB,count=0", "true"],
            ["run", "--virtual-gpu", "24GiB,colour=red", "true"],
            ["run", "--virtual-gpu", "no-such-card", "true"],
            ["run", "--virtual-gpu", "0GiB", "true"],
            ["run", "--virtual-gpu", "99999999999999999999GiB", "true"],
            ["run", "--virtual-gpu", "24GiB,count=1000", "true"],
            ["run", "--virtual-gpu", "24GiB,context=30GiB", "true"],
            ["run", "-o", "", "true"],
            ["run", "-o", "/proc/none", "true"],
        ):
            with self.subTest(arguments=arguments):
                done = self.launch(*arguments, expected=2)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith("fragtrace: "), done.stderr)

    def test_a_bad_card_is_named_where_the_user_wrote_it(self):
        by_option = self.launch("run", "--virtual-gpu", "16", "true", expected=2).stderr
        self.assertTrue(by_option.startswith("fragtrace: --virtual-gpu 16: the card has less"), by_option)
        by_variable = self.launch(
            "run", "true", expected=2, env=environment(FRAGTRACE_VIRTUAL_GPU="16")
        ).stderr
        self.assertTrue(by_variable.startswith("fragtrace: FRAGTRACE_VIRTUAL_GPU=16: the card"), by_variable)

    def test_a_run_without_a_trace_points_to_the_virtual_gpu_if_there_is_no_driver(self):
        try:
            ctypes.CDLL("libcuda.so.1")
            has_driver = True
        except OSError:
            has_driver = False
        hint = "no NVIDIA driver. Record without one: fragtrace run --virtual-gpu 24GiB -- COMMAND"
        said = self.launch("run", "-o", self.folder, "--", "true").stderr
        self.assertIn("no process of this command made a CUDA call", said)
        self.assertEqual(hint in said, not has_driver)
        said = self.launch("run", "--virtual-gpu", CARD, "-o", self.folder, "--", "true").stderr
        self.assertNotIn(hint, said)

    def test_a_missing_library_is_reported_before_anything_is_started(self):
        prefix = self.folder / "prefix"
        (prefix / "bin").mkdir(parents=True)
        shutil.copy(LAUNCHER, prefix / "bin")
        done = run([prefix / "bin" / "fragtrace", "run", "--", "touch", "started"], cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("libfragtrace.so is missing", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertFalse((self.folder / "started").exists())

    def test_exit_code_127_means_an_unknown_command_and_126_an_unusable_one(self):
        self.launch("run", "--", "no-such-program-here", expected=127)
        self.launch("run", "--", "/etc/passwd", expected=126)

    # ---- what the program sees ------------------------------------------------------------------

    def test_output_input_and_exit_code_are_the_programs_own(self):
        program = "import sys; print(sys.stdin.read()); sys.stderr.write('bad\\n'); sys.exit(7)"
        done = self.launch("run", "--", sys.executable, "-c", program, expected=7, input="text")
        self.assertEqual(done.stdout, "text\n")
        self.assertTrue(done.stderr.startswith("bad\n"), done.stderr)

    def test_the_end_of_the_program_is_printed_and_stored_in_its_trace(self):
        for ending, status, by_signal, words in (
            ("signal=11", 128 + 11, "SIGSEGV", "SIGSEGV"),
            ("kill", 128 + 9, "SIGKILL", "killed (SIGKILL)"),
            ("exit=139", 139, None, "exit code 139"),
            ("return", 0, None, "ended normally"),
        ):
            folder = self.folder / ending
            folder.mkdir()
            done = self.launch(
                "run",
                "--virtual-gpu",
                CARD,
                "-o",
                folder,
                "--",
                *self.client(20, ending),
                expected=status,
                env=environment(FRAGTRACE_RING_DIRECTORY=folder),
            )
            lines = done.stderr.splitlines()
            said = next(number for number, line in enumerate(lines) if " events, " in line)
            self.assertTrue(lines[said].endswith(words), done.stderr)
            self.assertIn(words, lines[-1])
            trace = self.only_trace(folder)
            ended = self.report(trace)["source"]["ending"]
            self.assertEqual(
                (ended["code"], ended["signal"]), (None, by_signal) if by_signal else (status, None)
            )
            facts = self.run_well([ANALYZER, "dump", trace, "--facts"]).stdout
            self.assertEqual("end.signal_seen_ns" in facts, by_signal is not None, facts)

    def test_the_exit_code_after_a_fatal_signal_is_128_plus_its_number(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            with self.subTest(number=number):
                done = self.launch(
                    "run",
                    "--",
                    sys.executable,
                    "-c",
                    f"import os; os.kill(os.getpid(), {int(number)})",
                    expected=128 + number,
                )
                self.assertNotIn("line ", done.stderr, "the shell's own message shows")

    def test_signals_are_forwarded_to_the_program(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number=number):
                with subprocess.Popen(
                    [LAUNCHER, "run", "--", sys.executable, "-c", WAITER],
                    env=environment(),
                    cwd=self.folder,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                ) as process:
                    self.assertEqual(process.stdout.readline(), "up\n")
                    process.send_signal(number)
                    output, _ = process.communicate(timeout=120)
                self.assertEqual(output, f"signal {int(number)}\n")
                self.assertEqual(process.returncode, 40 + number)

    def test_a_signal_at_any_moment_of_the_start_leaves_no_running_program(self):
        for pause_ms in range(0, 60, 4):
            with self.subTest(pause_ms=pause_ms):
                with subprocess.Popen(
                    [LAUNCHER, "run", "--", sys.executable, "-c", WAITER],
                    env=environment(),
                    cwd=self.folder,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                ) as process:
                    time.sleep(pause_ms / 1000)
                    process.send_signal(signal.SIGTERM)
                    process.wait(timeout=120)
                # The signal came before the launcher's traps, before the program's handler, or after it.
                self.assertIn(
                    process.returncode, (-signal.SIGTERM, 128 + signal.SIGTERM, 40 + signal.SIGTERM)
                )
                # A process that the launcher itself had started ends at once. The program would wait.
                until = time.monotonic() + 60
                while running_in_group(process.pid) and time.monotonic() < until:
                    time.sleep(0.02)
                self.assertEqual(running_in_group(process.pid), [])

    def test_an_interrupt_at_the_terminal_reaches_the_program_once(self):
        controller, terminal = os.openpty()
        program = (
            "import signal, time\n"
            "count = 0\n"
            "def more(number, frame):\n"
            "    global count\n"
            "    count += 1\n"
            "signal.signal(signal.SIGINT, more)\n"
            "print('up', flush=True)\n"
            "end = time.monotonic() + 60\n"
            "while count == 0 and time.monotonic() < end: time.sleep(0.05)\n"
            "time.sleep(0.5)  # a second one would come now\n"
            "print('interrupts:', count, flush=True)\n"
        )
        script = self.folder / "count.py"
        script.write_text(program)
        starter = (
            "import fcntl, os, sys, termios\n"
            "os.setsid()\n"
            "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
            "os.execv(sys.argv[1], sys.argv[1:])\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", starter, LAUNCHER, "run", "--", sys.executable, script],
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd=self.folder,
            text=True,
        ) as process:
            self.assertEqual(process.stdout.readline(), "up\n")
            os.write(controller, b"\x03")
            output, errors = process.communicate(timeout=120)
        os.close(controller)
        os.close(terminal)
        self.assertEqual((output, process.returncode), ("interrupts: 1\n", 0), errors)

    def test_the_shim_is_preloaded_first_and_the_users_libraries_last(self):
        mine = VIRTUAL_GPU / (VIRTUAL_GPU / "preload.list").read_text().split()[0]
        program = "import os; print(os.environ['LD_PRELOAD'])"
        env = environment(LD_PRELOAD=mine)
        done = self.launch("run", "--virtual-gpu", CARD, "--", sys.executable, "-c", program, env=env)
        names = (VIRTUAL_GPU / "preload.list").read_text().split()
        expected = [str(SHIM), *(str(VIRTUAL_GPU / name) for name in names), str(mine)]
        self.assertEqual(done.stdout.strip().split(":"), expected)

    def test_no_record_runs_on_the_virtual_gpu_without_the_shim(self):
        done = self.launch("run", "--no-record", "--virtual-gpu", CARD, "--", *self.client())
        self.assertEqual((done.stdout, done.stderr), ("50 allocations, then return\n", ""))
        self.assertEqual(traces(self.folder), [])

    def test_an_installed_tree_works_in_any_folder(self):
        prefix = self.folder / "prefix"
        self.run_well(["cmake", "--install", real_process.BUILD, "--prefix", prefix])
        moved = self.folder / "moved"
        prefix.rename(moved)
        done = self.run_well(
            [moved / "bin" / "fragtrace", "run", "--virtual-gpu", CARD, "--", *self.client()], cwd=self.folder
        )
        self.assertEqual(done.stdout, "50 allocations, then return\n")
        self.run_well([moved / "bin" / "fraganalyze", self.only_trace(), "--summary"])


if __name__ == "__main__":
    real_process.main()
