"""Marks phases of a program in its fragtrace trace, and lists live GPU memory in notebooks.

    import fragtrace

    with fragtrace.phase("epoch 1"):        # phases of a thread are nested
        ...

    @fragtrace.phase("validate")
    def validate(): ...

    fragtrace.begin("warm-up")              # the same without a block
    fragtrace.end()
    fragtrace.mark("first batch")           # one moment

    with fragtrace.label("kv cache"):       # names the blocks that are allocated inside
        ...

    fragtrace.label_tensor(weight, "table") # names one block
    fragtrace.name_modules(model)           # labels blocks with the nn.Module that allocated them

    fragtrace.memory()                      # a device's memory now; scalars() for a logger

    %load_ext fragtrace                     # in a notebook: each cell becomes a phase

In a process without the recorder the functions for phases and labels do nothing. The module has no
dependencies. fragtrace.lightning and fragtrace.transformers have callbacks for these training loops.
"""

import functools
import inspect

from . import _recorder, loggers
from ._labels import label, label_tensor, name_modules
from ._memory import Memory, memory, scalars

__all__ = [
    "Memory",
    "begin",
    "end",
    "label",
    "label_tensor",
    "loggers",
    "mark",
    "memory",
    "name_modules",
    "phase",
    "recorder_is_present",
    "scalars",
    "start",
    "stop",
    "write",
]


def recorder_is_present():
    """Whether this process was started under the recorder."""
    return _recorder.present


if _recorder.present:

    def begin(name):
        """Begins a phase of the calling thread, inside its open phases."""
        _recorder.range_begin(_recorder.encoded(name))

    def end():
        """Ends the calling thread's innermost phase."""
        _recorder.range_end()

    def mark(name):
        """Marks one moment."""
        _recorder.mark(_recorder.encoded(name))
else:

    def begin(name):
        """Does nothing: this process has no recorder."""

    def end():
        """Does nothing: this process has no recorder."""

    def mark(name):
        """Does nothing: this process has no recorder."""


def _control(function):
    return function is not None and function() == 0


def start():
    """Continues recording. Returns False if there is nothing to start."""
    return _control(_recorder.start)


def stop():
    """Stops recording until start(). Returns False if there is nothing to stop."""
    return _control(_recorder.stop)


def write():
    """Writes all recorded events to a file. Returns False if there is nothing to write."""
    return _control(_recorder.write)


class phase:
    """A phase: a context manager, or a decorator of a function or coroutine function."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        begin(self.name)
        return self

    def __exit__(self, kind, error, traceback):
        end()
        return False

    def __call__(self, function):
        if not _recorder.present:
            return function
        name = _recorder.encoded(self.name)
        if inspect.iscoroutinefunction(function):
            # Other coroutines run on this thread while this one waits, so the phase is not nested.
            @functools.wraps(function)
            async def coroutine(*arguments, **options):
                number = _recorder.range_start(name)
                try:
                    return await function(*arguments, **options)
                finally:
                    _recorder.range_stop(number)

            return coroutine

        @functools.wraps(function)
        def wrapper(*arguments, **options):
            _recorder.range_begin(name)
            try:
                return function(*arguments, **options)
            finally:
                _recorder.range_end()

        return wrapper


def load_ipython_extension(shell):
    """For `%load_ext fragtrace`."""
    from . import notebook

    notebook.load(shell)


def unload_ipython_extension(shell):
    """For `%unload_ext fragtrace`."""
    from . import notebook

    notebook.unload(shell)
