"""Records the tags of vLLM's sleep mode: its phases, and the names of its MemPools.

`python -m fragtrace serve.py` and `import fragtrace` install it. docs/frameworks/sleep-modes.md says what is
recorded, and how it reaches processes that vLLM starts.
"""

from __future__ import annotations

import sys
from typing import Any

from . import _regions


def _pools(allocator: Any, tag: str) -> list[Any]:
    return [allocator.allocator_and_pools[tag][0]]


def install() -> bool:
    """Installs the adaptor. False without the recorder or without vLLM's allocator."""
    module = sys.modules.get("vllm.device_allocator.cumem")
    if module is None:
        return False

    def wrap(adaptor: _regions.Adaptor) -> None:
        adaptor.wrap_region("use_memory_pool", module.CuMemAllocator.default_tag, _pools)
        adaptor.wrap_call("sleep", "sleep")
        adaptor.wrap_call("wake_up", "wake up", tags="tags")

    return _regions.install("vllm", module.CuMemAllocator, wrap)
