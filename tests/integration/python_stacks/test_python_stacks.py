"""Native and Python frames in their true order, and no garbage collection inside the recorder."""

import os
import pathlib
import re

import real_process
from real_process import environment, interpreters

FOLDER = pathlib.Path(__file__).parent
PRINT_STACKS = os.environ["FRAGTRACE_PRINT_STACKS"]
CARD = "1GiB,context=0"


class PythonStacks(real_process.RealProcessTest):
    def stacks(self, trace):
        """The functions of the stack by size of the allocation in KiB, innermost first. ctypes and its helper
        library are left out, because their functions have varying names.
        """
        lines = self.run_well([PRINT_STACKS, trace]).stdout.splitlines()
        self.assertEqual(lines.pop(), "without order 0")
        found = {}
        for line in lines:
            size, *functions = line.split("\t")
            stack = found.setdefault(int(size) // 1024, [])
            for name in functions:
                if re.search(r"qsort|msort|^libc\b.*\+0x", name):
                    name = "qsort"  # including its helpers, whose names only libc6-dbg has
                elif re.search(r"ctypes|ffi|closure|^Py|^_?[Cc]all|^0x", name):
                    continue
                if stack[-1:] != [name]:
                    stack.append(name)
        return found

    def test_native_and_python_frames_are_in_the_order_of_their_calls(self):
        tested = interpreters()
        self.assertTrue(tested)
        for version, python in tested.items():
            with self.subTest(version):
                folder = self.folder / re.sub(r"\W", "", version)
                folder.mkdir()
                self.run_well([python, FOLDER / "mixed_client.py"], env=environment(CARD, folder))
                stacks = self.stacks(self.only_trace(folder))
                for size, order in {
                    4: "allocate innermost compare qsort sort <module>",
                    8: "allocate generate consume <module>",
                    12: "allocate generate consume <module>",
                    16: "allocate wait drive <module>",
                }.items():
                    self.assertEqual(" ".join(stacks[size]), order)

    def test_no_collection_begins_inside_the_recorder(self):
        for version, python in interpreters().items():
            with self.subTest(version):
                folder = self.folder / re.sub(r"\W", "", version)
                folder.mkdir()
                done = self.run_well([python, FOLDER / "collection_client.py"], env=environment(CARD, folder))
                bare = self.run_well([python, FOLDER / "collection_client.py"], env=environment(CARD))
                self.assertEqual(done.stdout, bare.stdout)


if __name__ == "__main__":
    real_process.main()
