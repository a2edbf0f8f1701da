"""After a pause of the recording the live memory is known again."""

import re
import signal
import sys

import real_process
from real_process import ANALYZER, environment, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "control" / "client.py"


class StoppedTest(real_process.RealProcessTest):
    def held(self, trace):
        """{address: bytes} at the end of a trace, for each kind of allocation."""
        held = {}
        ends = {"device_free": "device_alloc", "block_free": "block_alloc", "unmap": "map"}
        for line in self.events(trace):
            found = re.search(
                r"\b(device_alloc|device_free|block_alloc|block_free|map|unmap|"
                r"checkpoint_begin)\b",
                line,
            )
            numbers = dict(re.findall(r"\b(\w+)=(0x[0-9a-f]+|\d+)", line))
            if not found:
                continue
            if found[1] == "checkpoint_begin":
                held = {}
                continue
            kind = held.setdefault(ends.get(found[1], found[1]), {})
            address = int(numbers["address"], 16)
            if found[1] == "unmap":
                end = address + int(numbers["bytes"])
                for page in [page for page in kind if address <= page < end]:
                    del kind[page]
            elif found[1] in ends:
                del kind[address]  # a KeyError here means a free of unknown memory
            else:
                kind[address] = int(numbers["bytes"])
        return held

    def assert_sound(self, report):
        self.assertEqual(report["source"]["events_lost"], 0)
        self.assertEqual(report["recording"]["events_after_gaps"], 0)
        self.assertEqual(report["devices"][0]["violations"], 0)
        self.assertEqual(report["devices"][0]["violations_after_gaps"], 0)


class PlainCuda(StoppedTest):
    def client(self, *steps, expected=0, **variables):
        return self.run_well(
            [sys.executable, CLIENT, *steps],
            expected,
            env=environment("1GiB,context=0", self.folder, **variables),
        )

    def sizes(self, trace):
        return sorted(self.held(trace).get("device_alloc", {}).values())

    def test_a_late_start_lists_all_live_memory(self):
        starts = [("start",), {}], [("signal=USR2", "wait=*.ftrace"), {"FRAGTRACE_SIGNAL": "USR2"}]
        for steps, variables in starts:
            with self.subTest(steps=steps):
                for old in traces(self.folder):
                    old.unlink()
                self.client(
                    "alloc=4096",
                    "alloc=8192",
                    "free",
                    "churn=100000",
                    *steps,
                    "alloc=12288",
                    FRAGTRACE_START="off",
                    **variables,
                )
                trace = self.only_trace()
                self.assertEqual(self.sizes(trace), [4096, 12288])
                self.assert_sound(self.report(trace))

    def test_a_start_by_time_lists_all_live_memory(self):
        self.client("alloc=4096", "wait=*.ftrace", "alloc=12288", FRAGTRACE_START_AFTER=1)
        trace = self.only_trace()
        self.assertEqual(self.sizes(trace), [4096, 12288])
        self.assert_sound(self.report(trace))

    def test_allocations_and_frees_during_a_pause_are_counted(self):
        self.client(
            "alloc=4096", "alloc=8192", "stop", "free", "alloc=12288", "alloc=16384", "start", "alloc=20480"
        )
        trace = self.only_trace()
        self.assertEqual(self.sizes(trace), [4096, 12288, 16384, 20480])
        report = self.report(trace)
        self.assert_sound(report)
        (gap,) = report["recording"]["gaps"]
        self.assertEqual(
            [gap[key] for key in ("freed", "freed_bytes", "made", "made_bytes")], [1, 8192, 2, 12288 + 16384]
        )
        text = self.run_well([ANALYZER, trace, "--no-whatif"]).stdout
        self.assertRegex(
            text, r"recording was stopped from .*; freed during this time: 1 allocation \(8 KiB\)"
        )

    def test_the_live_memory_is_right_after_many_pauses(self):
        steps = []
        for _ in range(20):
            steps += ["stop", "churn=50", "free", "alloc=8192", "start", "churn=50"]
        self.client("alloc=4096", "alloc=8192", *steps)
        trace = self.only_trace()
        self.assertEqual(self.sizes(trace), [4096, 8192])
        report = self.report(trace)
        self.assert_sound(report)
        self.assertEqual([(gap["freed"], gap["made"]) for gap in report["recording"]["gaps"]], [(1, 1)] * 20)
        self.assertEqual(self.run_well([ANALYZER, "dump", trace, "--no-stacks"]).stderr, "")

    def test_a_late_start_lists_more_allocations_than_the_ring_has_slots(self):
        self.client(
            *[*["alloc=512"] * 50, "write"] * 6,
            "start",
            "alloc=1024",
            FRAGTRACE_START="off",
            FRAGTRACE_RING_EVENTS=64,
        )
        trace = self.only_trace()
        self.assertEqual(self.sizes(trace), [512] * 300 + [1024])
        self.assert_sound(self.report(trace))

    def test_a_process_killed_after_a_late_start_leaves_all_its_live_memory(self):
        self.client(
            "alloc=4096", "start", "alloc=8192", "kill", expected=-signal.SIGKILL.value, FRAGTRACE_START="off"
        )
        trace = self.only_trace()
        self.assertEqual(self.sizes(trace), [4096, 8192])
        self.assertEqual(self.report(trace)["source"]["ended"], "killed")

    def test_a_process_killed_during_a_pause_leaves_the_events_before_it(self):
        self.client("alloc=4096", "stop", "alloc=8192", "kill", expected=-signal.SIGKILL.value)
        self.assertEqual(self.sizes(self.only_trace()), [4096])

    def test_a_process_killed_before_recording_starts_leaves_no_file(self):
        self.client("alloc=4096", "kill", expected=-signal.SIGKILL.value, FRAGTRACE_START="off")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_recording_with_parts_and_a_pause_lists_all_live_memory(self):
        self.client(
            "alloc=4096",
            "churn=60000",
            "stop",
            "churn=60000",
            "alloc=8192",
            "start",
            "churn=60000",
            "alloc=12288",
            FRAGTRACE_SIZE_LIMIT="1MiB",
            FRAGTRACE_COMPRESSION=0,
        )
        last = max(traces(self.folder), key=lambda trace: trace.stat().st_mtime_ns)
        self.assertEqual(self.sizes(last), [4096, 8192, 12288])
        self.assert_sound(self.report(last))

    def test_stacks_of_allocations_during_a_pause_are_kept_on_request(self):
        for kept in (0, 1):
            with self.subTest(kept=kept):
                for old in traces(self.folder):
                    old.unlink()
                self.client("alloc=4096", "start", FRAGTRACE_START="off", FRAGTRACE_STOPPED_STACKS=kept)
                stacks = self.run_well([ANALYZER, "dump", self.only_trace()]).stdout
                self.assertEqual("client.py" in stacks, bool(kept), stacks)


if __name__ == "__main__":
    real_process.main()
