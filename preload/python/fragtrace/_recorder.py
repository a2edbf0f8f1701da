"""The recorder's functions, looked up in the running process. None without the recorder."""

import ctypes
import sys


def _find(library, name, result=None, arguments=()):
    try:
        function = getattr(library, name)
    except AttributeError:
        return None
    function.restype = result
    function.argtypes = list(arguments)
    return function


def _process(kind):
    try:
        return kind(None)
    except OSError:  # a statically linked interpreter
        return None


# Short calls keep the GIL, because releasing it takes longer than the call.
_short = _process(ctypes.PyDLL)
_long = _process(ctypes.CDLL)
_name = (ctypes.c_char_p,)

range_begin = _find(_short, "fragtrace_range_begin", None, _name)
range_end = _find(_short, "fragtrace_range_end")
range_start = _find(_short, "fragtrace_range_start", ctypes.c_uint64, _name)
range_stop = _find(_short, "fragtrace_range_stop", None, (ctypes.c_uint64,))
mark = _find(_short, "fragtrace_mark", None, _name)
label_begin = _find(_short, "fragtrace_label_begin", None, _name)
label_end = _find(_short, "fragtrace_label_end")
label_memory = _find(_short, "fragtrace_label_memory", None, (ctypes.c_void_p, ctypes.c_char_p))
mempool_name = _find(
    _short, "fragtrace_mempool_name", None, (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p)
)
pool_create = _find(_short, "fragtrace_pool_create", ctypes.c_uint32, (ctypes.c_char_p, ctypes.c_char_p))
pool_destroy = _find(_short, "fragtrace_pool_destroy", None, (ctypes.c_uint32,))
pool_limit = _find(_short, "fragtrace_pool_limit", None, (ctypes.c_uint32, ctypes.c_uint64))
block_alloc = _find(
    _short,
    "fragtrace_block_alloc",
    None,
    (ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64),
)
block_free = _find(_short, "fragtrace_block_free", None, (ctypes.c_uint32, ctypes.c_void_p))
block_failed = _find(
    _short, "fragtrace_block_failed", None, (ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64)
)
block_label = _find(
    _short, "fragtrace_block_label", None, (ctypes.c_uint32, ctypes.c_void_p, ctypes.c_char_p)
)
cell_begin = _find(_short, "fragtrace_cell_begin", None, _name)
cell_end = _find(_short, "fragtrace_cell_end")
start = _find(_long, "fragtrace_start", ctypes.c_int)
stop = _find(_long, "fragtrace_stop", ctypes.c_int)
write = _find(_long, "fragtrace_write", ctypes.c_int)

present = range_begin is not None


def say_off(what, error):
    """Says on standard error and in the trace that `what` is not recorded any more. Never raises."""
    message = f"fragtrace: {what} are not recorded any more: {type(error).__name__}: {error}"
    try:
        if mark is not None:
            mark(encoded(message))
        print(message, file=sys.stderr, flush=True)
    except Exception:  # standard error is closed
        pass


def encoded(name):
    """A name in the form that the recorder accepts: UTF-8 without null bytes."""
    return str(name).encode("utf-8", "replace").replace(b"\0", b" ")
