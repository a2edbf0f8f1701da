"""Pools of the program's own: reports their blocks to the recorder."""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _recorder

if TYPE_CHECKING:
    from typing_extensions import Self

_UNKNOWN = 2**64 - 1


def _address(pointer: Any) -> int:
    """An address or a handle as a number. A ctypes pointer that is NULL is 0."""
    if isinstance(pointer, ctypes.c_void_p):
        return pointer.value or 0
    return int(pointer)


def name_mempool(pool: Any, name: object) -> None:
    """Names a `torch.cuda.MemPool`, or a pool of CUDA graphs by its id, in reports.

    The last name counts, but a pool keeps its 7th name. Without the recorder nothing happens.
    """
    first, second = pool.id if hasattr(pool, "id") else pool
    encoded = _recorder.encoded(name)
    if _recorder.mempool_name is not None:
        _recorder.mempool_name(int(first), int(second), encoded)


class pool:
    """A pool that divides memory into blocks. Its blocks appear in the trace under its name.

    frames = fragtrace.pool("frames", kind="rmm-pool", limit=2**30)
    frames.alloc(address, 4096)             # after the pool has allocated the block
    frames.free(address)                    # before the block becomes free
    frames.failed(2**30)                    # the pool could not serve this request
    frames.close()                          # the pool is gone; also: with fragtrace.pool(...) as frames

    `kind` names the algorithm: a name that `fraganalyze replay --pool` knows, or "other". Sizes are bytes.
    `stream` is the handle of a CUDA stream, None if it is not known. Numbers may be of any type that int()
    takes, addresses and handles also ctypes.c_void_p. There is room for about 1,000 different names and kinds
    in the life of a process. Further pools share one entry in the report. Without the recorder nothing
    happens.
    """

    __slots__ = ("_number",)

    def __init__(self, name: object, kind: str = "other", limit: int = 0) -> None:
        self._number = 0
        name, kind, limit = _recorder.encoded(name), _recorder.encoded(kind), int(limit)
        if _recorder.pool_create is not None:
            self._number = _recorder.pool_create(name, kind)
            if limit:
                self.limit(limit)

    def alloc(
        self,
        pointer: int | ctypes.c_void_p,
        requested: int,
        size: int | None = None,
        stream: int | ctypes.c_void_p | None = 0,
    ) -> None:
        """A new block: `requested` bytes for the program, `size` in the pool (the same if None)."""
        pointer, requested = _address(pointer), int(requested)
        size = requested if size is None else int(size)
        stream = _UNKNOWN if stream is None else _address(stream)
        if self._number:
            _recorder.block_alloc(self._number, pointer, requested, size, stream)

    def free(self, pointer: int | ctypes.c_void_p) -> None:
        """The block becomes free."""
        pointer = _address(pointer)
        if self._number:
            _recorder.block_free(self._number, pointer)

    def failed(self, requested: int, stream: int | ctypes.c_void_p | None = 0) -> None:
        """The pool could not serve a request."""
        requested = int(requested)
        stream = _UNKNOWN if stream is None else _address(stream)
        if self._number:
            _recorder.block_failed(self._number, requested, stream)

    def label(self, pointer: int | ctypes.c_void_p, name: object) -> None:
        """Labels a live block, and replaces its label."""
        pointer, encoded = _address(pointer), _recorder.encoded(name)
        if self._number:
            _recorder.block_label(self._number, pointer, encoded)

    def limit(self, limit: int) -> None:
        """The most bytes that the pool may take from the driver; 0 = no limit.

        The last limit counts, also for a pool that is created again.
        """
        limit = int(limit)
        if self._number:
            _recorder.pool_limit(self._number, limit)

    def close(self) -> None:
        """The pool does not exist any more. Its live blocks end."""
        number, self._number = self._number, 0
        if number:
            _recorder.pool_destroy(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: TracebackType | None) -> None:
        self.close()
