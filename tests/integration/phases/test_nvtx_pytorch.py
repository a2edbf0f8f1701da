"""NVTX ranges made by PyTorch, without a change of the program."""

import re

import real_process
from real_process import environment

PROGRAM = """
import torch
from torch.cuda import nvtx
nvtx.range_push("before cuda")
kept = torch.empty(1000, device="cuda")
nvtx.range_pop()
with nvtx.range("step {}", 1):
    kept = torch.empty(1 << 20, device="cuda")
number = nvtx.range_start("across")
nvtx.mark("moment")
nvtx.range_end(number)
model = torch.nn.Linear(8, 8).cuda()
with torch.autograd.profiler.emit_nvtx():
    model(torch.ones(4, 8, device="cuda")).sum().backward()
"""


class Nvtx(real_process.RealProcessTest):
    def test_nvtx_ranges_of_pytorch_are_recorded_as_phases(self):
        self.run_training(["-c", PROGRAM], env=environment("4GiB", self.folder))
        lines = self.events(self.only_trace())
        told = [
            f"{found[1]} {found[2]}"
            for found in (re.search(r'(range_begin|range_end|mark) text="([^"]*)"', line) for line in lines)
            if found
        ]
        self.assertEqual(
            told[:7],
            [
                "range_begin before cuda",
                "range_end before cuda",
                "range_begin step 1",
                "range_end step 1",
                "range_begin across",
                "mark moment",
                "range_end across",
            ],
        )
        operations = [text for text in told[7:] if text.startswith("range_begin")]
        self.assertIn("range_begin aten::addmm", operations)
        self.assertIn("range_begin AddmmBackward0", operations)
        # Each name occurs once: the number that PyTorch appends to every operation is left out.
        self.assertFalse([text for text in operations if "seq =" in text], operations)
        begins = [text.split(" ", 1)[1] for text in told if text.startswith("range_begin")]
        ends = [text.split(" ", 1)[1] for text in told if text.startswith("range_end")]
        self.assertEqual(sorted(begins), sorted(ends))


if __name__ == "__main__":
    real_process.main()
