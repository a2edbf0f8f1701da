"""Random scripts through PyTorch's own caching allocator and through the simulated one.

    python pool_against_torch.py RUNNER SCRIPTS [FIRST_SEED]

Needs an interpreter with PyTorch on the virtual GPU. Each script runs in a forked process of its
own; then RUNNER (pool_script.cpp) gets the same calls. Failures, every statistic and the layout of
every segment have to be equal. Prints one line per difference; the exit status is 1 if there is any.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

import torch

MIB = 2**20

CONFIGS = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:24",
    "max_split_size_mb:40,max_non_split_rounding_mb:30",
    "garbage_collection_threshold:0.5,per_process_memory_fraction:0.8",
    "garbage_collection_threshold:0.3,per_process_memory_fraction:0.9,max_split_size_mb:30",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:2,8:4,32:8,>:2],expandable_segments:True",
    "per_process_memory_fraction:0.6,expandable_segments:True",
    "large_segment_size_mb:48",
    "large_segment_size_mb:12,expandable_segments:True",
    "throw_on_cudamalloc_oom:True",
    "expandable_segments:True,max_split_size_mb:30,garbage_collection_threshold:0.4,"
    "per_process_memory_fraction:0.7",
]


def random_bytes(rng, card):
    kind = rng.random()
    if kind < 0.35:
        return rng.randint(1, 64 * 1024)
    if kind < 0.55:
        return rng.randint(64 * 1024, 2 * MIB)
    if kind < 0.65:
        return rng.choice([512, 513, MIB, MIB + 1, 2 * MIB, 10 * MIB - 1, 10 * MIB, 20 * MIB])
    if kind < 0.9:
        return rng.randint(MIB, 24 * MIB)
    return rng.randint(MIB, card // 3)


class Script:
    """Makes calls at random, executes them in PyTorch and writes them down."""

    def __init__(self, rng, config, card):
        self.rng = rng
        self.card = card
        # PyTorch 2.15 counts the segments of private pools wrongly here, and may fail an assertion.
        self.expandable = "expandable_segments:True" in config
        self.lines = [f"config {config}", f"card {card}"]
        torch._C._accelerator_setAllocatorSettings(config)
        self.streams = [torch.cuda.default_stream()]
        self.streams += [torch.cuda.Stream() for _ in range(rng.choice([0, 0, 1, 2]))]
        self.lines.append("streams " + " ".join(str(s.cuda_stream) for s in self.streams))
        self.records = len(self.streams) > 1 and rng.random() < 0.6
        self.pools = {}
        self.dropped = set()
        self.with_pools = rng.random() < 0.3
        self.live = {}
        self.failed = []
        self.next_id = 1

    def allocate(self):
        size = random_bytes(self.rng, self.card)
        stream = self.rng.randrange(len(self.streams))
        number = 0
        if self.with_pools and self.rng.random() < 0.3:
            number = self.rng.choice([n for n in (1, 2, 3) if n not in self.dropped] or [0])
        block = self.next_id
        self.next_id += 1
        self.lines.append(f"a {block} {size} {stream} {number}")
        try:
            with torch.cuda.stream(self.streams[stream]):
                if number:
                    if number not in self.pools:
                        self.pools[number] = torch.cuda.MemPool()
                    with torch.cuda.use_mem_pool(self.pools[number]):
                        tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
                else:
                    tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
            self.live[block] = (tensor, stream)
        except torch.OutOfMemoryError:
            self.failed.append(block)

    def free(self):
        block = self.rng.choice(list(self.live))
        tensor, stream = self.live.pop(block)
        line = f"f {block}"
        if self.records and self.rng.random() < 0.3:
            others = [i for i in range(len(self.streams)) if i != stream]
            for other in self.rng.sample(others, self.rng.randint(1, len(others))):
                tensor.record_stream(self.streams[other])
                line += f" {other}"
        self.lines.append(line)

    def drop_pool(self):
        number = self.rng.choice(list(self.pools))
        del self.pools[number]
        self.dropped.add(number)
        self.lines.append(f"d {number}")

    def run(self, calls):
        for _ in range(calls):
            kind = self.rng.random()
            if kind < 0.012:
                torch.cuda.empty_cache()
                self.lines.append("e")
            elif kind < 0.016:
                fraction = self.rng.choice([0.5, 0.7, 0.9, 1.0])
                torch.cuda.set_per_process_memory_fraction(fraction)
                self.lines.append(f"m {fraction}")
            elif kind < 0.024 and self.pools and not self.expandable:
                self.drop_pool()
            elif self.live and (kind < 0.48 or len(self.live) > 150):
                self.free()
            else:
                self.allocate()

    def layout(self):
        names = {tensor.data_ptr(): block for block, (tensor, _) in self.live.items()}
        segments = []
        for segment in torch.cuda.memory_snapshot():
            blocks = []
            for block in segment["blocks"]:
                live = block["state"] == "active_allocated"
                blocks.append([names[block["address"]] if live else -1, block["size"],
                               block["requested_size"] if live else 0])
            segments.append(blocks)
        return sorted(segments)

    def result(self):
        statistics = torch.cuda.memory_stats()
        return {"failed": self.failed, "statistics": statistics, "layout": self.layout()}


def run_in_torch(seed, config, path):
    rng = random.Random(f"{seed} {config}")
    card = rng.choice([128, 200, 256, 512, 1024, 4096]) * MIB
    os.environ["FRAGTRACE_VIRTUAL_GPU"] = f"{card},context=0"
    script = Script(rng, config, card)
    script.run(rng.randint(60, 600))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"lines": script.lines, "result": script.result(),
                   "records": script.records}, file)
    os._exit(0)  # before the destructors of the pools, see above


def differences(recorded, simulated):
    real = recorded["result"]
    found = []
    for kind in ("failed", "layout"):
        if real[kind] != simulated[kind]:
            found.append(f"{kind}: {str(real[kind])[:300]} but simulated {str(simulated[kind])[:300]}")
    for name, value in simulated["statistics"].items():
        # Events of several streams seen at once are processed in the order of a hash table: merges
        # happen in another order, which only these three see.
        if recorded["records"] and name.startswith("inactive_split") \
                and not name.endswith(".current"):
            continue
        if real["statistics"].get(name) != value:
            found.append(f"{name}: {real['statistics'].get(name)} but simulated {value}")
    return found


def compare(runner, seed, config, folder):
    path = os.path.join(folder, "script.json")
    child = os.fork()
    if child == 0:
        try:
            run_in_torch(seed, config, path)
        except BaseException as error:  # the child must not return into the loop
            print(f"seed {seed} '{config}': {type(error).__name__}: {error}", flush=True)
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        return None, ["the script did not run in PyTorch"]
    with open(path, encoding="utf-8") as file:
        recorded = json.load(file)
    text = "\n".join(recorded["lines"])
    done = subprocess.run([runner], input=text, capture_output=True, text=True, check=True,
                          env={})
    return text, differences(recorded, json.loads(done.stdout))


def main():
    runner, scripts = sys.argv[1], int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(scripts):
            seed, config = first + i, CONFIGS[i % len(CONFIGS)]
            text, found = compare(runner, seed, config, folder)
            if found:
                different += 1
                print(f"seed {seed} '{config}': " + "\n    ".join(found[:12]), flush=True)
                if text is not None and os.environ.get("POOL_SCRIPT_KEEP"):
                    with open(f"{os.environ['POOL_SCRIPT_KEEP']}.{seed}", "w",
                              encoding="utf-8") as file:
                        file.write(text)
    print(f"{scripts} scripts, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
