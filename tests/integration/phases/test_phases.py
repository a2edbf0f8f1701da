"""Phases by <fragtrace/mark.h> and by NVTX's interface. Without CUDA calls they leave no trace."""

import os
import pathlib
import re
import sys

import real_process
from real_process import environment, traces

CLIENTS = pathlib.Path(os.environ["FRAGTRACE_CLIENTS"])
NVTX_CLIENT = pathlib.Path(__file__).with_name("nvtx_client.py")
CARD = "1GiB,context=0"


class PhasesTest(real_process.RealProcessTest):
    def story(self, trace):
        """Ranges, marks, allocations, gaps and checkpoints of a trace, in order."""
        told = []
        for line in self.events(trace):
            found = re.search(
                r"\b(range_begin|range_end|mark|device_alloc|recording_\w+|checkpoint_\w+)\b(.*)", line
            )
            if found is None:
                continue
            text = re.search(r'text="([^"]*)"', found[2])
            size = re.search(r"\bbytes=(\d+)", found[2])
            told.append(
                found[1] if not (text or size) else f"{found[1]} {(text or size)[1]}".replace("range_", "")
            )
        return told

    def test_phases_from_c_are_recorded_around_allocations(self):
        done = self.run_well([CLIENTS / "phases_client_c", "cuda"], env=environment(CARD, self.folder))
        self.assertEqual(done.stdout, "write 0\n")
        self.assertEqual(
            self.story(self.only_trace()),
            [
                "begin whole run",
                "device_alloc 4096",
                "begin inner",
                "mark middle",
                "device_alloc 8192",
                "end inner",
                "end whole run",
            ],
        )

    def test_a_program_without_cuda_leaves_no_trace(self):
        self.assertEqual(
            self.run_well([CLIENTS / "phases_client_c"], env=environment(CARD, self.folder)).stdout,
            "write -1\n",
        )
        self.assertEqual(traces(self.folder), [])

    def test_without_the_recorder_nothing_happens(self):
        done = self.run_well([CLIENTS / "phases_client_c", "cuda"], env=environment(CARD))
        self.assertEqual(done.stdout, "write -1\n")
        self.run_well([CLIENTS / "phases_client_cpp"], env=environment(CARD))

    def test_phases_are_right_with_threads_forks_and_gaps(self):
        self.run_well([CLIENTS / "phases_client_cpp"], env=environment(CARD, self.folder))
        stories = sorted((self.story(trace) for trace in traces(self.folder)), key=len)
        # The child has the ranges that the forking thread had open.
        self.assertEqual(
            stories[0], ["begin outer", "device_alloc 512", "begin of the child", "end of the child"]
        )
        self.assertEqual(
            stories[1],
            [
                "begin outer",
                "begin across threads",
                "device_alloc 1024",
                "begin inner",
                "recording_stopped",
                "recording_started",
                "checkpoint_begin",
                "device_alloc 1024",
                "checkpoint_end",
                "begin outer",
                "begin across threads",
                "begin inner",
                "device_alloc 2048",
                "end inner",
                "end across threads",
                "end outer",
            ],
        )
        self.assertEqual(len(stories), 2)

    def test_nvtx_domains_wide_strings_and_registered_strings_are_recorded(self):
        done = self.run_well([sys.executable, NVTX_CLIENT], env=environment(CARD, self.folder))
        self.assertEqual(done.stdout, "-2 -2 None\n")
        self.assertEqual(
            self.story(self.only_trace()),
            [
                "begin plain",
                "device_alloc 4096",
                "begin solver: größe",
                "begin wide",
                "end wide",
                "end solver: größe",
                "mark solver: step",
                "end plain",
                "begin solver: start",
                "end solver: start",
                "begin aten::mm",
                "end aten::mm",
            ],
        )

    def test_with_another_nvtx_tool_the_ranges_go_only_to_it(self):
        env = environment(CARD, self.folder, NVTX_INJECTION64_PATH="/other/tool.so")
        self.assertEqual(
            self.run_well([sys.executable, NVTX_CLIENT, "which"], env=env).stdout, "/other/tool.so\n"
        )

    def test_nvtx_can_be_switched_off_and_invalid_values_are_named(self):
        def injected(word):
            env = environment(CARD, self.folder, FRAGTRACE_NVTX=word)
            return self.run_well([sys.executable, NVTX_CLIENT, "which"], env=env).stdout

        for word in ("0", "off", "no", "false"):
            self.assertEqual(injected(word), "None\n", word)
        for word in ("1", "on", "", "perhaps"):
            self.assertIn("libfragtrace", injected(word), word)
        env = environment(CARD, self.folder, FRAGTRACE_NVTX="perhaps")
        self.run_well([sys.executable, NVTX_CLIENT], env=env)
        facts = self.run_well([real_process.ANALYZER, "dump", "--facts", self.only_trace()]).stdout
        self.assertIn("options.rejected\tFRAGTRACE_NVTX\n", facts)

    def test_the_environment_of_programs_does_not_change(self):
        shown = self.run_well(["env"], env=environment(CARD, self.folder)).stdout
        self.assertNotIn("NVTX", shown)


if __name__ == "__main__":
    real_process.main()
