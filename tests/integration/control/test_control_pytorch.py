"""Blocks left out by size, and the copy at an out-of-memory, with a real PyTorch."""

import json
import re

import real_process
from real_process import ANALYZER, TORCH_PYTHON, environment
from test_control import CARD, CLIENT, ControlTest


class Filters(ControlTest):
    def test_small_blocks_are_left_out_and_the_report_judges_no_replay(self):
        program = (
            "import torch\n"
            "make = lambda size: torch.empty(size, dtype=torch.uint8, device='cuda')\n"
            "kept = [make(1 << 20), make(512), make(4 << 20)]\n"
            "del kept[1], kept[0]\n"
        )
        self.run_well(
            [TORCH_PYTHON, "-c", program], env=environment(CARD, self.folder, FRAGTRACE_MIN_BYTES="1MiB")
        )
        trace = self.only_trace()
        blocks = [
            (re.search(r"block_\w+", line)[0], int(re.search(r" bytes=(\d+)", line)[1]))
            for line in self.events(trace)
            if re.search(r" block_(alloc|free) ", line)
        ]
        self.assertEqual(
            blocks[:3], [("block_alloc", 1 << 20), ("block_alloc", 4 << 20), ("block_free", 1 << 20)]
        )
        text = self.run_well([ANALYZER, trace, "--no-whatif"]).stdout
        self.assertRegex(text, r"fidelity +not judged: blocks below 1048576 bytes were not recorded")


class FlightRecorder(ControlTest):
    def test_the_copy_at_an_out_of_memory_has_the_blocks_that_pytorch_reports(self):
        said = self.folder / "blocks.json"
        self.run_well(
            [TORCH_PYTHON, CLIENT.with_name("torch_client.py"), said],
            env=environment(CARD, self.folder, FRAGTRACE_FLIGHT="1MiB", FRAGTRACE_COMPRESSION=0),
        )
        copy = next(self.folder.glob("*.oom1.ftrace"))
        events = self.events(copy)
        self.assertIn("checkpoint_begin", events[0])
        held = {}
        for line in events:
            address = re.search(r"\baddress=(0x[0-9a-f]+)", line)
            if " block_alloc " in line:
                held[int(address[1], 16)] = int(re.search(r" bytes=(\d+)", line)[1])
            elif " block_free " in line:
                del held[int(address[1], 16)]
        self.assertEqual(
            sorted(held.items()), [tuple(block) for block in sorted(json.loads(said.read_text()))]
        )
        self.assertEqual(self.report(copy)["source"]["events_lost"], 0)


if __name__ == "__main__":
    real_process.main()
