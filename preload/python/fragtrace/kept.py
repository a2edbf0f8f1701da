"""Finds the variables that keep CUDA memory which a notebook's cell left allocated, in limited time.

Unlike held.find() it visits only the notebook's variables and results, not every object of the
interpreter. It keeps no object alive and runs no code of the objects that it visits.
"""

import collections
import sys
import time

from . import held

MOST_SECONDS = 0.02
MOST_ITEMS = 2_000  # larger containers are skipped
_TABLES = ("_parameters", "_buffers", "_modules")
_CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)


class _QuickWalk(held.Walk):
    """Collects storages by the variable that leads to them, until the time is over."""

    def __init__(self, torch, ignored):
        super().__init__(torch, {}, ignored)
        self.whole = True
        self.deadline = time.perf_counter() + MOST_SECONDS

    def note(self, tensor, name, field):
        known = held.storage_of(tensor)
        if known is not None:
            self.found.setdefault(known[0], (known[1], held.root_of(name)))

    def visit(self, thing, name, depth, field):
        if time.perf_counter() > self.deadline:
            self.whole = False
            self.queue.clear()
            return
        for kind in _CONTAINERS:
            if held.is_a(thing, kind) and kind.__len__(thing) > MOST_ITEMS:
                return  # usually numbers or words; skipped both before and after the cell
        super().visit(thing, name, depth, field)

    def attributes(self, thing, name, depth):
        if not held.is_a(thing, self.module):
            return super().attributes(thing, name, depth)
        # A module has a dozen tables of hooks, nearly always empty. They would take most of the time.
        for key, value in list(object.__getattribute__(thing, "__dict__").items()):
            if key in _TABLES and held.is_a(value, dict):
                for child in list(dict.values(value)):
                    self.add(child, name, depth)
            elif type(key) is str and key[:1] != "_":
                self.add(value, name, depth + 1)


class Before:
    """The state before a cell: the identities of the variables, and the storages."""

    def __init__(self, shell):
        self.shell = shell
        self.variables = {name: id(value) for name, value in shell.user_ns.items()}
        self.results = set(shell.user_ns.get("_oh") or ())
        self.storages, self.whole = self.look(lambda name: True)

    def is_changed(self, name):
        return self.variables.get(name) != id(self.shell.user_ns.get(name))

    def look(self, is_wanted):
        """({storage: (bytes, variable)}, whether the search was complete)."""
        torch = sys.modules.get("torch")
        if torch is None or not hasattr(torch, "Tensor"):
            return {}, True
        names = self.shell.user_ns
        walk = _QuickWalk(torch, (names, self.shell, sys.modules["__main__"].__dict__))
        for name, value in list(names.items()):
            if held.is_variable(name, self.shell.user_ns_hidden) and is_wanted(name):
                walk.add(value, name)
        value = None
        walk.run("names")
        results = names.get("_oh")
        for number, value in list(dict.items(results)) if held.is_a(results, dict) else ():
            if is_wanted(f"Out[{number}]") and number not in self.results:
                walk.add(value, f"Out[{number}]")
        walk.run("history")
        return walk.found, walk.whole

    def kept_since(self):
        """({variable: [bytes, storages]}, whether the search was complete), for new storages only."""
        if self.whole:
            now, whole = self.look(lambda name: True)
        else:  # the search before the cell was incomplete: only changed variables can be new
            now, whole = self.look(self.is_changed)
            whole = False
        kept = {}
        for storage, (size, name) in now.items():
            if storage not in self.storages:
                entry = kept.setdefault(name, [0, 0])
                entry[0] += size
                entry[1] += 1
        return kept, whole


def line(before, delta):
    """A line: which variables keep the `delta` bytes that a cell left allocated."""
    kept, whole = before.kept_since()
    parts = []
    for name, (size, tensors) in sorted(kept.items(), key=lambda entry: -entry[1][0])[:4]:
        more = f" in {tensors} tensors" if tensors > 1 else ""
        parts.append(f"{name} {held.size_text(size)}{more}")
    if len(kept) > 4:
        parts.append(f"{len(kept) - 4} more variables")
    rest = delta - sum(size for size, _ in kept.values())
    if rest >= 1 << 20:
        reason = (
            "saved for a backward pass, or held by C++ or another module"
            if whole
            else "not all was looked at"
        )
        parts.append(f"{held.size_text(rest)} elsewhere ({reason}: %fragtrace report)")
    return "  still held: " + ", ".join(parts) if parts else ""
