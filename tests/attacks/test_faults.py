"""Makes every call of the recorder to the C library fail, one call site after the other.

    test_faults.py [--all] [--only SCENARIO] [--site 0x12ab --how 28 [--calls FROM:TO]]

A client program runs with the recorder and programs/faults.c, which lists the call sites. Then it runs once
for each site and kind of failure. Its output, exit code and files must equal those of a run without the
recorder. Its traces must be readable, and no event may be lost silently. Without --all each site fails in one
way, in all calls.
"""

import argparse
import collections
import concurrent.futures
import errno
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import test_client

# The errors with which a function may fail. Without --all only the first one is used.
ERRORS = {
    "open": [errno.EMFILE, errno.EACCES, errno.ENOSPC, errno.EINTR],
    "mmap": [errno.ENOMEM],
    "mremap": [errno.ENOMEM],
    "malloc": [errno.ENOMEM],
    "munmap": [errno.EINVAL],
    "madvise": [errno.EFAULT, errno.EAGAIN, errno.EINVAL, errno.ENOMEM],
    "write": [errno.ENOSPC, errno.EIO, errno.EINTR, "short"],
    "pwrite": [errno.ENOSPC, errno.EIO, errno.EINTR, "short"],
    "pwritev": [errno.ENOSPC, errno.EIO, errno.EINTR],
    "read": [errno.EIO, errno.EINTR, "short"],
    "pread": [errno.EIO, "short"],
    "posix_fallocate": [errno.ENOSPC, errno.EOPNOTSUPP, errno.EINVAL],
    "fallocate": [errno.ENOSPC, errno.EOPNOTSUPP],
    "ftruncate": [errno.EFBIG, errno.EIO],
    "pthread_create": [errno.EAGAIN],
    "pthread_key_create": [errno.EAGAIN],
    "syscall": [errno.ENOSYS, errno.EPERM, errno.EINTR],
    "linkat": [errno.ENOSPC, errno.EPERM, errno.ENOENT],
    "mkdir": [errno.ENOSPC, errno.EACCES],
    "rename": [errno.ENOSPC],
    "renameat2": [errno.ENOSYS, errno.EEXIST],
    "close": [errno.EIO],
    "poll": [errno.EINTR],
    "getrandom": [errno.ENOSYS],
}
# The failing calls of a site: from, up to.
ALL_CALLS, FIRST_CALL, LATER_CALLS = (0, None), (0, 1), (1, None)

# Name: program, arguments, the recorder's settings.
SCENARIOS = {
    "ends": ("ends", [], {}),
    "memory": ("ends", [], {"FRAGTRACE_RING_DIRECTORY": ""}),
    "parts": ("many_threads", [], {"FRAGTRACE_SIZE_LIMIT": "1MiB"}),
    "flight": ("many_threads", [], {"FRAGTRACE_FLIGHT": "on"}),
    "fork": ("processes", ["fork"], {}),
    "python": ("python", [], {}),
}
# Logs its calls like programs/client.h.
PYTHON = """
import ctypes, mmap, os, struct
log = mmap.mmap(os.open(os.environ["CLIENT_LOG"], os.O_RDWR), 0)
def write_entry(*entry):
    count, = struct.unpack_from("=Q", log)
    struct.pack_into("=QQQQ", log, 32 * (count + 1), os.getpid(), *entry)
    struct.pack_into("=Q", log, 0, count + 1)
runtime = ctypes.CDLL("libcudart.so.13")
runtime.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
runtime.cudaFree.argtypes = [ctypes.c_void_p]
for i in range(200):
    address = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(address), 512 * (i + 1)) == 0
    write_entry(1, address.value, 512 * (i + 1))
    write_entry(2, address.value, 0)
    assert runtime.cudaFree(address) == 0
print("done")
"""

Fault = collections.namedtuple("Fault", "function site how calls")


def run(name, folder, recorded, settings):
    """Runs a scenario in a folder. Returns exit code, outputs, files and the log."""
    program, arguments, recorder = SCENARIOS[name]
    options = argparse.Namespace(
        program=program,
        arguments=arguments,
        first=["./libfaults.so"],
        then=[],
        set=[],
        within="",
        recorder=[f"{key}={value}" for key, value in {**recorder, **settings}.items()],
        no_virtual_gpu=False,
        order_differs=False,
        command=None,
    )
    if program == "python":
        options.command = [sys.executable, "-B", "-c", PYTHON]
    return test_client.run(options, folder, recorded)


def check(plain, failed, folder):
    """The error in a run in which a call failed, or ""."""
    said = [line for line in failed.stderr.splitlines() if line.startswith(b"fragtrace: ")]
    stderr = b"".join(line for line in failed.stderr.splitlines(True) if not line.startswith(b"fragtrace: "))
    if failed.code != plain.code:
        return f"exit code {failed.code}, not {plain.code}: {failed.stderr[-300:]}"
    if failed.stdout != plain.stdout or stderr != plain.stderr:
        return f"output {failed.stdout[:200]} {stderr[:300]}"
    if failed.files != plain.files:
        return "the program's files differ"
    if len(said) > 2 * len(failed.logged) + 1:
        return f"said {len(said)} lines: {said}"
    return check_traces(failed, folder, said)


def check_traces(failed, folder, said):
    """Checks the traces. Parts list the live memory again, and the oldest ones are removed, so only the
    existing ones are checked."""
    found = sorted((folder / "traces").glob("*.ftrace"))
    for process, calls in failed.logged.items():
        # A program's name may contain dots and numbers: python3.11.
        name = re.compile(rf"\.{process}(\.\d+)?(\.part\d+)?\.ftrace$")
        traces = [trace for trace in found if name.search(trace.name)]
        events, losses = collections.Counter(), collections.Counter()
        for trace in traces:
            test_client.read_trace(trace, events, losses)
        in_parts = any(".part" in trace.name for trace in traces)
        more = set(events) - set(calls) if in_parts else events - calls
        if more:
            return f"{len(more)} events that the program did not cause: {list(more)[:3]}"
        missing = (calls - events).total()
        if not in_parts and missing > losses.total() and not said:
            return f"{missing} of {calls.total()} events lost in silence"
    return ""


def sites_of(name, holder):
    """The call sites of a scenario, and its results without the recorder."""
    folder = pathlib.Path(holder, name)
    folder.mkdir()
    plain = run(name, folder, recorded=False, settings={})
    assert plain.code == 0, plain.stderr
    sites = folder / "sites"
    sites.write_bytes(b"")
    recorded = run(name, folder, recorded=True, settings={"FAULT_SITES": str(sites)})
    wrong = check(plain, recorded, folder)
    assert not wrong, f"{name}, nothing fails: {wrong}"
    found = {tuple(line.split()) for line in sites.read_text().splitlines()}
    return plain, sorted((function, int(site, 16)) for function, site in found)


def try_fault(name, plain, fault):
    with tempfile.TemporaryDirectory(prefix="fragtrace-faults-") as holder:
        folder = pathlib.Path(holder)
        begin, end = fault.calls
        settings = {"FAULT_AT": hex(fault.site), "FAULT_HOW": str(fault.how), "FAULT_FROM": str(begin)}
        if end is not None:
            settings["FAULT_TO"] = str(end)
        try:
            return check(plain, run(name, folder, True, settings), folder)
        except subprocess.TimeoutExpired:
            return "hangs"
        except AssertionError as failure:
            return str(failure)


def faults_at(function, site, every):
    errors = ERRORS.get(function, [errno.EIO])
    for how in errors if every else errors[:1]:
        if how == errno.EINTR:  # retried as often as necessary
            yield Fault(function, site, how, FIRST_CALL)
            continue
        for calls in (ALL_CALLS, FIRST_CALL, LATER_CALLS) if every else (ALL_CALLS,):
            yield Fault(function, site, how, calls)


def place_of(site):
    """The source line of a site, if a tool can find it."""
    library = pathlib.Path(os.environ["FRAGTRACE_BUILD"], "lib", "libfragtrace.so")
    try:
        done = subprocess.run(
            ["addr2line", "-Cfse", library, hex(site - 1)], capture_output=True, text=True, check=False
        )
        return " ".join(done.stdout.split("\n")[:2])
    except OSError:
        return ""


def attack(name, options, holder):
    plain, sites = sites_of(name, holder)
    if options.site:
        begin, _, end = options.calls.partition(":")
        faults = [Fault("given", int(options.site, 16), options.how, (int(begin), int(end) if end else None))]
    else:
        faults = [fault for function, site in sites for fault in faults_at(function, site, options.all)]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for fault, wrong in zip(faults, pool.map(lambda f: try_fault(name, plain, f), faults)):
            if wrong:
                failures += 1
                print(
                    f"{name}: {fault.function} at {fault.site:#x} ({place_of(fault.site)}), "
                    f"{fault.how}, calls {fault.calls}: {wrong}",
                    flush=True,
                )
    print(f"{name}: {len(sites)} call sites, {len(faults)} faults, {failures} not withstood", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every error, of every call")
    parser.add_argument("--only", choices=SCENARIOS)
    parser.add_argument("--site", default="", help="this one alone")
    parser.add_argument("--how", default="28", help='an errno, or "short"')
    parser.add_argument("--calls", default="0:", metavar="FROM:TO")
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="fragtrace-faults-") as holder:
        for name in [options.only] if options.only else SCENARIOS:
            failures += attack(name, options, holder)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
