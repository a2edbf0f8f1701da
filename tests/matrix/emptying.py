"""Calls torch.cuda.empty_cache() in a running program at the instants named by a what-if row."""

import sys

import torch


class Emptying:
    """`instants`: [blocks allocated so far, blocks freed so far] of device 0.

    An instant lasts until the next allocation or free. Emptying the cache twice within it has the same effect
    as once. So the cache is emptied at every line and every C call of the main thread during the instant.
    """

    def __init__(self, instants):
        self.wanted = {tuple(instant) for instant in instants}
        self.reached = set()

    def begin(self):
        sys.settrace(self.at_line)
        sys.setprofile(self.at_call)

    def end(self):
        """Stops, and returns the instants that were not met."""
        sys.settrace(None)
        sys.setprofile(None)
        return sorted(self.wanted - self.reached)

    def at_line(self, _frame, _event, _argument):
        self.look()
        return self.at_line

    def at_call(self, _frame, event, _argument):
        if event == "c_call":
            self.look()

    def look(self):
        if not torch.cuda.is_initialized():
            return
        blocks = torch._C._cuda_memoryStats(0)["allocation"]["all"]
        instant = blocks["allocated"], blocks["freed"]
        if instant in self.wanted:
            self.reached.add(instant)
            torch._C._cuda_emptyCache()
