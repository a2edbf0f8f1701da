"""Runs a program and writes PyTorch's own statistics of its memory, exact to the byte.

    peaks.py STATISTICS.json PROGRAM.py [ARGUMENT...]

The program runs as if it had been started directly. Its exit code is passed on, also after an uncaught error.
"""

import json
import os
import runpy
import sys

import torch

statistics_path, program = sys.argv[1:3]
sys.argv = sys.argv[2:]
sys.path[0] = os.path.dirname(os.path.abspath(program))
try:
    runpy.run_path(program, run_name="__main__")
finally:
    with open(statistics_path, "w", encoding="utf-8") as out:
        json.dump({name: value for name, value in torch.cuda.memory_stats().items()}, out)
