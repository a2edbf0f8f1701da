"""A CUDA program without PyTorch that does what its arguments say, one step after the other.

alloc=BYTES    cudaMalloc
free           cudaFree of the last one that is held
churn=N        N times cudaMalloc and cudaFree of 1 MiB
refused        asks for far more than the card has
start, stop, write     fragtrace_start() and so on; write prints what it returned
signal=NAME    sent to itself; waits until the recorder has most likely seen it
own=NAME       handles the signal itself, and prints when it comes
sleep=SECONDS
wait=PATTERN   until the recorder has left such a file, at most 30 seconds
kill           SIGKILL to itself
"""

import ctypes
import os
import pathlib
import signal
import sys
import time

cuda = ctypes.CDLL("libcudart.so.13")
program = ctypes.CDLL(None)


def allocate(size):
    address = ctypes.c_void_p()
    error = cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size))
    return error, address


def wait_for(pattern):
    end = time.monotonic() + 30
    while not list(pathlib.Path(os.environ["FRAGTRACE_OUTPUT"]).glob(pattern)):
        if time.monotonic() > end:
            sys.exit(f"no {pattern} in 30 seconds")
        time.sleep(0.05)


def say_signal(number, frame):
    print("handled", number, flush=True)


held = []
for step in sys.argv[1:]:
    name, _, value = step.partition("=")
    if name == "alloc":
        error, address = allocate(int(value))
        if error:
            sys.exit(f"cudaMalloc: error {error}")
        held.append(address)
    elif name == "free":
        cuda.cudaFree(held.pop())
    elif name == "churn":
        for _ in range(int(value)):
            cuda.cudaFree(allocate(1 << 20)[1])
    elif name == "refused":
        allocate(1 << 44)
    elif name in ("start", "stop", "write"):
        print(name, getattr(program, f"fragtrace_{name}")(), flush=True)
    elif name == "signal":
        os.kill(os.getpid(), getattr(signal, f"SIG{value}"))
        time.sleep(1.2)
    elif name == "own":
        signal.signal(getattr(signal, f"SIG{value}"), say_signal)
    elif name == "wait":
        wait_for(value)
    elif name == "sleep":
        time.sleep(float(value))
    elif name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        sys.exit(f"unknown step {step}")
