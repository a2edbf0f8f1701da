"""Records the tags of torch_memory_saver's regions: its phases, and the names of its MemPools.

`python -m fragtrace train.py` and `import fragtrace` install it. docs/frameworks/sleep-modes.md says what is
recorded.
"""

from __future__ import annotations

import sys
from typing import Any

from . import _regions


def _pools(saver: Any, tag: str) -> list[Any]:
    # The key is the tag, or a tuple that begins with it.
    pools = list(saver._impl._mem_pools.items())
    return [pool for key, pool in pools if tag in (key, key[0] if isinstance(key, tuple) else key)]


def install() -> bool:
    """Installs the adaptor. False without the recorder or without torch_memory_saver."""
    package = sys.modules.get("torch_memory_saver")
    if package is None:
        return False

    def wrap(adaptor: _regions.Adaptor) -> None:
        adaptor.wrap_region("region", "default", _pools)
        adaptor.wrap_call("pause", "pause", tags="tag")
        adaptor.wrap_call("resume", "resume", tags="tag")

    return _regions.install("torch_memory_saver", type(package.torch_memory_saver), wrap)
