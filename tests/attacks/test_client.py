"""Runs one client program on the virtual GPU, without and with the recorder, and compares both runs.

    test_client.py PROGRAM [OPTIONS] [-- ARGUMENT...]

Output, exit code and the files of the program must be equal, byte by byte. Every process of the program that
logged calls must have a trace. The traces contain exactly the logged calls, and fraganalyze reads them.
CMakeLists.txt has the table of the clients and their options.
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import real_process

CARD = "1GiB,count=2,context=16MiB"
LOG_HEADER = struct.Struct("=QQQQ")
LOG_ENTRY = struct.Struct("=QQQQ")
LOG_ENTRIES = 524288
PROGRAMS = os.environ["CLIENT_PROGRAMS"]
KINDS = {1: "device_alloc", 2: "device_free"}
LIBRARIES = "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"

Outcome = collections.namedtuple("Outcome", "code stdout stderr files logged")


class Skip(Exception):
    """The reason why this cannot be tested here."""


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument(
        "--first", action="append", default=[], metavar="LIBRARY", help="preloaded before the recorder"
    )
    parser.add_argument(
        "--then", action="append", default=[], metavar="LIBRARY", help="preloaded behind the recorder"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="in the environment of both runs"
    )
    parser.add_argument(
        "--recorder",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="in the environment of the recorded run",
    )
    parser.add_argument(
        "--within", default="", metavar="PLACE", help="what programs/within.sh makes for both runs"
    )
    parser.add_argument("--ended", default="normal", metavar="A,B", help="how the traces may end")
    parser.add_argument(
        "--lost",
        choices=["nothing", "reentrant", "anything"],
        default="nothing",
        help="events that may be lost, all of them counted",
    )
    parser.add_argument("--no-trace", action="store_true", help="nothing can be recorded there")
    parser.add_argument("--no-virtual-gpu", action="store_true", help="the program brings its own libraries")
    parser.add_argument(
        "--more-traces", action="store_true", help="also processes that logged nothing may leave traces"
    )
    parser.add_argument(
        "--says", default="", metavar="TEXT", help="the recorder says this, and only this, on standard error"
    )
    parser.add_argument(
        "--order-differs", action="store_true", help="threads print in any order: lines are compared sorted"
    )
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    options.arguments = words[end + 1 :]
    options.command = None  # commands other than a client program
    return options


def find_library(name):
    if name.startswith("./"):
        return str(pathlib.Path(PROGRAMS, name))
    for folder in LIBRARIES:
        if os.path.exists(f"{folder}/{name}"):
            return f"{folder}/{name}"
    raise Skip(f"{name} is not installed")


def environment(options, folder, recorded):
    env = real_process.environment(CARD, record_to=folder / "traces" if recorded else None)
    preload = env["LD_PRELOAD"].split(":")
    if options.no_virtual_gpu:
        preload = preload[:1] if recorded else []
    ours = preload[:1] if recorded else []
    others = preload[1:] if recorded else preload
    env["LD_PRELOAD"] = ":".join(
        [*map(find_library, options.first), *ours, *map(find_library, options.then), *others]
    )
    env["CLIENT_LOG"] = str(folder / "log")
    env["CLIENT_FOLDER"] = str(folder)
    for setting in options.set + (options.recorder if recorded else []):
        name, _, value = setting.partition("=")
        env[name] = value.replace("@FOLDER@", str(folder))
    return env


def read_log(path):
    data = path.read_bytes()
    count = LOG_HEADER.unpack_from(data)[0]
    logged = collections.defaultdict(collections.Counter)
    for i in range(count):
        process, kind, address, size = LOG_ENTRY.unpack_from(data, LOG_HEADER.size + i * LOG_ENTRY.size)
        logged[process][KINDS[kind], address, size] += 1
    return logged


def files_below(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name, path.stat().st_mode] = path.read_bytes() if path.is_file() else None
    return found


def run(options, folder, recorded):
    for name in ("work", "traces"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    with open(folder / "log", "wb") as log:
        log.truncate(LOG_HEADER.size + LOG_ENTRIES * LOG_ENTRY.size)
    (folder / "log").chmod(0o666)
    (folder / "notes").write_bytes(b"")
    command = options.command or [f"{PROGRAMS}/{options.program}", *options.arguments]
    if options.within:
        # The script runs without the preload, and passes it to the program at the end.
        env = environment(options, folder, recorded)
        preload = env.pop("LD_PRELOAD")
        script = pathlib.Path(__file__).parent / "programs" / "within.sh"
        command = ["sh", script, options.within, "env", f"LD_PRELOAD={preload}", *command]
    else:
        env = environment(options, folder, recorded)
    done = subprocess.run(
        command,
        cwd=folder / "work",
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
        check=False,
    )
    stdout, stderr = done.stdout, done.stderr
    if options.order_differs:
        stdout, stderr = (b"".join(sorted(text.splitlines(True))) for text in (stdout, stderr))
    return Outcome(done.returncode, stdout, stderr, files_below(folder / "work"), read_log(folder / "log"))


def analyze(*arguments):
    done = real_process.run([real_process.ANALYZER, *arguments])
    if done.returncode != 0:
        raise AssertionError(f"fraganalyze {arguments}: {done.stderr}")
    return done.stdout


def read_trace(trace, events, losses):
    """Adds the trace's allocations, frees and losses. Returns how the process ended."""
    for line in analyze("dump", trace, "--no-stacks").splitlines():
        found = re.search(r" (device_alloc|device_free) address=0x([0-9a-f]+)(?: bytes=(\d+))?", line)
        if found:
            events[found[1], int(found[2], 16), int(found[3] or 0)] += 1
    for line in analyze("dump", "--facts", trace).splitlines():
        name, _, value = line.partition("\t")
        if name.startswith("lost."):
            losses[name[5:]] += int(value)
    page = trace.with_suffix(".html")
    report = analyze(trace, "--no-whatif", "--json", "-", "--html", page)
    assert page.stat().st_size > 100_000, page
    ended = re.search(r'"ended": "(\w+)"', report)
    return ended[1]


def check_traces(options, folder, logged):
    found = sorted((folder / "traces").glob("*.ftrace"))
    if options.no_trace:
        assert not found, f"traces were not expected: {found}"
        return
    by_process = collections.defaultdict(list)
    for trace in found:
        by_process[int(re.search(r"\.(\d+)(\.\d+)?\.ftrace$", trace.name)[1])].append(trace)
    if options.more_traces:
        for process in set(by_process) - set(logged):
            for trace in by_process.pop(process):
                read_trace(trace, collections.Counter(), collections.Counter())
    assert set(by_process) == set(logged), f"processes {set(logged)}, traces {found}"
    for process, calls in logged.items():
        events, losses, ends = collections.Counter(), collections.Counter(), set()
        for trace in by_process[process]:
            ends.add(read_trace(trace, events, losses))
        assert ends <= set(options.ended.split(",")), f"{process} ended {ends}"
        missing, more = calls - events, events - calls
        lost = sum(losses.values())
        print(
            f"process {process}: {calls.total()} calls, {events.total()} events, "
            f"lost {dict(losses)}, ended {ends}"
        )
        assert not more, f"events that the program did not cause: {more}"
        if options.lost != "anything":
            assert missing.total() == lost, f"missing {missing}, lost {dict(losses)}"
        if options.lost == "nothing":
            assert lost == 0, f"lost {dict(losses)}"
        if options.lost == "reentrant":
            assert "reentrant" in losses and not missing - calls, f"lost {dict(losses)}"


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="fragtrace-test-") as holder:
        folder = pathlib.Path(holder)
        folder.chmod(0o755)
        plain = run(options, folder, recorded=False)
        if plain.code == 77:
            raise Skip(plain.stdout.decode(errors="replace").strip())
        assert plain.code == 0, f"without the recorder it fails: {plain.code}\n{plain.stderr.decode()}"
        recorded = run(options, folder, recorded=True)
        print(f"exit code {plain.code}; {sum(map(len, (plain.stdout, plain.stderr)))} bytes of output")
        print(end=(folder / "notes").read_text())
        stderr = recorded.stderr
        if options.lost != "nothing":
            stderr = re.sub(
                rb"fragtrace: (\w+ events were lost|nothing was recorded|no trace yet).*\n", b"", stderr
            )
        if options.says:
            said = [line for line in stderr.splitlines(True) if line.startswith(b"fragtrace: ")]
            assert len(said) == 1 and options.says.encode() in said[0], f"said {said}"
            stderr = stderr.replace(said[0], b"")
        assert recorded.code == plain.code, (
            f"exit code {recorded.code}, not {plain.code}\n{recorded.stderr.decode()}"
        )
        assert recorded.stdout == plain.stdout, (
            f"standard output\n{recorded.stdout.decode()}\nnot\n{plain.stdout.decode()}"
        )
        assert stderr == plain.stderr, f"standard error\n{stderr}\nnot\n{plain.stderr}"
        assert recorded.files == plain.files, f"files {recorded.files} not {plain.files}"
        check_traces(options, folder, recorded.logged)


if __name__ == "__main__":
    try:
        main()
    except Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    except AssertionError as failure:
        sys.exit(f"FAILED: {failure}")
