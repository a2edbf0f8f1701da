"""Behaves like NVTX's header: loads the tool, passes tables of functions to it, and calls through them.

With the argument "which" it only prints the tool that the environment names to C code.
"""

import ctypes
import os
import sys

process = ctypes.CDLL(None)
process.getenv.restype = ctypes.c_char_p
path = process.getenv(b"NVTX_INJECTION64_PATH")
if sys.argv[1:] == ["which"]:
    print(path and path.decode())
    sys.exit()

CORE, CORE2 = 1, 5
SIZES = {CORE: 16, CORE2: 16}
Slot = ctypes.c_void_p
slots = {module: (Slot * size)() for module, size in SIZES.items()}
tables = {
    module: (ctypes.c_void_p * size)(
        *(ctypes.addressof(slots[module]) + 8 * i if i else None for i in range(size))
    )
    for module, size in SIZES.items()
}


@ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint32)
)
def module_functions(module, table, size):
    if module not in tables:
        return 0
    table[0] = ctypes.addressof(tables[module])
    size[0] = SIZES[module]
    return 1


class Callbacks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("functions", ctypes.c_void_p)]


callbacks = Callbacks(16, ctypes.cast(module_functions, ctypes.c_void_p).value)


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
def export_table(number):
    return ctypes.addressof(callbacks) if number == 1 else None


class Event(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint16),
        ("size", ctypes.c_uint16),
        ("unused", ctypes.c_uint32 * 5),
        ("payload", ctypes.c_uint64),
        ("message_type", ctypes.c_int32),
        ("message", ctypes.c_void_p),
    ]


def event(kind, message):
    return ctypes.byref(Event(3, 48, (0,) * 5, 0, kind, message))


def function(module, index, result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)(slots[module][index])


tool = ctypes.CDLL(path.decode())
assert tool.InitializeInjectionNvtx2(export_table) == 1
pointer = ctypes.c_void_p
push = function(CORE, 9, ctypes.c_int, ctypes.c_char_p)
push_wide = function(CORE, 10, ctypes.c_int, ctypes.c_wchar_p)
pop = function(CORE, 11, ctypes.c_int)
domain_mark = function(CORE2, 1, None, pointer, pointer)
domain_start = function(CORE2, 2, ctypes.c_uint64, pointer, pointer)
domain_end = function(CORE2, 3, None, pointer, ctypes.c_uint64)
domain_push = function(CORE2, 4, ctypes.c_int, pointer, pointer)
domain_pop = function(CORE2, 5, ctypes.c_int, pointer)
register = function(CORE2, 11, pointer, pointer, ctypes.c_wchar_p)
create = function(CORE2, 12, pointer, ctypes.c_char_p)

depth = push(b"plain")
cuda = ctypes.CDLL("libcudart.so.13")
assert cuda.cudaMalloc(ctypes.byref(pointer()), ctypes.c_size_t(4096)) == 0
domain = create(b"solver")
domain_push(domain, event(3, register(domain, "größe")))
push_wide("wide")
# Not nested in each other: each domain and thread nests separately.
pop()
domain_pop(domain)
step = ctypes.create_string_buffer(b"step")
domain_mark(domain, event(1, ctypes.addressof(step)))
pop()
start = ctypes.create_unicode_buffer("start")
domain_end(domain, domain_start(domain, event(2, ctypes.addressof(start))))
push(b"aten::mm, seq = 17, op_id = 4")
print(depth, pop(), os.environ.get("NVTX_INJECTION64_PATH"))
