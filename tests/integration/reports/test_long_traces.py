"""Of a long trace only a part is read (--events). Every text and every JSON document says so, with the same
number."""

import json
import sys

import real_process
from real_process import ANALYZER

# 2,000 allocations and frees, one 64 MiB allocation that stays.
PROGRAM = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
context = ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
pointer = ctypes.c_ulonglong()
for i in range(2001):
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(64 << 20 if i == 1000 else 4096)) == 0
    assert i == 1000 or driver.cuMemFree_v2(pointer) == 0
"""


class LongTraces(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        env = real_process.environment("2GiB", record_to=self.folder)
        self.run_well([sys.executable, "-c", PROGRAM], env=env)
        self.trace = self.only_trace()

    def documents(self, *options):
        """What each command says that it read: (events, events read) from JSON, and its text."""
        for command in ("report", "whatif", "replay", "validate"):
            call = [ANALYZER, command, self.trace, *options]
            document = json.loads(self.run_well([*call, "--json", "-"]).stdout)
            source = document.get("source", document)
            yield command, (source["events"], source["events_read"]), self.run_well(call).stdout

    def test_a_part_is_called_a_part_everywhere(self):
        numbers = set()
        for command, read, text in self.documents("--events", "1000"):
            with self.subTest(command):
                numbers.add(read)
                self.assertIn(f"{read[1]:,} of the {read[0]:,} events", text)
        ((events, events_read),) = numbers
        self.assertGreater(events, 4000)
        self.assertLessEqual(events_read, 1000)
        self.assertGreater(events_read, 500)

    def test_a_whole_trace_is_not_called_a_part(self):
        for options in ((), ("--events", "all")):
            for command, (events, events_read), text in self.documents(*options):
                with self.subTest(command, options=options):
                    self.assertEqual(events_read, events)
                    self.assertNotIn("--events all", text)


if __name__ == "__main__":
    real_process.main()
