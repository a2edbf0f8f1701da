"""Every family of CUDA's memory calls, event by event: the trace agrees with the program."""

import re
import sys

import real_process
from real_process import environment

PROGRAM = real_process.SOURCE / "tests" / "integration" / "hooks" / "families.py"
SCENES = (
    "device",
    "host",
    "pools",
    "arrays",
    "virtual",
    "ipc",
    "external",
    "pool_sharing",
    "graphs",
    "contexts",
    "modules",
    "ways",
)


def words(line):
    """A line of the dump without number, time, device and thread. None for events that the scenes leave out:
    times of calls, and samples of the device's memory."""
    said = re.sub(r"^\d+ [\d.]+ gpu\S+ ", "", line.split(" | ")[0])
    said = re.sub(r" (thread|stream)=\w+", "", said)
    said = re.sub(r" pool=\d+\((cuda \w+)\)", r" pool=\1", said)
    return None if said.startswith(("call_time", "memory_info")) else said


class Families(real_process.RealProcessTest):
    def assert_events(self, trace, expected, captured):
        found = [said for said in map(words, self.events(trace)) if said is not None]
        wanted = []
        for text in expected:
            text = text.replace("[captured]", captured)
            # The dump does not name the driver's streams (see hook_tests).
            wanted.append(re.sub(r" stream=\w+", "", text))
        found = [
            "graph_memory"
            if "graph_memory" in wanted
            and said.startswith("graph_memory")
            and not said.endswith("reserved=0")
            else said
            for said in found
        ]
        self.assertEqual(found, wanted)

    def scene(self, name, layer):
        done = self.run_well(
            [sys.executable, PROGRAM, name, layer], env=environment("4GiB", record_to=self.folder)
        )
        captured = "".join(re.findall(r"^captured (\S+)$", done.stdout, flags=re.MULTILINE))
        traces = real_process.traces(self.folder)
        expectations = [re.findall(r"^expect (.*)$", done.stdout, flags=re.MULTILINE)]
        peer = re.findall(r"^peer expect (.*)$", done.stdout, flags=re.MULTILINE)
        if peer:
            expectations.append(peer)
        self.assertEqual(len(traces), len(expectations))
        # Traces are named by process. The trace that begins with more events is found by trying.
        if len(traces) == 2 and "import " in "".join(self.events(traces[0])):
            traces.reverse()
        for trace, expected in zip(traces, expectations):
            self.assertGreater(len(expected), 2)
            self.assert_events(trace, expected, captured)
        if name == "contexts":
            stated = [line for line in self.report(traces[0])["assumptions"] if "destroyed" in line]
            self.assertEqual([line.split(";")[0] for line in stated], ["device 0: 1 context was destroyed"])


def add_test(name, layer):
    def test(self):
        self.scene(name, layer)

    setattr(Families, f"test_{name}_by_the_{layer}", test)


for scene_name in SCENES:
    for layer_name in ("driver", "runtime"):
        add_test(scene_name, layer_name)

if __name__ == "__main__":
    real_process.main()
