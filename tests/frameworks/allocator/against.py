"""Runs random scripts through the allocator of an installed PyTorch and the simulated one, and compares.

    against.py [--build DIR] [--scripts N] [--first SEED] PYTHON...

PYTHON are interpreters that have a CUDA build of PyTorch (2.0 or newer); no GPU is needed. For
each, real_allocator.cpp is compiled against the headers in its torch/include, linked with its
libc10_cuda and stub_cuda.cpp, and given the same scripts as simulated_allocator of the build tree.
Events, refusals, failures, the final layout and every statistic must be equal. Differences caused by
errors of the library are counted by kind. Other differences are reduced and printed, and the exit
status is then 1.
"""

import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import re
import subprocess
import sys

import scripts

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
BATCH = 200


class Release:
    """One installed PyTorch: builds the program that drives its allocator."""

    def __init__(self, python, cuda, folder):
        asked = subprocess.run(
            [
                python,
                "-c",
                (
                    "import importlib.util as u, os; "
                    "p = os.path.dirname(u.find_spec('torch').origin); "
                    "v = {}; exec(open(os.path.join(p, 'version.py')).read(), v); "
                    "print(v['__version__']); print(p)"
                ),
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")
        self.version = asked[0].split("+")[0]
        self.torch = pathlib.Path(asked[1])
        numbers = tuple(int(part) for part in self.version.split(".")[:2])
        self.traits = {
            "flags": 3 if numbers >= (2, 10) else 2 if numbers >= (2, 7) else 0,
            "nested": numbers >= (2, 2),
            "capture": numbers >= (2, 13),
            "empty_pool": numbers >= (2, 7),
            "release_while_routed": numbers >= (2, 13),  # an assertion fails in older releases
            "create_while_routed": numbers >= (2, 6),
            "least": 0 if numbers >= (2, 10) else 1,  # sizes must be this many MiB above 20
            "zero_divisions": numbers >= (2, 4),
            "pools_with_expandable": numbers >= (2, 1),
        }
        self.folder = pathlib.Path(folder) / self.version
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program = self.folder / "real_allocator"
        self.build(cuda)
        self.keys = [key for key in scripts.KEYS if self.knows(key)]

    def build(self, cuda):
        lib = self.torch / "lib"
        needed = subprocess.run(
            ["readelf", "-d", lib / "libc10_cuda.so"], capture_output=True, text=True, check=True
        ).stdout
        names = [word.strip("[]") for word in needed.split() if word.startswith("[libcudart")]
        if not names:
            raise SystemExit(
                f"PyTorch {self.version}: libc10_cuda has the CUDA runtime inside; "
                "nothing can be put in its place"
            )
        runtime = self.folder / names[0]
        newest = max(
            path.stat().st_mtime
            for path in (
                *HERE.glob("*.h"),
                HERE / "stub_cuda.cpp",
                HERE / "real_allocator.cpp",
                SOURCE / "analyzer" / "pools" / "address_space.h",
                lib / "libc10_cuda.so",
            )
        )
        if self.program.exists() and self.program.stat().st_mtime > newest:
            return
        symbols = subprocess.run(
            ["nm", "-D", lib / "libc10.so"], capture_output=True, text=True, check=True
        ).stdout
        abi = int("ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_string" in symbols)
        versions = self.folder / "versions.map"
        versions.write_text(f"{names[0]} {{ global: cu*; nvml*; stub_*; local: *; }};\n")
        compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-O1"]
        run(
            [
                *compiler,
                "-fPIC",
                "-shared",
                f"-I{SOURCE}",
                f"-I{SOURCE}/preload/include",
                HERE / "stub_cuda.cpp",
                "-o",
                runtime,
                f"-Wl,-soname,{names[0]}",
                f"-Wl,--version-script,{versions}",
            ]
        )
        others = [self.folder / "libcuda.so.1", self.folder / "libnvidia-ml.so.1"]
        for other in others:  # looked up by these names, but the functions come from the runtime
            run(
                [
                    *compiler,
                    "-shared",
                    "-o",
                    other,
                    f"-Wl,-soname,{other.name}",
                    "-Wl,--no-as-needed",
                    runtime,
                ]
            )
        run(
            [
                *compiler,
                f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
                "-isystem",
                self.torch / "include",
                "-isystem",
                cuda,
                HERE / "real_allocator.cpp",
                "-o",
                self.program,
                "-Wl,--no-as-needed",
                runtime,
                *others,
                lib / "libc10_cuda.so",
                lib / "libc10.so",
                f"-Wl,-rpath,{self.folder}:{lib}",
            ]
        )

    def knows(self, key):
        value = scripts.KEY_VALUES.get(key, "40")
        text = f"script 0\nconfig {key}:{value}\ncard 1073741824 1073741824\naddresses 0 0\nstreams 0\n"
        return "crashed" not in self.play(text)["0"]

    def play(self, text):
        return split(run([self.program], text))


def run(command, text=None):
    done = subprocess.run(
        [str(part) for part in command],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
        timeout=300,
    )
    if done.returncode != 0:
        raise SystemExit(f"{command[0]}: exit status {done.returncode}\n{done.stderr[-3000:]}")
    return done.stdout


def split(output):
    """The lines of each script by kind. Events, refusals and failures keep their order."""
    found = {}
    for block in output.split("script ")[1:]:
        name, _, rest = block.partition("\n")
        found[name] = rest
    return found


def sections(text):
    parts = {}
    for line in text.splitlines():
        word = line.split(" ", 1)[0]
        if word in ("ev", "refused", "failed", "segment", "crashed"):
            parts.setdefault(word, []).append(line)
        else:
            parts[word] = line
    return parts


def same_moment(events):
    """Events with those sorted that become complete in the same check of the streams."""
    runs = itertools.groupby(events, key=lambda event: event.startswith("ev free_completed"))
    return [event for together, run in runs for event in (sorted(run) if together else run)]


def same_release(events):
    """Events with the segments sorted that one release frees."""
    runs = itertools.groupby(
        events, key=lambda event: event.startswith(("ev segment_free", "ev segment_unmap"))
    )
    return [event for together, run in runs for event in (sorted(run) if together else run)]


def is_order_of_streams(real, simulated, name):
    """Whether two values of a statistic can differ because blocks merged in another order."""
    if not name.startswith("inactive_split") or real["ev"] == simulated["ev"]:
        return False
    return real[name].split()[1] == simulated[name].split()[1]  # what there is now


def difference(real, simulated):
    """The first few lines that differ, without differences in the order of visits."""
    real, simulated = sections(real), sections(simulated)
    found = []
    reordered = ""
    for kind in ("crashed", "failed", "refused", "ev", "segment"):
        one, other = real.get(kind, []), simulated.get(kind, [])
        if kind == "segment" and not any(" pool " in line for line in one):  # 2.0 does not report pools
            other = [re.sub(r" pool \d+", "", line) for line in other]
        if kind == "ev" and one != other and same_moment(one) == same_moment(other):
            reordered = "streams"
        elif (
            kind == "ev"
            and one != other
            and same_release(same_moment(one)) == same_release(same_moment(other))
        ):
            reordered = "private pools"
        elif one != other:
            at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
            found.append(f"{kind} {at}: {one[at : at + 1]} but simulated {other[at : at + 1]}")
    for name, line in real.items():
        if (
            isinstance(line, str)
            and simulated.get(name) != line
            and not (reordered and is_order_of_streams(real, simulated, name))
        ):
            found.append(f"{line} but simulated {simulated.get(name)}")
    return found, reordered


def first_broken(events):
    """Index of the first cudaFree of only a part of a segment, or None.

    Settings at run time can make max_split_size smaller than a free block that is already split. The library
    then frees it, and its chain of blocks is broken from there on.
    """
    segments = {}
    for at, event in enumerate(events):
        _, kind, address, size = event.split()
        if kind == "segment_alloc":
            segments[address] = size
        elif kind == "segment_free" and segments.pop(address, None) != size:
            return at
    return None


def is_freed_pool(real, simulated, found):
    """Whether the layouts differ in private pools with expandable segments, and nothing else does.

    The library counts such segments by the calls that map and unmap, which need not be as many, and
    may drop a pool that still holds some: its layout then lacks them, or names a pool that cannot
    be.
    """
    real, simulated = sections(real), sections(simulated)
    if not all(line.startswith("segment ") for line in found) or not any(
        event.startswith("ev segment_map") for event in real.get("ev", [])
    ):
        return False
    defaults = [
        [line for line in side.get("segment", []) if " pool 0 " in line] for side in (real, simulated)
    ]
    return defaults[0] == defaults[1]


def is_dropped_pool(script, events, others):
    """Whether the first difference is memory that the library has lost with such a pool.

    Everything is equal up to there. Then the simulated side unmaps a range that the library no longer knows.
    Some segments' address ranges were mapped in as many calls as unmapped, and that range is one of them,
    though it still exists.
    """
    at = next((i for i, (a, b) in enumerate(zip(events, others)) if a != b), min(len(events), len(others)))
    if (
        at == len(others)
        or not others[at].startswith("ev segment_unmap ")
        or not any(line.startswith("d ") for line in script)
    ):
        return False
    total = next(int(line.split()[1]) for line in script if line.startswith("card "))
    reserved = total + total // 8  # by each segment of the library, one behind the other

    def segment_of(event):
        return (int(event.split()[2], 16) - 0x700000000) // reserved

    balance = collections.Counter()
    for event in events[:at]:
        if event.startswith(("ev segment_map ", "ev segment_unmap ")):
            balance[segment_of(event)] += 1 if event.startswith("ev segment_map ") else -1
    own = segment_of(others[at])
    rest = [balance[segment] for segment in balance if segment != own][:16]
    return balance[own] > 0 and any(
        sum(some) == -balance[own]
        for count in range(1, len(rest) + 1)
        for some in itertools.combinations(rest, count)
    )


class Comparison:
    def __init__(self, simulated, release):
        self.simulated = simulated
        self.release = release

    def simulate(self, text):
        return split(run([self.simulated, self.release.version], text))

    def judge(self, script, real, simulated):
        """The kind of the outcome (None for a difference without an explanation), and the outcome."""
        found, reordered = difference(real, simulated)
        if not found:
            return f"order of {reordered}" if reordered else "equal", found
        events = sections(real).get("ev", [])
        others = sections(simulated).get("ev", [])
        broken = first_broken(events)
        if broken is not None and same_moment(events[:broken]) == same_moment(others[:broken]):
            return "part of a segment freed", found
        if is_dropped_pool(script, events, others):
            return "freed private pool", found
        while events and events[-1].startswith(("ev segment_free", "ev segment_unmap")):
            events.pop()  # in the middle of a release, whose order may differ
        if "\ncrashed" in "\n" + real and same_release(same_moment(events)) == same_release(
            same_moment(others[: len(events)])
        ):
            return "crash of the library", found
        if is_freed_pool(real, simulated, found):
            return "freed private pool", found
        return None, found

    def differs(self, head, lines):
        text = "\n".join([*head, *lines]) + "\n"
        name = head[0].split()[1]
        kind, found = self.judge([*head, *lines], self.release.play(text)[name], self.simulate(text)[name])
        return found if kind is None else []

    def shrink(self, head, lines):
        """Leaves out calls as long as the difference stays."""
        step = len(lines) // 2
        while step > 0:
            at = 0
            while at < len(lines):
                fewer = lines[:at] + lines[at + step :]
                if self.differs(head, fewer):
                    lines = fewer
                else:
                    at += step
            step //= 2
        return lines

    def batch(self, seeds):
        made = {str(seed): scripts.make(seed, self.release.keys, self.release.traits) for seed in seeds}
        texts = {name: "\n".join([*head, *lines]) + "\n" for name, (head, lines) in made.items()}
        whole = "".join(texts.values())
        real, simulated = self.release.play(whole), self.simulate(whole)
        kinds = {}
        unexplained = []
        for name in texts:
            head, lines = made[name]
            kind, found = self.judge([*head, *lines], real[name], simulated[name])
            if kind is None:
                unexplained.append((made[name], found))
            else:
                kinds[kind] = kinds.get(kind, 0) + 1
        return kinds, unexplained


def compare(comparison, first, count, most):
    kinds = {}
    unexplained = []
    seeds = range(first, first + count)
    batches = [seeds[at : at + BATCH] for at in range(0, count, BATCH)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found, others in pool.map(comparison.batch, batches):
            for kind, number in found.items():
                kinds[kind] = kinds.get(kind, 0) + number
            unexplained += others
    for (head, lines), found in unexplained[:most]:
        lines = comparison.shrink(head, lines)
        print(f"-- {comparison.release.version} differs:\n" + "\n".join([*head, *lines]))
        print("   " + "\n   ".join(comparison.differs(head, lines)[:5]), flush=True)
    return kinds, len(unexplained)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=SOURCE / "build", type=pathlib.Path, help="build tree")
    parser.add_argument("--scripts", type=int, default=20000, help="per release")
    parser.add_argument("--first", type=int, default=1, help="seed of the first script")
    parser.add_argument("--reduce", type=int, default=3, help="how many different ones to reduce")
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    options = parser.parse_args()
    folder = options.build.resolve() / "allocator"
    cuda = (folder / "cuda_include.txt").read_text(encoding="utf-8")
    simulated = options.build.resolve() / "bin" / "simulated_allocator"
    different = 0
    print(
        "| PyTorch | scripts | equal | of these in another order | explained | unexplained |\n"
        "| --- | --- | --- | --- | --- | --- |",
        flush=True,
    )
    for python in options.pythons:
        release = Release(python, cuda, folder)
        kinds, others = compare(
            Comparison(simulated, release), options.first, options.scripts, options.reduce
        )
        different += others
        orders = {kind: number for kind, number in kinds.items() if kind.startswith("order of ")}
        equal = kinds.pop("equal", 0) + sum(orders.values())
        rest = {kind: number for kind, number in kinds.items() if kind not in orders}
        print(
            f"| {release.version} | {options.scripts} | {equal} | {counted(orders)} | "
            f"{counted(rest)} | {others} unexplained |",
            flush=True,
        )
    return 1 if different else 0


def counted(kinds):
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) or "none"


if __name__ == "__main__":
    sys.exit(main())
