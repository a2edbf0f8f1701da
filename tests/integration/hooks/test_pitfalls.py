"""Known errors of interposers of CUDA's memory calls."""

import os
import re
import sys
import unittest

import real_process
from real_process import environment

PROGRAM = real_process.SOURCE / "tests" / "integration" / "hooks" / "families.py"


class Pitfalls(real_process.RealProcessTest):
    def scene(self, name, layer="driver"):
        self.run_well([sys.executable, PROGRAM, name, layer], env=environment("4GiB", record_to=self.folder))
        return self.only_trace()

    def count(self, trace, kind):
        return len([line for line in self.events(trace) if re.search(rf"\b{kind}\b", line)])

    def test_functions_found_at_run_time_are_recorded(self):
        # Five ways to find the driver's function, three to find the runtime's.
        self.assertEqual(self.count(self.scene("ways"), "device_alloc"), 8)

    def test_memory_from_a_given_pool_is_counted(self):
        trace = self.scene("pools")
        from_pool = [line for line in self.events(trace) if "async_alloc" in line and "(cuda 0x" in line]
        self.assertEqual(len(from_pool), 2)

    def test_error_codes_reach_the_program_unchanged(self):
        # The program compares every result and the runtime's last error.
        self.scene("last_error", "runtime")
        bare = environment("4GiB")
        self.run_well([sys.executable, PROGRAM, "last_error", "runtime"], env=bare)

    def test_sizes_do_not_underflow_when_unknown_memory_is_freed(self):
        trace = self.scene("unknown_frees")
        lines = self.events(trace)
        frees = [line for line in lines if re.search(r"\b(device_free|async_free)\b", line)]
        self.assertEqual(len(frees), 6)
        report = self.report(trace)

        def numbers(value):
            if isinstance(value, dict):
                value = list(value.values())
            if isinstance(value, list):
                for item in value:
                    yield from numbers(item)
            elif isinstance(value, int) and not isinstance(value, bool):
                yield value

        sizes = list(numbers(report))
        self.assertGreater(len(sizes), 10)
        self.assertGreaterEqual(min(sizes), -1)
        self.assertEqual([size for size in sizes if 2**62 < size < 2**64], [])

    @unittest.skipUnless(
        real_process.TORCH_PYTHON and os.path.exists(real_process.TORCH_PYTHON), "no PyTorch"
    )
    def test_pytorch_does_not_crash_with_the_recorder(self):
        program = (
            "import torch; a = torch.zeros(1 << 20, device='cuda'); del a\n"
            "torch.cuda.empty_cache(); b = torch.ones(8).pin_memory()\n"
            "s = torch.cuda.Stream()\n"
            "with torch.cuda.stream(s): c = torch.ones(1 << 20, device='cuda') @ "
            "torch.ones(1 << 20, device='cuda')\n"
            "torch.cuda.synchronize(); print('done')"
        )
        for conf in ("", "expandable_segments:True", "backend:cudaMallocAsync"):
            done = self.run_well(
                [real_process.TORCH_PYTHON, "-c", program],
                env=environment("4GiB", record_to=self.folder, PYTORCH_CUDA_ALLOC_CONF=conf),
            )
            self.assertEqual(done.stdout, "done\n")
        self.assertEqual(len(real_process.traces(self.folder)), 3)


if __name__ == "__main__":
    real_process.main()
