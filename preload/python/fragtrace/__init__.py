"""Marks phases of a program in its fragtrace trace, and explains GPU memory in notebooks.

    import fragtrace

    with fragtrace.phase("epoch 1"):        # ranges of a thread are nested
        ...

    @fragtrace.phase("validate")
    def validate(): ...

    fragtrace.begin("warm-up")              # the same without a block
    fragtrace.end()
    fragtrace.mark("first batch")           # a moment

    %load_ext fragtrace                     # in a notebook: each cell becomes a phase

Does nothing, at next to no cost, in a process that runs without the recorder. No dependencies.
"""

import functools
import inspect

from . import _recorder

__all__ = ["begin", "end", "mark", "phase", "recorder_is_present", "start", "stop", "write"]


def recorder_is_present():
    """Whether this process was started under the recorder."""
    return _recorder.present


if _recorder.present:

    def begin(name):
        """Begins a phase of the calling thread, inside of those that it has open."""
        _recorder.range_begin(_recorder.encoded(name))

    def end():
        """Ends the calling thread's innermost phase."""
        _recorder.range_end()

    def mark(name):
        """Marks a moment."""
        _recorder.mark(_recorder.encoded(name))
else:

    def begin(name):
        """Does nothing: there is no recorder in this process."""

    def end():
        """Does nothing: there is no recorder in this process."""

    def mark(name):
        """Does nothing: there is no recorder in this process."""


def _control(function):
    return function is not None and function() == 0


def start():
    """Goes on recording; False where there is nothing to start."""
    return _control(_recorder.start)


def stop():
    """Records nothing until start(); False where there is nothing to stop."""
    return _control(_recorder.stop)


def write():
    """When it returns True, all that was recorded so far is in a file."""
    return _control(_recorder.write)


class phase:
    """A phase, as a context manager or as a decorator of a function or of a coroutine function."""

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
            # Others run on this thread while it waits: such a phase is not nested in the thread.
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
