"""Random scripts for the caching allocator, in the language of script.h."""

import random

MIB = 2**20

# The cards of scripts: on 16 GiB memory would never run out.
CARDS = [64, 128, 200, 256, 512, 1024, 4096]
EDGES = [
    1,
    511,
    512,
    513,
    MIB - 1,
    MIB,
    MIB + 1,
    2 * MIB,
    10 * MIB - 1,
    10 * MIB,
    10 * MIB + 1,
    20 * MIB,
    20 * MIB - 512,
    19 * MIB,
    21 * MIB,
    22 * MIB - 511,
    40 * MIB,
]
ROUNDUPS = [
    "1",
    "2",
    "4",
    "8",
    "16",
    "[1:2,8:4,32:8,>:2]",
    "[256:1,512:2,1024:4,>:8]",
    "[4:8,>:4]",
    "[>:4]",
    "[2:0,16:8,64:1]",
]


def settings(rng, keys, traits, initial, least=20):
    """One value of PYTORCH_CUDA_ALLOC_CONF from the keys that a release knows.

    Also returns the MiB of large segments, which other keys must not be below.
    """
    found = []

    def maybe(key, probability, value):
        if key in keys and rng.random() < probability:
            found.append(f"{key}:{value()}")
            return True
        return False

    if "large_segment_size_mb" in keys and rng.random() < 0.15:
        least = rng.choice([11, 12, 20, 32, 48, 64])
        found.append(f"large_segment_size_mb:{least}")
    maybe("expandable_segments", 0.4, lambda: rng.choice(["True", "True", "False"]))
    maybe("max_split_size_mb", 0.3, lambda: least + rng.choice([traits["least"], 1, 4, 10, 20, 44, 180]))
    maybe("max_non_split_rounding_mb", 0.15, lambda: least + rng.choice([traits["least"], 5, 30, 100]))
    maybe("garbage_collection_threshold", 0.25, lambda: rng.choice([0.1, 0.3, 0.5, 0.8, 0.95]))
    maybe(
        "roundup_power2_divisions",
        0.2,
        lambda: rng.choice(ROUNDUPS[:-1] if not traits["zero_divisions"] else ROUNDUPS),
    )
    maybe("throw_on_cudamalloc_oom", 0.08, lambda: rng.choice(["True", "False"]))
    maybe(
        "expandable_segments_reserve", 0.1, lambda: rng.choice(["0.25", "0.5", "1.0", "2.0", "0.1G", "0.5G"])
    )
    maybe("release_lock_on_cudamalloc", 0.05, lambda: "True")
    maybe(
        "per_process_memory_fraction", 0.3 if initial else 0.1, lambda: rng.choice([0.3, 0.6, 0.8, 0.9, 1.0])
    )
    rng.shuffle(found)
    return ",".join(found), least


KEYS = [
    "large_segment_size_mb",
    "expandable_segments",
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "throw_on_cudamalloc_oom",
    "expandable_segments_reserve",
    "release_lock_on_cudamalloc",
    "per_process_memory_fraction",
]
KEY_VALUES = {
    "expandable_segments": "False",
    "roundup_power2_divisions": "4",
    "garbage_collection_threshold": "0.5",
    "throw_on_cudamalloc_oom": "True",
    "expandable_segments_reserve": "0.5",
    "release_lock_on_cudamalloc": "True",
    "per_process_memory_fraction": "0.5",
}


class Script:
    def __init__(self, seed, keys, traits):
        self.rng = rng = random.Random(f"{seed}")
        self.keys = keys
        self.traits = traits
        card = rng.choice(CARDS) * MIB
        self.card = card
        capacity = card if rng.random() < 0.5 else card - rng.randrange(0, card // 3)
        streams = [0] + [0x55550000 + 0x100 * i for i in range(rng.choice([0, 0, 1, 1, 2]))]
        self.streams = len(streams)
        self.records = self.streams > 1 and rng.random() < 0.7
        self.pools = {}
        self.next_pool = 1
        self.with_pools = rng.random() < 0.35
        self.routes = []
        self.capturing = False
        self.live = []
        self.next_id = 1
        config, self.least = settings(rng, keys, traits, True)
        if not traits["pools_with_expandable"] and "expandable_segments:True" in config:
            self.with_pools = False
        order, order_seed = rng.choice([(0, 0), (0, 0), (1, 0), (2, seed)])
        self.head = [
            f"script {seed}",
            f"config {config}",
            f"card {card} {capacity}",
            f"addresses {order} {order_seed}",
            "streams " + " ".join(str(handle) for handle in streams),
        ]
        self.changes = rng.random() < 0.3
        self.lines = []

    def size(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.30:
            return rng.randint(1, 64 * 1024)
        if kind < 0.50:
            return rng.randint(64 * 1024, 2 * MIB)
        if kind < 0.65:
            return rng.choice(EDGES)
        if kind < 0.92:
            return rng.randint(MIB, 24 * MIB)
        if kind < 0.995:
            return rng.randint(MIB, self.card // 3)
        return rng.choice([0, self.card, 2 * self.card, 2**60])

    def free(self):
        at = self.rng.randrange(len(self.live))
        block, _ = self.live[at]
        self.live[at] = self.live[-1]
        self.live.pop()
        if self.records and self.rng.random() < 0.35:
            for other in self.rng.sample(range(self.streams), self.rng.randint(1, self.streams)):
                self.lines.append(f"r {block} {other}")
        self.lines.append(f"f {block}")

    def allocate(self):
        stream = self.rng.randrange(self.streams)
        self.lines.append(f"a {self.next_id} {self.size()} {stream}")
        self.live.append((self.next_id, stream))
        self.next_id += 1

    def pool_call(self):
        rng = self.rng
        kind = rng.random()
        if self.routes and kind < 0.55:
            self.lines.append(f"n {self.routes.pop()}")
        elif self.pools and kind < 0.85 and (not self.routes or self.traits["nested"]):
            number = rng.choice(sorted(self.pools))
            if number not in self.routes:
                self.routes.append(number)
                self.lines.append(f"b {number}")
        elif self.pools and kind < 0.92:
            number = rng.choice(sorted(self.pools))
            # An OOM after a use_on_oom pool is gone fails an assertion, so this is rare.
            if number not in self.routes and (self.pools[number] & 2 == 0 or rng.random() < 0.1):
                del self.pools[number]
                self.lines.append(f"d {number}")
                # Not with cross-stream frees: those deferred by a capture complete with it.
                if (
                    self.traits["empty_pool"]
                    and not self.records
                    and self.may_release()
                    and not self.capturing
                ):
                    self.lines.append(f"E {number}")
        elif len(self.pools) < 3 and (not self.routes or self.traits["create_while_routed"]):
            flags = rng.choice([0, 0, 1, 2, 3]) & self.traits["flags"]
            if any(other & 2 for other in self.pools.values()):
                flags &= 1  # the first of several such pools depends on the order of a hash table
            self.pools[self.next_pool] = flags
            self.lines.append(f"p {self.next_pool} {flags}")
            self.next_pool += 1

    def may_release(self):
        return not self.routes or self.traits["release_while_routed"]

    def other_call(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.45 and not self.capturing and self.may_release():
            self.lines.append("e")
        elif kind < 0.60:
            self.lines.append(f"m {rng.choice([0.3, 0.5, 0.7, 0.9, 1.0])}")
        elif kind < 0.80 and self.changes:
            text, self.least = settings(rng, self.keys, self.traits, False, self.least)
            expands = "expandable_segments:True" in text
            if text and not (expands and self.next_pool > 1 and not self.traits["pools_with_expandable"]):
                if expands and not self.traits["pools_with_expandable"]:
                    self.with_pools = False
                self.lines.append(f"s {text}")
        elif self.traits["capture"]:
            self.capturing = not self.capturing
            self.lines.append(f"c {int(self.capturing)}")

    def make(self):
        rng = self.rng
        for _ in range(rng.randint(60, 400)):
            kind = rng.random()
            if kind < 0.035:
                self.other_call()
            elif kind < 0.09 and self.with_pools:
                self.pool_call()
            elif kind < 0.15 and self.records:
                self.lines.append(f"w {rng.randrange(self.streams)} {rng.choice([0, 0, 1, 2])}")
            elif self.live and (kind < 0.53 or len(self.live) > 150):
                self.free()
            else:
                self.allocate()
        return self.head, self.lines


def make(seed, keys, traits):
    """The head and the calls of one script. Equal arguments give equal scripts."""
    return Script(seed, keys, traits).make()
