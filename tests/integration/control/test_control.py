"""Recording switched on and off, limited in size, and kept for the moment that matters."""

import re
import signal
import sys

import real_process
from real_process import environment, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "control" / "client.py"
CARD = "1GiB,context=0"


class ControlTest(real_process.RealProcessTest):
    def client(self, *steps, expected=0, **variables):
        """Runs the client with these steps; gives its output."""
        env = environment(CARD, self.folder, **variables)
        return self.run_well([sys.executable, CLIENT, *steps], expected, env=env)

    def story(self, trace):
        """Sizes of the allocations and the recorder's own events, in order."""
        told = []
        for line in self.events(trace):
            found = re.search(r"\b(device_alloc|recording_stopped|recording_started)\b", line)
            if found and found[1] == "device_alloc":
                told.append(int(re.search(r"\bbytes=(\d+)", line)[1]))
            elif found:
                told.append(found[1].removeprefix("recording_"))
        return told


class StartAndStop(ControlTest):
    def test_by_call_what_lies_between_is_missing_and_marked(self):
        done = self.client("alloc=4096", "stop", "alloc=8192", "start", "alloc=12288")
        self.assertEqual(done.stdout, "stop 0\nstart 0\n")
        self.assertEqual(self.story(self.only_trace()),
                         [4096, "stopped", "started", 12288])
        self.assertEqual(done.stderr, "")

    def test_by_signal_each_one_toggles(self):
        self.client("alloc=4096", "signal=USR2", "alloc=8192", "signal=USR2", "alloc=12288",
                    FRAGTRACE_SIGNAL="USR2")
        self.assertEqual(self.story(self.only_trace()),
                         [4096, "stopped", "started", 12288])

    def test_a_signal_that_the_program_handles_is_left_to_it(self):
        done = self.client("own=USR1", "alloc=4096", "signal=USR1", "alloc=8192",
                           FRAGTRACE_SIGNAL="SIGUSR1")
        self.assertEqual(done.stdout, f"handled {signal.SIGUSR1.value}\n")
        self.assertEqual(self.story(self.only_trace()), [4096, 8192])

    def test_without_the_setting_a_signal_keeps_its_default(self):
        self.client("alloc=4096", "signal=USR2", expected=-signal.SIGUSR2.value)

    def test_a_process_that_starts_stopped_records_from_its_start_on(self):
        self.client("alloc=4096", "start", "alloc=8192", FRAGTRACE_START="off")
        self.assertEqual(self.story(self.only_trace()), ["started", 8192])

    def test_a_process_that_starts_stopped_is_started_by_a_signal(self):
        self.client("alloc=4096", "signal=USR2", "alloc=8192", FRAGTRACE_START="off",
                    FRAGTRACE_SIGNAL="USR2")
        self.assertEqual(self.story(self.only_trace()), ["started", 8192])

    def test_a_process_that_is_never_started_leaves_no_trace_and_no_word(self):
        done = self.client("alloc=4096", FRAGTRACE_START="off")
        self.assertEqual((traces(self.folder), done.stderr), ([], ""))

    def test_recording_starts_after_the_seconds_that_were_asked_for(self):
        self.client("alloc=4096", "sleep=1.5", "alloc=8192", FRAGTRACE_START_AFTER=1)
        self.assertEqual(self.story(self.only_trace()), ["started", 8192])

    def test_nothing_can_be_started_where_recording_is_off(self):
        done = self.client("start", "alloc=4096", FRAGTRACE_OFF=1)
        self.assertEqual((traces(self.folder), done.stdout), ([], "start -1\n"))


if __name__ == "__main__":
    real_process.main()
