"""IPython extension: every cell is a phase, and prints at its end how it changed PyTorch's memory.
After an out-of-memory error it prints all live tensors and the names that keep them.

    %load_ext fragtrace
    %fragtrace off | on | report | forget

Without the recorder it does nothing. It never imports torch, keeps no object alive, and never makes
a cell fail.
"""

import sys

from . import _recorder, held, kept

WORTH_NAMING_BYTES = 1 << 20  # left allocated by a cell; less is not explained

_loaded = {}


class _Memory:
    """PyTorch's own statistics, summed over all devices. Zeros before PyTorch uses one."""

    def __init__(self):
        self.allocated = self.reserved = self.peak = self.refused = 0
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return
        for device in range(cuda.device_count()):
            statistics = cuda.memory_stats(device)
            self.allocated += statistics.get("allocated_bytes.all.current", 0)
            self.reserved += statistics.get("reserved_bytes.all.current", 0)
            self.peak += statistics.get("allocated_bytes.all.peak", 0)
            self.refused += statistics.get("num_ooms", 0)


def _first_line(cell):
    for line in (cell or "").splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            return line[:60]
    return ""


class Cells:
    """The callbacks of one shell."""

    def __init__(self, shell):
        self.shell = shell
        self.on = True
        self.name = None  # of the cell that runs
        self.before = None
        self.variables = None  # before it ran

    def begin(self, info=None):
        self.guarded(self.begin_cell, info)

    def end(self, result=None):
        self.guarded(self.end_cell)

    def guarded(self, function, *arguments):
        try:
            function(*arguments)
        except Exception as error:  # an error of this module must not make the cell fail
            self.before = self.variables = None
            print(f"fragtrace: {type(error).__name__}: {error} (the cell is not affected)", file=sys.stderr)

    def cell_number(self):
        # Releases of IPython count the cell before or after its callbacks. All add to the list of
        # inputs later.
        try:
            return len(self.shell.history_manager.input_hist_raw)
        except AttributeError:
            return self.shell.execution_count

    def report(self):
        return held.report(self.shell.user_ns, hidden=self.shell.user_ns_hidden, shell=self.shell)

    def begin_cell(self, info):
        if not self.on or getattr(info, "silent", False):
            return
        number = f"In [{self.cell_number()}]"
        line = _first_line(getattr(info, "raw_cell", ""))
        _recorder.cell_begin(_recorder.encoded(f"{number} {line}".strip()))
        self.name = number
        self.before = _Memory()
        self.variables = kept.Before(self.shell)

    def end_cell(self):
        name, self.name = self.name, None
        before, self.before = self.before, None
        variables, self.variables = self.variables, None
        if name is None:
            return
        _recorder.cell_end()
        after = _Memory()
        if before is None:
            return
        if (after.allocated, after.reserved, after.peak) != (before.allocated, before.reserved, before.peak):
            print(delta_line(name, before, after))
        if after.refused > before.refused:
            print("\n".join(self.report()))
        elif after.allocated - before.allocated >= WORTH_NAMING_BYTES and variables is not None:
            line = kept.line(variables, after.allocated - before.allocated)
            if line:
                print(line)

    def magic(self, line=""):
        """%fragtrace on | off: cells as phases, and their output. report: lists live GPU tensors.
        forget: clears the last error's traceback, which keeps the variables of its functions."""
        word = line.strip()
        if word in ("on", "off"):
            self.on = word == "on"
        elif word == "forget":
            held.forget_last_error(self.shell)
        elif word == "report":
            lines = self.report() or ["fragtrace: PyTorch is not loaded"]
            print("\n".join(lines))
        else:
            print(f"fragtrace: '{word}' is not known: %fragtrace on, off, report or forget", file=sys.stderr)


def delta_line(name, before, after):
    # PyTorch's peak is not reset, so a lower peak of this cell is not known exactly.
    peak = held.size_text(after.peak)
    peak = f"peak {peak}" if after.peak > before.peak else f"peak at most {peak}"
    return (
        f"fragtrace: {name}: allocated {after.allocated - before.allocated:+,d} B "
        f"(now {held.size_text(after.allocated)}), "
        f"reserved {after.reserved - before.reserved:+,d} B "
        f"(now {held.size_text(after.reserved)}), {peak}"
    )


def load(shell):
    if not _recorder.present:
        print(
            "fragtrace: the recorder is not in this process, nothing is done. Start the notebook "
            "under it: fragtrace run -- jupyter lab",
            file=sys.stderr,
        )
        return
    if id(shell) in _loaded:
        return
    cells = Cells(shell)
    _loaded[id(shell)] = cells
    shell.events.register("pre_run_cell", cells.begin)
    shell.events.register("post_run_cell", cells.end)
    shell.register_magic_function(cells.magic, "line", "fragtrace")


def unload(shell):
    cells = _loaded.pop(id(shell), None)
    if cells is not None:
        shell.events.unregister("pre_run_cell", cells.begin)
        shell.events.unregister("post_run_cell", cells.end)
        shell.magics_manager.magics["line"].pop("fragtrace", None)
