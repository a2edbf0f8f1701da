"""IPython extension: every cell is a phase, and prints at its end how it changed PyTorch's memory.
After an out-of-memory error it prints all live tensors and the names that keep them.

    %load_ext fragtrace
    %fragtrace page [TRACE] | off | on | report | forget

Without the recorder only `page TRACE` works. The extension never imports torch, keeps no object alive, and
never makes a cell fail.
"""

import os
import pathlib
import shlex
import sys

from . import _recorder, held, kept

WORDS = "page [TRACE], on, off, report or forget"
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
        """%fragtrace page [TRACE]: shows the page of a trace, or of this process so far. on | off: cells as
        phases, and their output. report: lists live GPU tensors. forget: clears the last error's traceback,
        which keeps the variables of its functions."""
        word, _, rest = line.strip().partition(" ")
        if word == "page":
            show_page(rest.strip())
        elif not _recorder.present:
            print(NO_RECORDER, file=sys.stderr)
        elif word in ("on", "off"):
            self.on = word == "on"
        elif word == "forget":
            held.forget_last_error(self.shell)
        elif word == "report":
            lines = self.report() or ["fragtrace: PyTorch is not loaded"]
            print("\n".join(lines))
        else:
            problem = f"unknown word '{word}'" if word else "a word is missing"
            print(f"fragtrace: {problem}; use %fragtrace {WORDS}", file=sys.stderr)


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


NO_RECORDER = (
    "fragtrace: the recorder is not in this process; only %fragtrace page TRACE works. Start the notebook "
    "under it: fragtrace run -- jupyter lab"
)


def own_trace():
    """The trace of this process, with all events so far. None if there is none."""
    _recorder.write()
    folders = {os.environ.get("FRAGTRACE_OUTPUT") or "."}
    for link in pathlib.Path("/proc/self/fd").glob("*"):
        try:
            folders.add(os.path.dirname(os.readlink(link)))  # the program may have changed its folder
        except OSError:
            pass
    pid = os.getpid()
    found = {
        trace
        for folder in folders
        if os.path.isdir(folder)
        for pattern in (f"*.{pid}.ftrace", f"*.{pid}.*.ftrace")
        for trace in pathlib.Path(folder).glob(pattern)
    }
    return max(found, key=lambda trace: trace.stat().st_mtime_ns, default=None)


def show_page(argument):
    """The page of a trace, in a notebook's output."""
    from IPython.display import display

    from ._analyzer import Error
    from .report import load

    try:
        words = shlex.split(argument)
        if len(words) > 1:
            raise Error("%fragtrace page takes one trace")
        trace = words[0] if words else own_trace() if _recorder.present else None
        if trace is None:
            raise Error(
                "this process has no recording with a CUDA call yet. Name a trace: %fragtrace page TRACE"
            )
        display(load(trace))
    except (Error, ValueError) as error:
        print(f"fragtrace: {error}", file=sys.stderr)


def load(shell):
    if id(shell) in _loaded:
        return
    cells = Cells(shell)
    _loaded[id(shell)] = cells
    shell.register_magic_function(cells.magic, "line", "fragtrace")
    if not _recorder.present:
        print(NO_RECORDER, file=sys.stderr)
        return
    shell.events.register("pre_run_cell", cells.begin)
    shell.events.register("post_run_cell", cells.end)


def unload(shell):
    cells = _loaded.pop(id(shell), None)
    if cells is not None:
        if _recorder.present:
            shell.events.unregister("pre_run_cell", cells.begin)
            shell.events.unregister("post_run_cell", cells.end)
        shell.magics_manager.magics["line"].pop("fragtrace", None)
