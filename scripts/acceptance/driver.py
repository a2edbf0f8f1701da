"""Uses the driver alone, through ctypes: scripts/gpu-acceptance measures the card with it.

    driver.py allocate | facts

Prints one JSON object. `allocate` makes allocations and reports their addresses and by how much the device's
free memory fell. `facts` measures in which steps the driver allocates memory. All memory is freed at the end.
"""

import ctypes
import json
import sys

MIB = 2**20


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        error = getattr(self.library, name)(*arguments)
        if error:
            sys.exit(f"{name}: error {error}")

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def release(self, address):
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def memory(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def free(self):
        return self.memory()[0]

    def entry_point(self, name, version):
        function = ctypes.c_void_p()
        status = ctypes.c_int()
        self.call(
            "cuGetProcAddress_v2",
            name.encode(),
            ctypes.byref(function),
            version,
            ctypes.c_uint64(0),
            ctypes.byref(status),
        )
        return function.value

    def address_of(self, symbol):
        return ctypes.cast(getattr(self.library, symbol), ctypes.c_void_p).value


def allocate(driver):
    sizes = [1, 4096, MIB, 3 * MIB + 17, 64 * MIB] * 4
    kept = driver.allocate(MIB)  # the driver may set things up at the first allocation
    before = driver.free()
    addresses = [driver.allocate(size) for size in sizes]
    after = driver.free()
    for address in addresses:
        driver.release(address)
    given_back = driver.free() - after
    driver.release(kept)
    return {
        "allocations": [[kept, MIB], *zip(addresses, sizes)],
        "requested": sum(sizes),
        "taken": before - after,
        "given_back": given_back,
    }


def smallest_step(driver):
    """Returns the steps in which free memory falls while small allocations are made."""
    steps, kept, last = [], [], driver.free()
    while len(steps) < 8 and len(kept) < 20000:
        kept.append(driver.allocate(512))
        now = driver.free()
        if now != last:
            steps.append(last - now)
        last = now
    for address in kept:
        driver.release(address)
    return steps


def async_steps(driver):
    """Like smallest_step(), for allocations of 1 MiB from the device's stream-ordered pool."""
    steps, kept, last = [], [], driver.free()
    while len(steps) < 4 and len(kept) < 300:
        address = ctypes.c_uint64()
        driver.call("cuMemAllocAsync", ctypes.byref(address), ctypes.c_size_t(MIB), None)
        driver.call("cuStreamSynchronize", None)
        kept.append(address)
        now = driver.free()
        if now != last:
            steps.append(last - now)
        last = now
    for address in kept:
        driver.call("cuMemFreeAsync", address, None)
    driver.call("cuStreamSynchronize", None)
    return steps


def facts(driver):
    version = ctypes.c_int()
    driver.call("cuDriverGetVersion", ctypes.byref(version))
    name = ctypes.create_string_buffer(256)
    driver.call("cuDeviceGetName", name, 256, 0)
    free, total = driver.memory()
    names = [
        ("cuMemAlloc", "cuMemAlloc_v2", 3020),
        ("cuMemFree", "cuMemFree_v2", 3020),
        ("cuMemGetInfo", "cuMemGetInfo_v2", 3020),
        ("cuMemCreate", "cuMemCreate", 10020),
        ("cuMemMap", "cuMemMap", 10020),
        ("cuMemAllocAsync", "cuMemAllocAsync", 11020),
    ]
    differing = [
        symbol
        for base, symbol, since in names
        if driver.entry_point(base, since) != driver.address_of(symbol)
    ]
    return {
        "name": name.value.decode(errors="replace"),
        "driver_version": version.value,
        "total_bytes": total,
        "free_with_context_bytes": free,
        "used_with_context_bytes": total - free,
        "steps": smallest_step(driver),
        "async_steps": async_steps(driver),
        "compared": len(names),
        "entry_points_that_differ_from_dlsym": differing,
    }


if __name__ == "__main__":
    print(json.dumps({"allocate": allocate, "facts": facts}[sys.argv[1]](Driver())))
