"""A CUDA program without PyTorch. Its arguments are its steps, in order.

alloc=BYTES    cudaMalloc
free           cudaFree of the last live allocation
churn=N        N times cudaMalloc and cudaFree of 1 MiB
refused        requests far more than the card has
start, stop, write     fragtrace_start() and so on; write prints the result
signal=NAME    sends itself the signal; waits until the recorder has seen it
own=NAME       handles the signal itself, and prints when it comes
sleep=SECONDS
wait=PATTERN   until the recorder has left such a file, at most two minutes
kill           SIGKILL to itself
exec=COMMAND   becomes this program, of the shell
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
    end = time.monotonic() + 120
    while not list(pathlib.Path(os.environ["FRAGTRACE_OUTPUT"]).glob(pattern)):
        if time.monotonic() > end:
            sys.exit(f"no {pattern} in two minutes")
        time.sleep(0.05)


def looks():
    """How often the recorder's thread has gone to sleep, if it exists. It sleeps after each check."""
    for task in pathlib.Path("/proc/self/task").iterdir():
        if (task / "comm").read_text() == "fragtrace\n":
            status = (task / "status").read_text()
            return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return None


def wait_for_looks():
    before = looks()
    end = time.monotonic() + 120
    while before is not None and looks() < before + 5 and time.monotonic() < end:
        time.sleep(0.02)


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
        wait_for_looks()
    elif name == "own":
        signal.signal(getattr(signal, f"SIG{value}"), say_signal)
    elif name == "wait":
        wait_for(value)
    elif name == "sleep":
        time.sleep(float(value))
    elif name == "exec":
        os.execv("/bin/sh", ["sh", "-c", value])
    elif name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        sys.exit(f"unknown step {step}")
