"""Blocks of a backward pass are named by their autograd node, or by Python code that runs in it."""

import re

import real_process
from real_process import ANALYZER, TORCH_PYTHON, environment

PROGRAM = """
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return values * 2
    @staticmethod
    def backward(context, gradient):
        return gradient.clone()
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
model.cuda()
batch = torch.ones(64, 512, device="cuda")
Double.apply(model(batch)).sum().backward()
made = {}
exec(compile("def made_up(size):\\n    return torch.empty(size, device='cuda')", "<made up>", "exec"),
     {"torch": torch}, made)
kept = made["made_up"](12345678)
# The backward thread may still hold Python objects: Python before 3.14 ends it in a way that aborts.
__import__("os")._exit(0)
"""


class Backward(real_process.RealProcessTest):
    def test_blocks_of_a_backward_pass_are_named_by_node_or_python_line(self):
        program = self.folder / "train.py"
        program.write_text(PROGRAM)
        self.run_well([TORCH_PYTHON, program], env=environment("4GiB", self.folder))
        trace = self.only_trace()
        lines = [
            line
            for line in self.run_well([ANALYZER, "dump", trace]).stdout.splitlines()
            if "block_alloc" in line
        ]
        names = {line.split(" | ")[1] for line in lines if " | " in line}
        self.assertIn("AddmmBackward0 (backward pass)", names)
        self.assertIn("ReluBackward0 (backward pass)", names)
        self.assertTrue([name for name in names if re.search(r"train\.py:9 Double\.backward", name)], names)
        self.assertFalse([name for name in names if "thread_init" in name], names)
        # The line is the user's line that called the generated function, not the function itself.
        made_up = [line for line in lines if "requested=49382712" in line]
        self.assertRegex(made_up[0], r"train\.py:17 <module>")
        facts = self.run_well([ANALYZER, "dump", trace, "--facts"]).stdout
        self.assertRegex(facts, r"stacks\.python_none\t[1-9]")


if __name__ == "__main__":
    real_process.main()
