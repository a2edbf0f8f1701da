"""Runs a program of Warp on the virtual GPU: warp_over_stand_ins.py PROGRAM.

Warp has the CUDA runtime linked statically, and the virtual GPU cannot serve it. So the functions of Warp's
library that allocate and free memory are replaced by those of warp_memory.c, which FRAGTRACE_WARP_MEMORY
names. All other code is Warp's own, also its calls to the driver: devices, contexts, modules, launches.
"""

import ctypes
import os
import runpy
import sys

import warp
from warp._src import context


def replace(core):
    library = ctypes.CDLL(os.environ["FRAGTRACE_WARP_MEMORY"])
    for way in ("default", "async"):
        for action in ("alloc", "free"):
            name = f"wp_{action}_device_{way}"
            old, new = getattr(core, name), getattr(library, name)
            new.argtypes, new.restype = old.argtypes, old.restype
            setattr(core, name, new)


warp.config.log_level = warp.LOG_WARNING
warp.init()

replace(context.runtime.core)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
