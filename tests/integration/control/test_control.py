"""Recording that is switched on and off, limited in size, kept for an out-of-memory, or watched while it
runs."""

import json
import re
import signal
import subprocess
import sys

import real_process
from real_process import ANALYZER, environment, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "control" / "client.py"
CARD = "1GiB,context=0"


class ControlTest(real_process.RealProcessTest):
    def client(self, *steps, expected=0, **variables):
        """Runs the client with these steps and returns its output."""
        env = environment(CARD, self.folder, **variables)
        return self.run_well([sys.executable, CLIENT, *steps], expected, env=env)

    def story(self, trace):
        """Sizes of the allocations and the recorder's own events, in order. The contents of a checkpoint are
        a list."""
        told = []
        into = told
        for line in self.events(trace):
            found = re.search(
                r"\b(device_alloc|recording_stopped|recording_started|"
                r"checkpoint_begin|checkpoint_end)\b",
                line,
            )
            if not found:
                continue
            if found[1] == "device_alloc":
                into.append(int(re.search(r"\bbytes=(\d+)", line)[1]))
            elif found[1] == "checkpoint_begin":
                into = []
                told.append(into)
            elif found[1] == "checkpoint_end":
                into = told
            else:
                told.append(found[1].removeprefix("recording_"))
        return told


class StartAndStop(ControlTest):
    def test_a_stop_and_start_by_call_mark_a_gap_and_list_the_live_memory(self):
        done = self.client("alloc=4096", "stop", "alloc=8192", "start", "alloc=12288")
        self.assertEqual(done.stdout, "stop 0\nstart 0\n")
        self.assertEqual(self.story(self.only_trace()), [4096, "stopped", "started", [4096, 8192], 12288])
        self.assertEqual(done.stderr, "")

    def test_each_signal_toggles_recording(self):
        self.client(
            "alloc=4096", "signal=USR2", "alloc=8192", "signal=USR2", "alloc=12288", FRAGTRACE_SIGNAL="USR2"
        )
        self.assertEqual(self.story(self.only_trace()), [4096, "stopped", "started", [4096, 8192], 12288])

    def test_a_signal_handled_by_the_program_does_not_toggle_recording(self):
        done = self.client("own=USR1", "alloc=4096", "signal=USR1", "alloc=8192", FRAGTRACE_SIGNAL="SIGUSR1")
        self.assertEqual(done.stdout, f"handled {signal.SIGUSR1.value}\n")
        self.assertEqual(self.story(self.only_trace()), [4096, 8192])

    def test_without_the_setting_a_signal_has_its_default_effect(self):
        self.client("alloc=4096", "signal=USR2", expected=-signal.SIGUSR2.value)

    def test_a_late_start_lists_the_live_memory_and_records_from_there(self):
        self.client("alloc=4096", "start", "alloc=8192", FRAGTRACE_START="off")
        self.assertEqual(self.story(self.only_trace()), ["started", [4096], 8192])

    def test_a_late_start_knows_devices_used_before(self):
        self.client("alloc=4096", "start", "free", FRAGTRACE_START="off")
        facts = self.report(self.only_trace())["facts"]
        self.assertEqual(facts["device.0.total_bytes"], str(2**30))
        self.assertIn("device.0.name", facts)

    def test_a_stopped_process_starts_recording_by_a_signal(self):
        self.client("alloc=4096", "signal=USR2", "alloc=8192", FRAGTRACE_START="off", FRAGTRACE_SIGNAL="USR2")
        self.assertEqual(self.story(self.only_trace()), ["started", [4096], 8192])

    def test_a_process_that_never_starts_recording_leaves_no_trace_and_no_output(self):
        done = self.client("alloc=4096", FRAGTRACE_START="off")
        self.assertEqual((traces(self.folder), done.stderr), ([], ""))

    def test_recording_starts_after_the_requested_seconds(self):
        self.client("alloc=4096", "wait=*.ftrace", "alloc=8192", FRAGTRACE_START_AFTER=1)
        self.assertEqual(self.story(self.only_trace()), ["started", [4096], 8192])

    def test_recording_cannot_be_started_if_it_is_off(self):
        done = self.client("start", "alloc=4096", FRAGTRACE_OFF=1)
        self.assertEqual((traces(self.folder), done.stdout), ([], "start -1\n"))


class PartsTest(ControlTest):
    def held(self, trace):
        """{address: bytes} of the live device memory at the end of a trace."""
        held = {}
        for line in self.events(trace):
            address = re.search(r"\baddress=(0x[0-9a-f]+)", line)
            if " device_alloc " in line:
                held[address[1]] = int(re.search(r"\bbytes=(\d+)", line)[1])
            elif " device_free " in line:
                held.pop(address[1], None)
        return held

    def assert_whole(self, trace):
        """Checks that nothing is reported missing."""
        self.assertEqual(self.run_well([ANALYZER, "dump", trace, "--no-stacks"]).stderr, "")

    def names(self):
        return [trace.name.split(".", 3)[3] for trace in traces(self.folder)]


class SizeLimit(PartsTest):
    LIMIT = real_process.MIB

    def test_parts_stay_below_the_limit_and_each_is_a_complete_trace(self):
        self.client(
            "alloc=4096",
            "alloc=8192",
            "churn=150000",
            "alloc=12288",
            FRAGTRACE_SIZE_LIMIT="1MiB",
            FRAGTRACE_COMPRESSION=0,
        )
        found = traces(self.folder)
        self.assertEqual(len(found), 2, found)
        self.assertLessEqual(sum(trace.stat().st_size for trace in found), self.LIMIT)
        first, last = sorted(found, key=lambda trace: trace.stat().st_mtime_ns)
        self.assertEqual(self.report(first)["source"]["ended"], "continued")
        self.assertEqual(self.report(last)["source"]["ended"], "normal")
        for trace in found:
            self.assertIn("checkpoint_begin", self.events(trace)[0])
            self.assert_whole(trace)
        self.assertEqual(sorted(self.held(last).values()), [4096, 8192, 12288])

    def test_a_trace_that_fits_into_one_part_has_an_ordinary_name(self):
        self.client("alloc=4096", FRAGTRACE_SIZE_LIMIT="1MiB")
        self.assertEqual(self.names(), ["ftrace"])
        self.assertEqual(self.story(self.only_trace()), [4096])

    def test_a_killed_process_leaves_readable_parts_and_its_last_events(self):
        self.client(
            "alloc=4096",
            "churn=150000",
            "alloc=12288",
            "kill",
            expected=-signal.SIGKILL.value,
            FRAGTRACE_SIZE_LIMIT="1MiB",
            FRAGTRACE_COMPRESSION=0,
        )
        # The process was killed while the next part began: the part before the full one is already removed.
        found = sorted(traces(self.folder), key=lambda trace: trace.stat().st_mtime_ns)
        self.assertIn(len(found), (1, 2), found)
        for trace in found[:-1]:
            self.assertEqual(min(self.held(trace).values()), 4096)
        self.assertEqual(sorted(self.held(found[-1]).values()), [4096, 12288])
        self.assertEqual(self.report(found[-1])["source"]["ended"], "killed")
        self.assertEqual(list(self.folder.glob("*.ring")), [])  # the last part alone absorbed it


class FlightRecorder(PartsTest):
    def test_an_out_of_memory_leaves_a_copy_with_all_live_memory(self):
        self.client(
            "alloc=4096",
            "churn=150000",
            "refused",
            "wait=*.oom1.ftrace",
            "alloc=8192",
            FRAGTRACE_FLIGHT="1MiB",
            FRAGTRACE_COMPRESSION=0,
        )
        self.assertEqual(self.names(), ["ftrace", "oom1.ftrace"])
        whole, copy = traces(self.folder)
        self.assertEqual(list(self.held(copy).values()), [4096])
        self.assertTrue(any("alloc_refused" in line for line in self.events(copy)[-3:]))
        self.assertEqual(self.report(copy)["source"]["ended"], "continued")
        self.assertEqual(sorted(self.held(whole).values()), [4096, 8192])
        self.assertEqual(self.report(whole)["source"]["ended"], "normal")
        for trace in (whole, copy):
            self.assertLessEqual(trace.stat().st_size, real_process.MIB)
            self.assert_whole(trace)

    def test_copies_are_written_by_signal_and_by_call(self):
        done = self.client(
            "alloc=4096",
            "signal=USR2",
            "wait=*.signal1.ftrace",
            "alloc=8192",
            "write",
            "alloc=12288",
            FRAGTRACE_FLIGHT=1,
            FRAGTRACE_SIGNAL="USR2",
        )
        self.assertEqual(done.stdout, "write 0\n")
        stories = {trace.name.split(".", 3)[3]: self.story(trace) for trace in traces(self.folder)}
        self.assertEqual(
            stories, {"ftrace": [4096, 8192, 12288], "signal1.ftrace": [4096], "call2.ftrace": [4096, 8192]}
        )

    def test_many_refusals_in_a_row_give_one_copy(self):
        self.client(*["refused"] * 20, "wait=*.oom1.ftrace", *["refused"] * 20, FRAGTRACE_FLIGHT=1)
        self.assertEqual(self.names(), ["ftrace", "oom1.ftrace"])


class Top(PartsTest):
    def start(self, *steps, **variables):
        process = subprocess.Popen(
            [sys.executable, CLIENT, *steps],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(CARD, self.folder, **variables),
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "write 0\n")  # everything before is recorded
        return process

    def top(self, process, expected=0):
        return self.run_well([ANALYZER, "top", process.pid, "--once", "--json"], expected)

    def test_top_shows_the_live_memory_of_a_running_process_from_file_and_ring(self):
        for variables in ({}, {"FRAGTRACE_SIZE_LIMIT": "1MiB", "FRAGTRACE_COMPRESSION": 0}):
            with self.subTest(variables=variables):
                process = self.start(
                    "alloc=1048576",
                    "churn=50000",
                    "alloc=2097152",
                    "write",
                    "alloc=4194304",
                    "stop",
                    "sleep=60",
                    **variables,
                )
                self.assertEqual(process.stdout.readline(), "stop 0\n")
                line = json.loads(self.top(process).stdout)
                self.assertEqual(
                    {
                        key: line[key]
                        for key in ("process", "device", "allocated_bytes", "reserved_bytes", "events_lost")
                    },
                    {
                        "process": process.pid,
                        "device": 0,
                        "allocated_bytes": 7 * real_process.MIB,
                        "reserved_bytes": 7 * real_process.MIB,
                        "events_lost": 0,
                    },
                )
                self.assertGreater(line["events"], 100000)
                self.assertIsNone(process.poll())

    def test_top_follows_a_process_until_it_ends(self):
        process = self.start("alloc=1048576", "write", "alloc=2097152", "wait=seen", "churn=10")
        top = subprocess.Popen(
            [ANALYZER, "top", str(process.pid), "--interval", "0.2"], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        lines = [top.stdout.readline()]
        while lines[-1] and "allocated" not in lines[-1]:
            lines.append(top.stdout.readline())
        (self.folder / "seen").touch()
        lines += top.communicate(timeout=120)[0].splitlines()
        self.assertEqual(top.returncode, 0)
        self.assertRegex(lines[-2], r"^gpu0  allocated +3 MiB  reserved +3 MiB ")
        self.assertIn("has stopped recording", lines[-1])

    def test_top_of_an_unrecorded_process_prints_one_line_with_exit_code_2(self):
        process = subprocess.Popen(["sleep", "60"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        done = self.top(process, expected=2)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
        self.assertIn(str(process.pid), done.stderr)


if __name__ == "__main__":
    real_process.main()
