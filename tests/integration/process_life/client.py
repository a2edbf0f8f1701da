"""A small CUDA program without PyTorch: allocates device memory, logs it, and ends as requested.

    client.py LOG COUNT ENDING

Each address is written to LOG after cudaMalloc has returned, so a trace must contain every address in LOG.
ENDING: return, exit=N, os_exit=N, abort, exception, kill, signal=N, wait, forever, or none-at-all (which
makes no CUDA call). It prints one line, so that its output can be compared.
"""

import ctypes
import os
import signal
import sys

log_path, count, ending = sys.argv[1], int(sys.argv[2]), sys.argv[3]
log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def allocate(cuda, number):
    address = ctypes.c_void_p()
    size = 4096 + 512 * (number % 1000)
    error = cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size))
    if error:
        sys.exit(f"cudaMalloc: error {error}")
    os.write(log, b"%x %d\n" % (address.value, size))
    return address


def work():
    cuda = ctypes.CDLL("libcudart.so.13")
    kept = []
    number = 0
    while number < count or ending == "forever":
        kept.append(allocate(cuda, number))
        number += 1
        if len(kept) > 200:
            cuda.cudaFree(kept.pop(number % 100))


def end():
    name, _, value = ending.partition("=")
    if name == "exit":
        sys.exit(int(value))
    if name == "os_exit":
        sys.stdout.flush()
        os._exit(int(value))
    if name == "abort":
        os.abort()
    if name == "exception":
        raise RuntimeError("told to fail")
    if name == "exec":
        os.execv(sys.executable, [sys.executable, __file__, log_path, str(count), "return"])
    if name == "signal":
        os.kill(os.getpid(), int(value))
    if name == "wait":
        signal.pause()
    if name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


if ending != "none-at-all":
    work()
print(f"{count} allocations, then {ending}", flush=True)
end()
