"""Reports the blocks of an RMM memory resource to the recorder.

    import fragtrace.rmm
    import rmm

    pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=2**30)
    rmm.mr.set_current_device_resource(fragtrace.rmm.reported(pool))

RMM allocates in C++ and has no hooks. So reported() returns a resource of RMM's class CallbackMemoryResource,
which passes each request on to the pool and reports it. Every request then takes Python's global lock (GIL).
A C++ library that allocates in threads of its own while its caller holds this lock would wait for ever.
Without the recorder, reported() returns the pool itself.
"""

from __future__ import annotations

from typing import Any

from . import _recorder
from ._pools import pool as _pool

_UNIT = 256  # RMM rounds requests to this many bytes
_UNKNOWN = 2**64 - 1

# The simulated pool for each class of RMM.
_KINDS = {"PoolMemoryResource": "rmm-pool", "ArenaMemoryResource": "rmm-arena"}


def _stream_handle(stream: Any) -> int:
    try:
        return int(stream.__cuda_stream__()[1])
    except Exception:
        return _UNKNOWN


def reported(resource: Any, name: str = "RMM pool", kind: str | None = None, limit: int = 0) -> Any:
    """A resource that allocates from `resource` and reports its blocks.

    `kind` is a name that `fraganalyze replay --pool` knows; by default the one of the resource's class, else
    `other`. `limit` is the pool's maximum size in bytes, 0 if it has none. CudaAsyncMemoryResource and
    CudaMemoryResource are returned as they are: the recorder sees all their blocks anyway.
    """
    if _recorder.pool_create is None or type(resource).__name__ in (
        "CudaAsyncMemoryResource",
        "CudaAsyncViewMemoryResource",
        "CudaMemoryResource",
    ):
        return resource
    import rmm

    pool = _pool(name, kind or _KINDS.get(type(resource).__name__, "other"), limit)

    def allocate(size: int, stream: Any) -> int:
        try:
            address = int(resource.allocate(size, stream))
        except MemoryError:
            pool.failed(size, _stream_handle(stream))
            raise
        if address:
            pool.alloc(address, size, -(-size // _UNIT) * _UNIT, _stream_handle(stream))
        return address

    def deallocate(address: int, size: int, stream: Any) -> None:
        if address:
            pool.free(address)
        resource.deallocate(address, size, stream)

    return rmm.mr.CallbackMemoryResource(allocate, deallocate)
