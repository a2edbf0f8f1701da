"""The calls of a random program (random_program.py), drawn from its seed before the first call.

Neither the card nor the settings change the requests of a program, except that a caught out-of-memory leaves
a tensor out.
"""

import random

MIB = 2**20

# Features that a program may use in addition to tensors on one stream, with their probability.
FEATURES = {
    "streams": 0.6,
    "record_stream": 0.6,  # for programs with several streams
    "threads": 0.3,
    "mem_pool": 0.35,
    "no_split": 0.4,  # for programs with MemPools
    "use_on_oom": 0.4,  # for programs with MemPools
    "graphs": 0.4,
    "shared_graph_pool": 0.5,  # of programs with graphs
    "graph_pool_handle": 0.4,  # of programs with graphs
    "oom_in_capture": 0.3,  # for programs with graphs
    "other_pool_in_capture": 0.3,  # for programs with graphs
    "fraction": 0.25,
    "any_fraction": 0.5,  # for programs with fractions: also values that a double cannot represent exactly
    "empty_cache": 0.6,
    "raw_block": 0.3,
    "raw_malloc": 0.25,
    "resize": 0.3,
    "fork": 0.15,
    "caught": 0.4,
    "huge": 0.15,
    "settings": 0.25,
    "throw": 0.3,  # for programs that change settings
    "expand_later": 0.4,  # for programs that change settings
    "caching_off": 0.2,
    "pinned": 0.2,
    "memory_info": 0.05,
}
NEEDS = {
    "record_stream": "streams",
    "no_split": "mem_pool",
    "use_on_oom": "mem_pool",
    "shared_graph_pool": "graphs",
    "graph_pool_handle": "graphs",
    "oom_in_capture": "graphs",
    "other_pool_in_capture": "graphs",
    "any_fraction": "fraction",
    "throw": "settings",
    "expand_later": "settings",
}
EDGES = (
    1,
    512,
    513,
    MIB - 1,
    MIB,
    MIB + 1,
    2 * MIB,
    10 * MIB - 1,
    10 * MIB,
    10 * MIB + 1,
    20 * MIB - 512,
    20 * MIB,
    20 * MIB + 1,
    21 * MIB,
    40 * MIB,
)
# Sizes that are also allowed together with large_segment_size_mb:64.
CHANGES = (
    "max_split_size_mb:64",
    "max_split_size_mb:66,garbage_collection_threshold:0.6",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,4:4,16:2,>:1]",
    "garbage_collection_threshold:0.5",
    "max_split_size_mb:70,roundup_power2_divisions:8",
    "max_non_split_rounding_mb:66,max_split_size_mb:80",
)


class Plan:
    """The calls of a program: each one names a method of Program and its arguments."""

    def __init__(self, seed, features):
        self.choice = choice = random.Random(f"program {seed}")
        # Drawn for every feature, so that a left-out feature does not change other draws.
        drawn = {name: choice.random() < chance for name, chance in FEATURES.items()}
        self.has = {name for name in FEATURES if drawn[name] and name in features}
        self.has = {name for name in self.has if NEEDS.get(name, name) in self.has}
        # If caching was switched in between, PyTorch frees pool memory as driver memory or the other way
        # round.
        if "caching_off" in self.has:
            self.has.discard("raw_block")
        self.streams = choice.randint(2, 3) if "streams" in self.has else 1
        self.pools = choice.randint(1, 2) if "mem_pool" in self.has else 0
        self.kept = choice.choice((6, 12, 25, 50))
        self.largest = choice.choice((8, 30, 30, 80)) * MIB
        self.live, self.graphs, self.next = [], [], 0
        self.droppable = []  # of the graphs
        self.calls = []
        kinds = self.kinds()
        # Settings before the first request would be replaced by those of a replay.
        self.tensor(self.calls)
        for _ in range(choice.choice((40, 100, 200, 300))):
            getattr(self, choice.choices(list(kinds), list(kinds.values()))[0])(self.calls)
            while len(self.live) > self.kept:
                self.free(self.calls)

    def kinds(self):
        rare = {
            "graphs": "capture",
            "empty_cache": "empty_cache",
            "fraction": "fraction",
            "fork": "fork",
            "settings": "settings",
            "caching_off": "caching",
            "memory_info": "memory_info",
            "huge": "huge",
        }
        common = {
            "threads": "free_elsewhere",
            "raw_block": "raw_block",
            "raw_malloc": "raw_malloc",
            "resize": "resize",
            "pinned": "pinned",
        }
        found = {"tensor": 40, "free": 30, "synchronize": 1}
        found.update({call: 2 for name, call in rare.items() if name in self.has})
        found.update({call: 5 for name, call in common.items() if name in self.has})
        if "record_stream" in self.has:
            found["record"] = 15
        if self.pools:
            found["drop_pool"] = 0.3
        if "graphs" in self.has:
            found["replay"] = found["drop_graph"] = 1
        return found

    def size(self):
        choice = self.choice
        kind = choice.random()
        if kind < 0.25:
            return choice.randint(1, 64 * 1024)
        if kind < 0.45:
            return choice.randint(64 * 1024, 2 * MIB)
        if kind < 0.6:
            return choice.choice(EDGES)
        return choice.randint(MIB, self.largest)

    def new(self):
        self.next += 1
        self.live.append(self.next)
        return self.next

    def any_live(self):
        return self.choice.choice(self.live) if self.live else 0

    def tensor(self, calls):
        pool = self.choice.randrange(-self.pools, self.pools) if self.pools else -1
        calls.append(("tensor", self.new(), self.size(), self.choice.randrange(self.streams), pool))

    def free(self, calls, call="free"):
        if self.live:
            calls.append((call, self.live.pop(self.choice.randrange(len(self.live)))))

    def free_elsewhere(self, calls):
        self.free(calls, "free_elsewhere")

    def record(self, calls):
        calls.append(("record", self.any_live(), self.choice.randrange(self.streams)))

    def resize(self, calls):
        calls.append(("resize", self.any_live(), self.size(), self.choice.random() < 0.5))

    def raw_block(self, calls):
        calls.append(("raw_block", self.new(), self.size(), self.choice.randrange(self.streams)))

    def raw_malloc(self, calls):
        # Whole pages, because smaller requests share the driver's pages.
        calls.append(("raw_malloc", self.new(), self.choice.randint(1, 20) * 2 * MIB))

    def pinned(self, calls):
        calls.append(("pinned", self.new(), self.choice.randint(1, 4 * MIB)))

    def huge(self, calls):
        calls.append(
            (
                "tensor",
                self.new(),
                self.choice.choice((1, 40, 40)) * 2**30,
                self.choice.randrange(self.streams),
                -1,
            )
        )

    def fraction(self, calls):
        exact = self.choice.choice((0.5, 0.625, 0.75, 0.875, 1.0))
        rounded = self.choice.choice((0.4, 0.6, 0.7, 0.9, 0.95))
        calls.append(("fraction", rounded if "any_fraction" in self.has else exact))

    def settings(self, calls):
        text = self.choice.choice(CHANGES)
        if "throw" in self.has and self.choice.random() < 0.3:
            text += f",throw_on_cudamalloc_oom:{self.choice.choice((True, False))}"
        if "expand_later" in self.has and self.choice.random() < 0.5:
            text = f"expandable_segments:{self.choice.choice((True, False))}"
        calls.append(("settings", text))

    def caching(self, calls):
        calls.append(("caching", self.choice.random() < 0.6))

    def empty_cache(self, calls):
        calls.append(("empty_cache",))

    def synchronize(self, calls):
        calls.append(("synchronize",))

    def memory_info(self, calls):
        calls.append(("memory_info",))

    def fork(self, calls):
        calls.append(("fork",))

    def drop_pool(self, calls):
        calls.append(("drop_pool", self.choice.randrange(self.pools)))

    def replay(self, calls):
        if self.graphs:
            calls.append(("replay", self.choice.choice(self.graphs)))

    def drop_graph(self, calls):
        if self.droppable:
            graph = self.droppable.pop(self.choice.randrange(len(self.droppable)))
            self.graphs.remove(graph)
            calls.append(("drop_graph", graph))

    def capture(self, calls):
        """A graph: tensors are allocated and freed during its capture. Some may live on."""
        choice, outside = self.choice, self.live
        self.live, inside = [], []
        for _ in range(choice.randint(1, 25)):
            kind = choice.random()
            if kind < 0.6:
                inside.append(("tensor", self.new(), self.size(), None, -1))
            elif kind < 0.9:
                self.free(inside)
            elif kind < 0.94 and "oom_in_capture" in self.has:
                inside.append(("tensor", self.new(), choice.choice((1, 40)) * 2**30, None, -1))
            elif "other_pool_in_capture" in self.has:
                if self.pools and choice.random() < 0.5:
                    inside.append(("tensor", self.new(), self.size(), None, choice.randrange(self.pools)))
                else:
                    block = ("raw_block", self.new(), self.size(), choice.randrange(self.streams))
                    if "caching_off" not in self.has:
                        inside.append(block)
        self.next += 1
        pools = ["own"]
        if "shared_graph_pool" in self.has and self.graphs:
            pools.append(choice.choice(self.graphs))
        if "graph_pool_handle" in self.has:
            pools.append("handle")
        pool = choice.choice(pools)
        calls.append(("capture", self.next, pool, choice.randrange(self.streams), tuple(inside)))
        self.graphs.append(self.next)
        # PyTorch refuses a capture into a handle's pool that has lost its last user.
        if pool != "handle":
            self.droppable.append(self.next)
        self.live = outside + self.live
