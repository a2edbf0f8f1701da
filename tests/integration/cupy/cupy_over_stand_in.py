"""Makes CuPy's modules call runtime_stand_in.c in place of the CUDA runtime that is linked into its wheel.

CuPy's modules find each other's functions in a dictionary of capsules when they are imported. This module
replaces the capsules of the calls that the memory pool makes, before anything else of CuPy is imported. All
other code is CuPy's own. A program imports `cupy` from here.
"""

import ctypes
import os

from cupy_backends.cuda.api import runtime

NAMES = [
    "getDevice",
    "getDeviceCount",
    "setDevice",
    "malloc",
    "free",
    "memGetInfo",
    "streamCreate",
    "streamCreateWithPriority",
    "streamDestroy",
]


def _replace():
    library = ctypes.PyDLL(os.environ["FRAGTRACE_RUNTIME_STAND_IN"])
    library.stand_in_begin(ctypes.py_object(runtime.CUDARuntimeError))
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_void_p, (ctypes.py_object,)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    kept = []
    for name in NAMES:
        old = runtime.__pyx_capi__[name]
        kept.append(old)  # its name is used on
        function = ctypes.cast(getattr(library, f"stand_in_{name}"), ctypes.c_void_p)
        runtime.__pyx_capi__[name] = make(function, name_of(old), None)
    return kept


_kept = _replace()

import cupy  # noqa: F401
