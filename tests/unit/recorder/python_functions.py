"""Records one event in each of many functions, which are created like a program's generated code."""

import ctypes
import sys

record = ctypes.CDLL(None).client_record
record.argtypes = [ctypes.c_uint64]
for i in range(int(sys.argv[1])):
    space = {"record": record}
    exec(f"def made_{i}(): record({i + 1})", space)
    space[f"made_{i}"]()
