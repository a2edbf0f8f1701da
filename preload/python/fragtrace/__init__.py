"""fragtrace from Python: phases of a program in its trace, reports on traces, notebooks, and tests.

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

    fragtrace.name_mempool(pool, "weights") # names a torch.cuda.MemPool

    frames = fragtrace.pool("frames")       # reports the blocks of a pool of your own
    frames.alloc(address, 4096)

    fragtrace.memory()                      # a device's memory now; scalars() for a logger

    %load_ext fragtrace                     # in a notebook: each cell becomes a phase

    report = fragtrace.load("train.myhost.4711.ftrace")
    print(report.verdict)

In a process without the recorder the functions for phases, labels and pools do nothing. The module has no
dependencies. fragtrace.lightning and fragtrace.transformers have callbacks for these training loops.
Tables of reports need pyarrow.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from . import _adaptors, _recorder, loggers
from ._labels import label, label_tensor, name_modules
from ._memory import Memory, memory, scalars
from ._pools import name_mempool, pool

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._analyzer import Error, parse_size
    from .report import Report, Table, load, to_parquet

__all__ = [
    "Error",
    "Memory",
    "Report",
    "Table",
    "begin",
    "end",
    "label",
    "label_tensor",
    "load",
    "loggers",
    "mark",
    "memory",
    "name_mempool",
    "name_modules",
    "parse_size",
    "phase",
    "pool",
    "recorder_is_present",
    "scalars",
    "start",
    "stop",
    "to_parquet",
    "write",
]

_PARTS = {
    "Error": "._analyzer",
    "parse_size": "._analyzer",
    "Report": ".report",
    "Table": ".report",
    "load": ".report",
    "to_parquet": ".report",
}
_Function = TypeVar("_Function", bound=Callable[..., Any])


def __getattr__(name: str) -> Any:
    # The parts that a recorded program does not need are imported at their first use.
    part = _PARTS.get(name)
    if part is None:
        raise AttributeError(f"module 'fragtrace' has no attribute '{name}'")
    return getattr(importlib.import_module(part, __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def recorder_is_present() -> bool:
    """Whether this process was started under the recorder."""
    return _recorder.present


if _recorder.present:

    def begin(name: object) -> None:
        """Begins a phase of the calling thread, inside its open phases."""
        _recorder.range_begin(_recorder.encoded(name))

    def end() -> None:
        """Ends the calling thread's innermost phase."""
        _recorder.range_end()

    def mark(name: object) -> None:
        """Marks one moment."""
        _recorder.mark(_recorder.encoded(name))
else:

    def begin(name: object) -> None:
        """Does nothing: this process has no recorder."""

    def end() -> None:
        """Does nothing: this process has no recorder."""

    def mark(name: object) -> None:
        """Does nothing: this process has no recorder."""


def _control(function: Callable[[], int] | None) -> bool:
    return function is not None and function() == 0


def start() -> bool:
    """Continues recording. Returns False if there is nothing to start."""
    return _control(_recorder.start)


def stop() -> bool:
    """Stops recording until start(). Returns False if there is nothing to stop."""
    return _control(_recorder.stop)


def write() -> bool:
    """Writes all recorded events to a file. Returns False if there is nothing to write."""
    return _control(_recorder.write)


class phase:
    """A phase: a context manager, or a decorator of a function or coroutine function."""

    __slots__ = ("name",)

    def __init__(self, name: object) -> None:
        self.name = name

    def __enter__(self) -> Self:
        begin(self.name)
        return self

    def __exit__(self, *error: object) -> None:
        end()

    def __call__(self, function: _Function) -> _Function:
        if not _recorder.present:
            return function
        name = _recorder.encoded(self.name)
        if inspect.iscoroutinefunction(function):
            # Other coroutines run on this thread while this one waits, so the phase is not nested.
            @functools.wraps(function)
            async def coroutine(*arguments: Any, **options: Any) -> Any:
                number = _recorder.range_start(name)
                try:
                    return await function(*arguments, **options)
                finally:
                    _recorder.range_stop(number)

            return coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            _recorder.range_begin(name)
            try:
                return function(*arguments, **options)
            finally:
                _recorder.range_end()

        return wrapper  # type: ignore[return-value]


if _recorder.pool_create is not None:
    _adaptors.watch()


def load_ipython_extension(shell: Any) -> None:
    """For `%load_ext fragtrace`."""
    from . import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """For `%unload_ext fragtrace`."""
    from . import notebook

    notebook.unload(shell)
