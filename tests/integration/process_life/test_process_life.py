"""The trace is complete and says how the process ended, for every kind of end."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import real_process
from real_process import ANALYZER, environment, read_log, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "process_life" / "client.py"
CARD = "1GiB,context=0"


class ProcessLife(real_process.RealProcessTest):
    def start(self, count, ending, expected):
        log = self.folder / "log"
        done = self.run_well(
            [sys.executable, CLIENT, log, count, ending],
            expected,
            env=environment(CARD, record_to=self.folder),
        )
        return done, read_log(log)

    def assert_ending(self, ending, code, ended, kind="exit", signal_name=None):
        _, logged = self.start(3000, ending, code)
        trace = self.only_trace()
        source = self.report(trace)["source"]
        self.assertEqual(source["ended"], ended)
        self.assertEqual(
            source["ending"], {"kind": kind, "code": code if kind == "exit" else None, "signal": signal_name}
        )
        self.assertEqual(len(logged), 3000)
        self.assert_events_hold(trace, logged, "device_alloc")

    def test_a_normal_end_is_reported(self):
        self.assert_ending("return", 0, "normal")

    def test_a_nonzero_exit_code_is_a_normal_end(self):
        self.assert_ending("exit=7", 7, "normal")

    def test_an_uncaught_exception_is_a_normal_end(self):
        self.assert_ending("exception", 1, "normal")

    def test_os_exit_is_reported(self):
        self.assert_ending("os_exit=3", 3, "quick_exit")

    def test_an_exec_is_reported_and_the_next_program_has_its_own_trace(self):
        _, logged = self.start(300, "exec", 0)
        first, second = sorted(traces(self.folder), key=lambda trace: trace.stat().st_mtime)
        ends = {trace: self.report(trace)["source"]["ended"] for trace in (first, second)}
        self.assertEqual(sorted(ends.values()), ["exec", "normal"])
        self.assertEqual(len(logged), 600)
        for trace, ended in ends.items():
            part = logged[:300] if ended == "exec" else logged[300:]
            self.assert_events_hold(trace, part, "device_alloc")

    def test_the_next_program_notes_the_exec_and_a_signal_that_ends_it_is_not_the_earlier_ones(self):
        client = real_process.SOURCE / "tests" / "integration" / "control" / "client.py"
        parent = "import subprocess, sys\nsubprocess.run(sys.argv[1:])"
        begin = time.monotonic_ns()
        self.run_well(
            [sys.executable, "-c", parent, sys.executable, client, "alloc=8192", "exec=kill -KILL $$"],
            env=environment(CARD, record_to=self.folder),
        )
        trace = self.only_trace()
        self.assertEqual(self.report(trace)["source"]["ended"], "exec")
        self.run_well([ANALYZER, "list", "--absorb", trace])
        facts = self.run_well([ANALYZER, "dump", trace, "--facts"]).stdout
        (noted,) = re.findall(r"^recorder\.next_program_ns\t(\d+)$", facts, re.MULTILINE)
        self.assertTrue(begin < int(noted) < time.monotonic_ns())
        self.assertNotIn("end.signal", facts)
        self.assertEqual(list(self.folder.glob("*.ring")), [])
        self.assertEqual(self.report(trace)["source"]["ended"], "exec")

    def test_an_abort_is_reported_as_killed(self):
        self.assert_ending("abort", -signal.SIGABRT, "killed", "unknown")

    def test_a_kill_is_reported_as_killed(self):
        self.assert_ending("kill", -signal.SIGKILL, "killed", "unknown")

    def test_a_recorded_parent_notes_the_signal_that_killed_its_child(self):
        parent = (
            "import subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:]).returncode != int(sys.argv[-1]))\n"
        )
        for name in ("SIGKILL", "SIGSEGV", "SIGTERM", "SIGABRT"):
            number = getattr(signal, name)
            folder = self.folder / name
            folder.mkdir()
            log = folder / "log"
            command = [
                sys.executable,
                "-c",
                parent,
                sys.executable,
                CLIENT,
                log,
                "300",
                f"signal={number}",
                f"-{number}",
            ]
            self.run_well(command, env=environment(CARD, record_to=folder))
            trace = self.only_trace(folder)
            source = self.report(trace)["source"]
            self.assertEqual(
                (source["ended"], source["ending"]),
                ("killed", {"kind": "signal", "code": None, "signal": name}),
            )
            self.assert_events_hold(trace, read_log(log), "device_alloc")
            # The ring has already been absorbed, and the trace keeps the signal.
            self.assertEqual(self.report(trace)["source"]["ending"]["signal"], name)
            text = self.run_well([ANALYZER, trace, "--no-whatif"]).stdout.splitlines()[0]
            self.assertTrue(text.endswith("killed (SIGKILL)" if name == "SIGKILL" else name), text)

    def test_the_end_of_a_killed_child_lies_between_its_last_sign_of_life_and_what_its_parent_saw(self):
        """The child is quiet for a while before the kill, so its last event is no good bound."""
        parent = (
            "import pathlib, struct, subprocess, sys, time\n"
            "child = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True)\n"
            "child.stdout.readline()\n"
            "quiet = time.monotonic_ns()\n"
            "(ring,) = pathlib.Path(sys.argv[1]).glob(f'fragtrace-*-{child.pid}-*.ring')\n"
            "alive = 0\n"
            "while alive <= quiet:\n"
            "    time.sleep(0.01)\n"
            "    (alive,) = struct.unpack_from('<Q', ring.read_bytes()[:4096], 288)\n"
            "begin = time.monotonic_ns()\n"
            "child.kill()\n"
            "child.wait()\n"
            "print(quiet, alive, begin, time.monotonic_ns())\n"
        )
        command = [sys.executable, "-c", parent, self.folder, sys.executable, CLIENT]
        done = self.run_well(
            [*command, self.folder / "log", "20", "wait"],
            env=environment(CARD, record_to=self.folder, RANK="1", WORLD_SIZE="2"),
        )
        quiet, alive, begin, end = map(int, done.stdout.split())
        trace = self.only_trace()
        job = json.loads(self.run_well([ANALYZER, trace.parent, "--json", "-"]).stdout)
        facts = dict(
            line.split("\t", 1)
            for line in self.run_well([ANALYZER, "dump", trace, "--facts"]).stdout.splitlines()
            if "_ns\t" in line
        )
        last, seen = int(facts["recorder.alive_ns"]), int(facts["end.signal_seen_ns"])
        self.assertLess(quiet, alive)
        self.assertLessEqual(alive, last)
        self.assertLessEqual(last, seen)
        self.assertLessEqual(begin, seen)
        self.assertLessEqual(seen, end)
        failure = job["first_failure"]
        self.assertFalse(failure["time_at_least"])
        self.assertEqual(failure["time_until_unix_ns"] - failure["time_unix_ns"], seen - last)
        text = self.run_well([ANALYZER, self.folder]).stdout.splitlines()[0]
        self.assertRegex(
            text,
            r"^rank 1 of 2 failed first: killed \(SIGKILL\), \S+ \S+( to \S+ \S+)? after the job began$",
        )

    def test_a_shell_and_every_wait_function_note_the_signal_too(self):
        ways = {"sh": ["sh", "-c", '"$@"; true', "sh"]}
        for call in (
            "wait(None)",
            "wait3(None, 0, None)",
            "wait4(-1, None, 0, None)",
            "waitpid(-1, None, 0)",
            "waitid(0, 0, ctypes.create_string_buffer(128), 4)",
        ):
            ways[call.partition("(")[0]] = [
                sys.executable,
                "-c",
                (
                    "import ctypes, os, sys\n"
                    "os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)\n"
                    f"ctypes.CDLL(None).{call}\n"
                ),
            ]
        for name, parent in ways.items():
            folder = self.folder / name
            folder.mkdir()
            self.run_well(
                [*parent, sys.executable, CLIENT, folder / "log", "20", f"signal={int(signal.SIGSEGV)}"],
                env=environment(CARD, record_to=folder),
            )
            with self.subTest(name):
                ending = self.report(self.only_trace(folder))["source"]["ending"]
                self.assertEqual(ending["signal"], "SIGSEGV")

    def test_a_ring_of_an_earlier_process_is_not_mistaken_for_a_childs(self):
        self.start(100, "kill", -signal.SIGKILL)
        (ring,) = self.folder.glob("fragtrace-*.ring")
        os.utime(ring, (1, 1))
        user, _, rest = ring.name.removeprefix("fragtrace-").partition("-")
        parent = (
            "import os, signal, sys\n"
            "child = os.fork()\n"
            "if not child: signal.pause()\n"
            "user, rest, old = sys.argv[1:]\n"
            "os.rename(old, f'{os.path.dirname(old)}/fragtrace-{user}-{child}-{rest}')\n"
            "os.kill(child, signal.SIGTERM)\n"
            "os.waitpid(child, 0)\n"
        )
        self.run_well(
            [sys.executable, "-c", parent, user, rest.partition("-")[2], ring],
            env=environment(CARD, record_to=self.folder),
        )
        (renamed,) = self.folder.glob("fragtrace-*.ring")
        self.assertNotIn(b"end.signal", renamed.read_bytes())

    def test_a_kill_at_any_moment_loses_nothing(self):
        for pause_s in (0.0, 0.05, 0.3, 0.7):
            folder = self.folder / f"{pause_s}"
            folder.mkdir()
            log = folder / "log"
            with subprocess.Popen(
                [sys.executable, CLIENT, log, "0", "forever"], env=environment(CARD, record_to=folder)
            ) as process:
                until = time.monotonic() + 60
                while not (log.exists() and log.stat().st_size) and time.monotonic() < until:
                    time.sleep(0.005)
                time.sleep(pause_s)
                process.kill()
            logged = read_log(log)
            self.assertGreater(len(logged), 0)
            trace = self.only_trace(folder)
            report = self.report(trace)
            self.assertEqual(report["source"]["ended"], "killed")
            self.assertEqual(report["source"]["events_lost"], 0)
            self.assert_events_hold(trace, logged, "device_alloc")

    def test_the_ring_is_removed_at_a_normal_end_and_stays_after_a_kill(self):
        rings = {}
        for ending, code in (("return", 0), ("kill", -signal.SIGKILL)):
            folder = self.folder / ending
            ring_folder = folder / "rings"
            ring_folder.mkdir(parents=True)
            self.run_well(
                [sys.executable, CLIENT, folder / "log", 100, ending],
                code,
                env=environment(CARD, record_to=folder, FRAGTRACE_RING_DIRECTORY=ring_folder),
            )
            rings[ending] = len(list(ring_folder.iterdir()))
        self.assertEqual(rings, {"return": 0, "kill": 1})

    def test_a_killed_trace_without_its_ring_is_readable(self):
        ring_folder = self.folder / "rings"
        ring_folder.mkdir()
        log = self.folder / "log"
        self.run_well(
            [sys.executable, CLIENT, log, 100000, "kill"],
            -signal.SIGKILL,
            env=environment(CARD, record_to=self.folder, FRAGTRACE_RING_DIRECTORY=ring_folder),
        )
        for ring in ring_folder.iterdir():
            ring.unlink()
        report = self.report(self.only_trace())
        # The end mark of a normal end could also have been cut off.
        self.assertEqual(report["source"]["ended"], "not_recorded")
        self.assertGreater(report["source"]["events"], 0)
        self.assertTrue(report["warnings"], "the loss of the ring is not said")

    def test_a_running_process_can_be_read(self):
        log = self.folder / "log"
        with subprocess.Popen(
            [sys.executable, CLIENT, log, "0", "forever"], env=environment(CARD, record_to=self.folder)
        ) as process:
            try:
                until = time.monotonic() + 60
                while not (log.exists() and log.stat().st_size) and time.monotonic() < until:
                    time.sleep(0.005)
                time.sleep(0.5)
                self.assertEqual(self.report(self.only_trace())["source"]["ended"], "running")
            finally:
                process.kill()

    def test_the_shim_changes_neither_output_nor_exit_code(self):
        for ending in ("return", "exit=7", "exception", "os_exit=3", "kill", "none-at-all"):
            with self.subTest(ending=ending):
                arguments = [sys.executable, CLIENT, "/dev/null", 500, ending]
                plain = real_process.run(arguments, env=environment(CARD))
                shimmed = real_process.run(arguments, env=environment(CARD, record_to=self.folder))
                self.assertEqual(
                    (shimmed.returncode, shimmed.stdout, shimmed.stderr),
                    (plain.returncode, plain.stdout, plain.stderr),
                )

    def test_a_process_without_cuda_leaves_no_file(self):
        self.start(0, "none-at-all", 0)
        self.assertEqual(traces(self.folder), [])
        self.assertEqual([path.name for path in self.folder.iterdir()], ["log"])

    def test_each_forked_child_has_a_trace_of_its_own(self):
        program = (
            f"import os, subprocess, sys\n"
            f"exec(open({str(CLIENT)!r}).read().replace('end()\\n', ''))\n"
            f"child = os.fork()\n"
            f"work()\n"
            f"if child: os.waitpid(child, 0)\n"
        )
        log = self.folder / "log"
        self.run_well(
            [sys.executable, "-c", program, log, 50, "return"], env=environment(CARD, record_to=self.folder)
        )
        found = traces(self.folder)
        self.assertEqual(len(found), 2, found)
        for trace in found:
            self.assertEqual(self.report(trace)["source"]["events_lost"], 0)
        self.assertNotEqual(*(self.report(trace)["source"]["process"] for trace in found))

    def test_an_exec_never_overwrites_the_trace_of_the_process(self):
        program = self.folder / "again.py"
        program.write_text(
            f"import os, sys\n"
            f"exec(open({str(CLIENT)!r}).read().replace('end()\\n', ''))\n"
            f"if 'AGAIN' not in os.environ:\n"
            f"    os.environ['AGAIN'] = 'yes'\n"
            f"    os.execv(sys.executable, [sys.executable, *sys.argv])\n"
        )
        self.run_well(
            [sys.executable, program, self.folder / "log", 50, "return"],
            env=environment(CARD, record_to=self.folder),
        )
        found = traces(self.folder)
        self.assertEqual(len(found), 2, found)
        self.assertTrue(any(re.search(r"\.2\.ftrace$", trace.name) for trace in found), found)

    def test_traces_are_readable_only_by_their_owner(self):
        self.start(10, "return", 0)
        self.assertEqual(self.only_trace().stat().st_mode & 0o777, 0o600)

    def test_ten_starts_leave_ten_traces(self):
        for _ in range(10):
            self.start(10, "return", 0)
        self.assertEqual(len(traces(self.folder)), 10)

    def test_a_missing_output_folder_does_not_disturb_the_program(self):
        done = self.run_well(
            [sys.executable, CLIENT, "/dev/null", 50, "return"],
            env=environment(CARD, record_to=self.folder / "missing"),
        )
        self.assertEqual(done.stdout, "50 allocations, then return\n")


if __name__ == "__main__":
    assert os.access(ANALYZER, os.X_OK), f"{ANALYZER} is not built"
    real_process.main()
