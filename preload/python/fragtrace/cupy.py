"""Reports the blocks of CuPy's memory pools to the recorder, by CuPy's own memory hooks.

    import fragtrace.cupy

    fragtrace.cupy.install()

`python -m fragtrace train.py` does the same without a change of the program, and so does `import fragtrace`
before or after `import cupy`. Each pool of a device appears under its name and the kind `cupy`.

CuPy keeps hooks per thread. install() covers the calling thread and the threads that Python's threading
module starts later. Blocks that were allocated before install() are not known. A failure in a hook switches
the adaptor off and never reaches the program. A line on standard error and a mark in the trace say so.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import sys
import threading
import weakref
from typing import Any

from . import _recorder

_UNKNOWN = 2**64 - 1
_hook: Any = None


class _Pool:
    """A pool of one device, as the recorder knows it."""

    __slots__ = ("device", "limit", "number", "pool")

    def __init__(self, pool: Any, name: str, device: int, gone: Any) -> None:
        self.pool = weakref.ref(pool, gone)
        self.device = device
        self.limit = 0
        self.number = _recorder.pool_create(_recorder.encoded(name), b"cupy")

    def note_limit(self) -> None:
        pool = self.pool()
        limit = pool.get_limit() if pool is not None else self.limit
        if limit != self.limit:
            self.limit = limit
            _recorder.pool_limit(self.number, limit)


class _Pools:
    """All pools in use, and the pools of live blocks."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._pools: dict[int, _Pool] = {}  # by the id of the pool of one device
        self._blocks: dict[int, _Pool] = {}  # by address
        self._names = 0
        self._grew = False
        try:
            from cupy_backends.cuda import stream

            self._stream = stream.get_current_stream_ptr
        except (ImportError, AttributeError):
            self._stream = lambda: cupy.cuda.get_current_stream().ptr

    def grew(self) -> None:
        self._grew = True

    def block_alloc(self, device: int, address: int, requested: int, size: int, memory_id: int) -> None:
        # The object is alive: CuPy returns it after the hook.
        memory = ctypes.cast(memory_id, ctypes.py_object).value
        pool = self._pools.get(id(memory.pool()))
        if pool is None:
            pool = self._add(memory.pool(), device)
        elif self._grew:
            self._grew = False
            pool.note_limit()
        self._blocks[address] = pool
        _recorder.block_alloc(pool.number, address, requested, size, self._stream())

    def block_free(self, address: int) -> None:
        pool = self._blocks.pop(address, None)
        if pool is not None:
            _recorder.block_free(pool.number, address)

    def failed(self, device: int, requested: int) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, self._cupy.cuda.memory.OutOfMemoryError):
            return
        pool = self._of_allocator(device)
        if pool is not None:
            pool.note_limit()
            _recorder.block_failed(pool.number, requested, self._stream())

    def end(self) -> None:
        """All pools end, because their frees are not known from now on."""
        self._blocks.clear()
        for entry in list(self._pools.values()):
            _recorder.pool_destroy(entry.number)

    def _add(self, pool: Any, device: int) -> _Pool:
        key = id(pool)

        def gone(_: object) -> None:
            entry = self._pools.pop(key, None)
            # At the end of the interpreter the recorder's functions may be gone.
            if entry is not None and _recorder is not None and _recorder.pool_destroy is not None:
                _recorder.pool_destroy(entry.number)

        default = self._cupy.get_default_memory_pool()
        if any(one is pool for one in _pools_inside(default)):
            name = "CuPy default pool"
        else:
            self._names += 1
            name = f"CuPy pool {self._names}"
        entry = self._pools[key] = _Pool(pool, name, device, gone)
        entry.note_limit()
        return entry

    def _of_allocator(self, device: int) -> _Pool | None:
        """The pool that the current allocator uses; else the only pool of the device, if there is one."""
        allocator = getattr(self._cupy.cuda.get_allocator(), "__self__", None)
        for pool in _pools_inside(allocator):
            entry = self._pools.get(id(pool))
            if entry is not None and entry.device == device:
                return entry
        entries = [entry for entry in list(self._pools.values()) if entry.device == device]
        return entries[0] if len(entries) == 1 else None


def _pools_inside(allocator: Any) -> list[Any]:
    """The pools of single devices in a cupy.cuda.MemoryPool. CuPy does not name them to Python code."""
    if allocator is None:
        return []
    inside = gc.get_referents(allocator)
    for container in [one for one in inside if isinstance(one, (dict, list, tuple))]:
        inside += gc.get_referents(container)
    return [one for one in inside if type(one).__name__ == "SingleDeviceMemoryPool"]


def _make_hook(cupy: Any) -> Any:
    pools = _Pools(cupy)

    class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "fragtrace"
        works = True

        def switch_off(self, error: Exception) -> None:
            Hook.works = False
            with contextlib.suppress(Exception):
                pools.end()
            _recorder.say_off("CuPy's pools", error)

        def alloc_postprocess(self, **_: Any) -> None:
            pools.grew()

        def malloc_postprocess(
            self, *, device_id: int, size: int, mem_size: int, mem_ptr: int, pmem_id: int, **_: Any
        ) -> None:
            if not Hook.works:
                return
            try:
                if mem_ptr:
                    pools.block_alloc(device_id, mem_ptr, size, mem_size, pmem_id)
                elif mem_size:
                    pools.failed(device_id, size)
            except Exception as error:
                self.switch_off(error)

        def free_preprocess(self, *, mem_ptr: int, **_: Any) -> None:
            if not Hook.works:
                return
            try:
                pools.block_free(mem_ptr)
            except Exception as error:
                self.switch_off(error)

    return Hook()


def _enter_thread() -> bool:
    try:
        _hook.__enter__()
    except Exception:  # the thread has it already
        pass
    return True


def _cover_new_threads() -> None:
    start = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    @functools.wraps(start)
    def bootstrap(self: threading.Thread) -> None:
        _enter_thread()
        start(self)

    threading.Thread._bootstrap_inner = bootstrap  # type: ignore[attr-defined]


def install() -> bool:
    """Reports the blocks that CuPy's pools allocate from now on. Returns False without the recorder or CuPy.

    A second call from another thread covers this thread, too.
    """
    global _hook
    if _recorder.pool_create is None:
        return False
    if _hook is None:
        try:
            import cupy

            _hook = _make_hook(cupy)
            _cover_new_threads()
        except ImportError:
            return False
        except Exception as error:  # another release of CuPy than the adaptor knows
            _recorder.say_off("CuPy's pools", error)
            return _hook is not None and _enter_thread()
    return _enter_thread()
