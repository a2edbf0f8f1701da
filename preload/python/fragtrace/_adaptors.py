"""Installs the adaptors of memory pools and sleep modes when the program imports their packages.

Under the recorder, `import fragtrace` and `python -m fragtrace` put a finder in front of sys.meta_path. It
finds nothing itself. After one of the packages below has been imported, it installs the adaptor of this
package. Other imports pay one look-up in a dictionary. A failure of an adaptor never reaches the program.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

from . import _recorder

# The package, and the module of fragtrace with its adaptor. RMM is not here: its adaptor makes the program's
# requests take the GIL, which the program has to ask for.
_ADAPTORS = {
    "cupy": ".cupy",
    "torch_memory_saver": ".torch_memory_saver",
    "vllm.device_allocator.cumem": ".vllm",
}


def _install(package):
    try:
        importlib.import_module(_ADAPTORS[package], __package__).install()
    except Exception as error:  # another release of the package than the adaptor knows
        _recorder.say_off(f"pools of {package}", error)


class _Loader:
    """Loads a package as its own loader does, and then installs the adaptor."""

    def __init__(self, package, loader):
        self._package = package
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # The program sees the package's own loader.
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _install(self._package)


class _Finder:
    def __init__(self):
        self._looking = set()

    def find_spec(self, name, path=None, target=None):
        if name not in _ADAPTORS or name in self._looking:
            return None
        self._looking.add(name)
        try:
            spec = importlib.util.find_spec(name)
            if spec is not None and hasattr(spec.loader, "exec_module"):
                spec.loader = _Loader(name, spec.loader)
            return spec
        except Exception:  # the next finder raises it, if it is the program's
            return None
        finally:
            self._looking.discard(name)


def watch():
    """Installs the adaptors of packages that are imported from now on, or are imported already."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for package in _ADAPTORS:
        if package in sys.modules:
            _install(package)
