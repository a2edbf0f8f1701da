"""Tagged regions of memory, which a library unmaps and maps again by tag: sleep modes.

The recorder sees the mappings themselves. An adaptor adds the tags: phases for the regions and for the calls
that unmap and map them, and a name for each region's MemPool. A failure of an adaptor switches it off and
never reaches the program.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Callable

from . import _recorder
from ._pools import name_mempool

_Pools = Callable[[Any, str], "list[Any]"]  # the MemPools of an object's region with this tag


class Adaptor:
    """Wraps methods of a class."""

    def __init__(self, package: str, owner: type) -> None:
        self._package = package
        self._owner = owner
        self._on = True

    def wrap_region(self, method: str, default_tag: str, pools_of: _Pools) -> None:
        """`method` is a context manager whose argument `tag` names the region."""
        original = getattr(self._owner, method)

        @functools.wraps(original)
        @contextlib.contextmanager
        def region(this: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
            given = arguments[0] if arguments else options.get("tag")
            tag = default_tag if given is None else str(given)
            with original(this, *arguments, **options) as value:
                self._name(pools_of, this, tag)
                with self._phase(tag):
                    yield value

        setattr(self._owner, method, region)

    def wrap_call(self, method: str, phase: str, tags: str | None = None) -> None:
        """`method` unmaps or maps regions. `tags`: the name of its first argument, if that has tags."""
        original = getattr(self._owner, method)

        @functools.wraps(original)
        def call(this: Any, *arguments: Any, **options: Any) -> Any:
            given = None if tags is None else arguments[0] if arguments else options.get(tags)
            listed = [given] if isinstance(given, str) else given if isinstance(given, (list, tuple)) else []
            with self._phase(" ".join([phase, *map(str, listed)])):
                return original(this, *arguments, **options)

        setattr(self._owner, method, call)

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        _recorder.range_begin(_recorder.encoded(name))
        try:
            yield
        finally:
            _recorder.range_end()

    def _name(self, pools_of: _Pools, this: Any, tag: str) -> None:
        try:
            for pool in pools_of(this, tag) if self._on else ():
                name_mempool(pool, tag)
        except Exception as error:  # another release of the package than the adaptor knows
            self._on = False
            _recorder.say_off(f"tags of {self._package}", error)


_installed: set[type] = set()


def install(package: str, owner: type, wrap: Callable[[Adaptor], None]) -> bool:
    """Wraps the class once. False without the recorder."""
    if _recorder.mempool_name is None:
        return False
    if owner not in _installed:
        _installed.add(owner)
        wrap(Adaptor(package, owner))
    return True
