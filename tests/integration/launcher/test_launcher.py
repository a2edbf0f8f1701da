"""The launcher: its exit codes, signals, environment and output."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import real_process
from real_process import ANALYZER, LAUNCHER, SHIM, VIRTUAL_GPU, environment, run, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "process_life" / "client.py"
CARD = "1GiB,context=0"

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


class Launcher(real_process.RealProcessTest):
    def launch(self, *arguments, expected=0, **options):
        options.setdefault("cwd", self.folder)
        return self.run_well([LAUNCHER, *arguments], expected, **options)

    def client(self, count=50, ending="return"):
        return [sys.executable, str(CLIENT), "/dev/null", str(count), ending]

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

    # ---- what is said afterwards ----------------------------------------------------------------

    def test_the_verdict_is_printed_to_the_standard_error_and_short(self):
        done = self.launch("run", "--virtual-gpu", CARD, "-o", "out", "--", *self.client())
        self.assertEqual(done.stdout, "50 allocations, then return\n")
        self.assertEqual(len(traces(self.folder / "out")), 1)
        lines = done.stderr.splitlines()
        self.assertTrue(1 <= len(lines) <= 25, done.stderr)

    def test_a_long_summary_and_a_long_list_are_cut(self):
        prefix = self.folder / "prefix"
        (prefix / "bin").mkdir(parents=True)
        shutil.copy(LAUNCHER, prefix / "bin")
        (prefix / "lib").symlink_to(LAUNCHER.parents[1] / "lib")
        analyzer = prefix / "bin" / "fraganalyze"
        analyzer.write_text("#!/bin/sh\nseq 1000\n")
        analyzer.chmod(0o755)
        done = run(
            [prefix / "bin" / "fragtrace", "run", "--virtual-gpu", CARD, "--", *self.client()],
            cwd=self.folder,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(40 <= done.stderr.count("\n") <= 47, done.stderr)

    def test_quiet_prints_only_the_command_of_the_report_which_can_be_run(self):
        done = self.launch("run", "--quiet", "--virtual-gpu", CARD, "--", *self.client())
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        command = done.stderr.removeprefix("fragtrace: ").strip()
        self.run_well(["bash", "-c", command], cwd=self.folder)

    def test_without_a_trace_one_line_says_why(self):
        done = self.launch("run", "--", "true")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("no trace", done.stderr)
        done = self.launch(
            "run", "--virtual-gpu", CARD, "--", *self.client(), env=environment(FRAGTRACE_OFF=1)
        )
        self.assertIn("FRAGTRACE_OFF", done.stderr)

    def test_every_trace_of_the_run_is_listed_but_no_older_one(self):
        self.launch("run", "--quiet", "--virtual-gpu", CARD, "--", *self.client())
        older = self.only_trace()
        time.sleep(0.05)
        normal, killed = (" ".join(self.client(20, ending)) for ending in ("return", "kill"))
        done = self.launch(
            "run",
            "--virtual-gpu",
            CARD,
            "--",
            "sh",
            "-c",
            f"RANK=3 {normal}; {killed}; true",
            env=environment(FRAGTRACE_RING_DIRECTORY=self.folder),
        )
        lines = done.stderr.splitlines()
        heading = next(
            number
            for number, line in enumerate(lines)
            if re.fullmatch("fragtrace: 2 traces of job [0-9a-f]{12}:", line)
        )
        listed = lines[heading + 1 :]
        self.assertEqual(
            sorted(line.split()[0] for line in listed),
            sorted(trace.name for trace in traces(self.folder) if trace != older),
        )
        said = {re.search(r"pid (\d+)", line)[1]: line for line in listed}
        for trace in traces(self.folder):
            if trace == older:
                continue
            source = self.report(trace)["source"]
            line = said[str(source["process"])]
            self.assertIn("client.py", line)
            self.assertIn(f" {source['events']} events, ", line)
            self.assertIn({"normal": "rank 3, ", "killed": "killed (SIGKILL)"}[source["ended"]], line)

    def test_the_process_that_failed_first_is_explained_even_if_the_command_succeeds(self):
        fine, killed = (" ".join(self.client(*how)) for how in ((3000, "return"), (20, "kill")))
        command = ("sh", "-c", f"RANK=0 {fine}; RANK=1 {killed}; true")
        rings = environment(FRAGTRACE_RING_DIRECTORY=self.folder)
        done = self.launch("run", "--virtual-gpu", CARD, "--", *command, env=rings)
        self.assertRegex(done.stderr, r"(?m)^rank 1 of 2 failed first: killed \(SIGKILL\)$")
        done = self.launch("run", "--virtual-gpu", CARD, "--quiet", "--", *command, env=rings)
        (command,) = re.findall("(?m)^fragtrace: (.*)$", done.stderr)
        self.assertIn("rank 1 of ", self.run_well(["bash", "-c", command], cwd=self.folder).stdout)

    def while_another_run_fails(self, *command):
        """Standard error of a run in whose time and folder another run is killed, and that one's trace."""
        outer = subprocess.Popen(
            [LAUNCHER, "run", *command[:-1], "--", "sh", "-c", f"read line; {command[-1]}"],
            cwd=self.folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(outer.kill)
        before = set(traces(self.folder))
        self.launch("run", "--virtual-gpu", CARD, "--", *self.client(20, "kill"), expected=137)
        (other,) = set(traces(self.folder)) - before
        _, errors = outer.communicate("go on\n", timeout=60)
        self.assertEqual(outer.returncode, 0, errors)
        return errors, other

    def test_traces_of_another_run_in_the_same_folder_at_the_same_time_are_left_out(self):
        well = " ".join(self.client())
        errors, other = self.while_another_run_fails("--virtual-gpu", CARD, well)
        self.assertNotIn("failed first", errors)
        self.assertNotIn(other.name, errors)
        self.assertRegex(errors, "(?m)^fragtrace: 1 trace of job [0-9a-f]{12}:$")
        errors, other = self.while_another_run_fails("--virtual-gpu", CARD, "--quiet", well)
        self.assertNotIn(other.name, errors)
        self.assertRegex(errors, r"^fragtrace: \S*fraganalyze \S+\.ftrace\n$")
        errors, _ = self.while_another_run_fails("true")
        self.assertEqual(
            errors,
            f"fragtrace: no trace of this run in {self.folder}, only traces that other runs of fragtrace "
            "wrote there meanwhile: 1\n",
        )

    def test_quiet_absorbs_the_rings_of_killed_processes(self):
        rings = self.folder / "rings"
        rings.mkdir()
        done = self.launch(
            "run",
            "--quiet",
            "--virtual-gpu",
            CARD,
            "--",
            *self.client(20, "kill"),
            env=environment(FRAGTRACE_RING_DIRECTORY=rings),
            expected=137,
        )
        self.assertEqual(list(rings.iterdir()), [])
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        (trace,) = traces(self.folder)
        self.assertEqual(self.report(trace)["source"]["ended"], "killed")
        self.assertIn("killed (SIGKILL)", self.run_well([ANALYZER, "list", trace]).stdout)
        facts = self.run_well([ANALYZER, "dump", "--facts", trace]).stdout
        self.assertRegex(facts, r"(?m)^end\.signal_seen_ns\s+\d+$")
        allocations = self.run_well([ANALYZER, "dump", trace]).stdout.count(" device_alloc ")
        self.assertGreaterEqual(allocations, 20)

    def test_clean_removes_only_the_files_of_dead_processes(self):
        rings = self.folder / "rings"
        rings.mkdir()
        env = environment(FRAGTRACE_RING_DIRECTORY=rings)
        # Recorded without the launcher, which would absorb the ring.
        run(
            self.client(20, "kill"),
            env=environment(CARD, record_to=self.folder, FRAGTRACE_RING_DIRECTORY=rings),
        )
        (ring,) = rings.glob("*.ring")
        (self.folder / "a.99999999.part2.ftrace.tmp").touch()
        kept = [
            rings / f"fragtrace-0-{os.getpid()}-1.ring",
            rings / "fragtrace-notes.txt",
            self.folder / f"a.{os.getpid()}.part2.ftrace.tmp",
        ]
        for path in kept:
            path.touch()
        (rings / "fragtrace-0-99999998-1.ring").symlink_to(kept[1])
        where = (rings, self.folder)
        before = sorted(self.folder.rglob("*"))
        by_itself = self.launch("clean", "--dry-run", "--age", "0", env=env).stdout
        self.assertIn(f"{ring}  ", by_itself)
        said = self.launch("clean", "--dry-run", "--age", "0", *where).stdout
        self.assertIn("2 would go", said)
        self.assertIn("0 removed", self.launch("clean", *where).stdout)  # they are too new
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        said = self.launch("clean", "--age", "0s", *where).stdout
        self.assertIn(f"{ring}  ", said)
        self.assertIn("2 removed", said)
        self.assertEqual(
            set(before) - set(self.folder.rglob("*")), {ring, self.folder / "a.99999999.part2.ftrace.tmp"}
        )
        for bad in (["--age", "soon"], ["--age", "nan"], ["/nonexistent"], ["--wrong"]):
            done = self.launch("clean", *bad, expected=2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_with_many_traces_the_first_20_are_listed_and_the_rest_counted(self):
        line = " ".join(self.client(1))
        done = self.launch(
            "run", "--virtual-gpu", CARD, "--", "sh", "-c", f"for i in $(seq 23); do {line} & done; wait"
        )
        self.assertEqual(len(traces(self.folder)), 23)
        listed = done.stderr[done.stderr.index("fragtrace: 23 traces of job ") :].splitlines()
        self.assertEqual(len(listed), 22, done.stderr)
        self.assertEqual(listed[-1], "  and 3 more")

    def test_the_list_of_a_folder_is_json_too_and_leaves_other_jobs_out(self):
        for rank in (0, 1):
            self.launch(
                "run", "--quiet", "--virtual-gpu", CARD, "--", *self.client(), env=environment(RANK=rank)
            )
        (self.folder / "foreign.ftrace").write_text("not a trace")
        done = self.run_well([ANALYZER, "list", self.folder, "--json", "-"])
        self.assertIn("foreign.ftrace: is not a trace", done.stderr)
        listed = sorted(json.loads(done.stdout)["traces"], key=lambda trace: trace["rank"])
        self.assertEqual(
            [(trace["rank"], trace["ended"], trace["events_lost"], trace["damaged"]) for trace in listed],
            [(0, "normal", 0, False), (1, "normal", 0, False)],
        )
        job = listed[1]["job"]
        self.assertNotEqual(job, listed[0]["job"])
        done = self.run_well([ANALYZER, "list", self.folder, "--job", job])
        self.assertTrue(done.stdout.startswith(f"1 trace of job {job}:\n"), done.stdout)
        self.assertIn(", rank 1, ", done.stdout)
        (self.folder / "empty").mkdir()
        done = self.run_well([ANALYZER, "list", self.folder / "empty"], expected=2)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_traces_of_a_run_carry_its_job(self):
        self.launch("run", "--quiet", "--virtual-gpu", CARD, "--", *self.client())
        facts = self.run_well([real_process.ANALYZER, "dump", self.only_trace(), "--facts"]).stdout
        self.assertRegex(facts, r"FRAGTRACE_JOB\b.*[0-9a-f]{12}")


if __name__ == "__main__":
    real_process.main()
