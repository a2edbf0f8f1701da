"""Small PyTorch programs: the trace is compared with PyTorch's own account of its allocator."""

import json
import pathlib
import re

import real_process
from real_process import TORCH_PYTHON, environment
from torch_process import TorchTest

PROGRAMS = pathlib.Path(__file__).with_name("programs")
PLUGGABLE = real_process.BUILD / "lib" / "libplain_allocator.so"
CARD = "1GiB"


class Event(dict):
    """One line of `fraganalyze dump`: its kind, and its columns by name."""

    def __init__(self, line):
        words = line.split()
        super().__init__(word.split("=", 1) for word in words[4:] if "=" in word)
        self.device, self.kind, self.words = words[2], words[3], words[4:]

    def number(self, name):
        return int(self[name], 0)

    @property
    def pool(self):
        """The numbers (A, B) of PyTorch's pool id. (0, 0) is the default pool."""
        found = re.search(r"\bpool=\d+\(pytorch (\d+),(\d+)\)", " ".join(self.words))
        return [int(found[1]), int(found[2])] if found else [0, 0]


class ProgramTest(TorchTest):
    python = TORCH_PYTHON

    def run_program(self, name, *arguments, **variables):
        """Runs a program. Returns its output, and the events and facts of its trace."""
        env = environment(CARD, record_to=self.folder, FRAGTRACE_COMPRESSION=0, **variables)
        done = real_process.run([self.python, "-W", "ignore", PROGRAMS / f"{name}.py", *arguments], env=env)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.trace = self.only_trace()
        said = json.loads(done.stdout.splitlines()[-1])
        return said, [Event(line) for line in self.events(self.trace)], self.facts()

    def facts(self):
        done = real_process.run([real_process.ANALYZER, "dump", "--facts", self.trace])
        return dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)

    def live_blocks(self, events):
        """The live blocks at the end of the trace: their allocation events, by address."""
        live = {}
        for event in events:
            if event.kind == "block_alloc":
                live[event.number("address")] = event
            elif event.kind == "block_free":
                freed = live.pop(event.number("address"))
                self.assertEqual(event.pool, freed.pool)
            elif event.kind == "pool_rewind":
                live = {address: block for address, block in live.items() if block.pool != event.pool}
        return live

    def assert_blocks_agree(self, said, events):
        """Live blocks, their sizes and the pools of their segments equal PyTorch's account."""
        live = self.live_blocks(events)
        expected = {}
        for segment in said["segments"]:
            for address, size, requested in segment["live"]:
                expected[address] = (size, segment["pool"])
                if live[address]["requested"] != "unknown":
                    self.assertEqual(live[address].number("requested"), requested)
        self.assertEqual(
            {address: (event.number("bytes"), event.pool) for address, event in live.items()}, expected
        )
        self.assert_replayed_exactly()

    def assert_replayed_exactly(self):
        report = self.report(self.trace)
        fidelity = report["fidelity"]
        self.assertGreater(fidelity["placements"], 0)
        self.assertEqual(fidelity["placements_equal"], fidelity["placements"], fidelity)
        self.assertEqual(fidelity["segments_equal"], fidelity["segments"], fidelity)
        self.assertEqual(report["devices"][0]["violations"], 0)

    def assert_pools_are_constant(self, events):
        """All blocks of a segment belong to one pool as long as the segment lives."""
        segments = {}
        for event in events:
            if event.kind == "device_alloc":
                segments[event.number("address")] = [event.number("bytes"), None]
            elif event.kind == "device_free":
                segments.pop(event.number("address"), None)
            elif event.kind == "block_alloc":
                base = max(start for start in segments if start <= event.number("address"))
                segment = segments[base]
                self.assertLess(event.number("address"), base + segment[0])
                segment[1] = segment[1] or event.pool
                self.assertEqual(segment[1], event.pool)

    def uses(self, events, pool):
        """The kinds of events about a pool's users, in order."""
        return [
            event.words[0] if event.kind == "pool_use" else "release"
            for event in events
            if event.kind in ("pool_use", "pool_release") and event.pool == pool
        ]


class Programs(ProgramTest):
    # ---- pools ----------------------------------------------------------------------------------

    def check_pools(self, program):
        said, events, facts = self.run_program(program)
        self.assertEqual(facts["torch.vtable"], "verified")
        self.assertEqual(facts["torch.pools"], "recorded")
        self.assert_blocks_agree(said, events)
        self.assert_pools_are_constant(events)
        for pool in said["pools"]:
            self.assertIn(pool, [event.pool for event in events if event.kind == "block_alloc"])
        return said, events

    def test_blocks_of_mem_pools_name_their_pool(self):
        said, events = self.check_pools("mem_pool")
        first, second = said["pools"]
        counted = [
            2 * self.uses(events, pool).count("begin") - len(self.uses(events, pool))
            for pool in (first, second)
        ]
        self.assertEqual(self.uses(events, first)[-1], "release")
        self.assertNotIn("release", self.uses(events, second))
        if said["use_counts"]:
            self.assertEqual(counted[1], said["use_counts"][1])
        self.assertIn([0, 0], [event.pool for event in events if event.kind == "empty_cache"])

    def test_users_of_more_pools_than_there_is_room_for_are_said_to_be_incomplete(self):
        said, events, facts = self.run_program("many_pools")
        why = "incomplete: not all users of private pools are known"
        self.assertEqual(facts["torch.pools"], why)
        self.assert_blocks_agree(said, events)  # of such pools, too
        text = self.run_well([real_process.ANALYZER, self.trace, "--no-whatif"]).stdout
        self.assertIn(f"  - PyTorch's private pools are {why}\n", text)

    def test_blocks_of_captured_graphs_name_their_pool(self):
        said, events = self.check_pools("captured_graph")
        self.assertEqual(self.uses(events, said["pools"][0]).count("begin"), 2)
        # The program ends at its peak, so the report's figures are those of PyTorch's snapshot.
        ours = [segment for segment in said["segments"] if segment["pool"] == said["pools"][0]]
        (pool,) = self.report(self.trace)["devices"][0]["holders"]["private_pools"]
        self.assertTrue(pool["of_graph"])
        self.assertEqual(pool["reserved_bytes"], sum(segment["bytes"] for segment in ours))
        self.assertEqual(
            pool["allocated_bytes"], sum(size for segment in ours for _, size, _ in segment["live"])
        )
        self.assertRegex(pool["line"], r"captured_graph\.py:1[0-9]")

    def test_a_pool_chosen_by_one_thread_does_not_affect_another_thread(self):
        self.check_pools("two_threads")

    def test_a_pool_set_back_to_a_checkpoint_announces_its_live_blocks(self):
        said, events, _ = self.run_program("rewound_pool")
        self.assertEqual([event.pool for event in events if event.kind == "pool_rewind"], said["pools"])
        self.assert_blocks_agree(said, events)
        self.assert_pools_are_constant(events)

    def check_graph_trees(self, how):
        (self.folder / "libcuda.so").symlink_to(real_process.VIRTUAL_GPU / "libcuda.so.1")
        said, events, _ = self.run_program(
            "graph_trees",
            how,
            LIBRARY_PATH=self.folder,  # triton's compiler finds -lcuda there
            TORCHINDUCTOR_COMPILE_THREADS=1,  # in this process
            TORCHINDUCTOR_CACHE_DIR=self.folder / "inductor",
            TRITON_CACHE_DIR=self.folder / "triton",
        )
        self.assert_blocks_agree(said, events)
        self.assert_pools_are_constant(events)
        rewinds = [event for event in events if event.kind == "pool_rewind"]
        self.assertGreater(len(rewinds), 2)
        self.assertTrue(
            any(segment["live"] for segment in said["segments"] if segment["pool"] == rewinds[-1].pool)
        )
        stated = [line for line in self.report(self.trace)["assumptions"] if "reset to a checkpoint" in line]
        self.assertEqual(len(stated), 1)
        self.assertIn(f"reset to a checkpoint {len(rewinds)} times", stated[0])

    def test_graph_trees_without_compiled_kernels_agree_with_pytorch(self):
        self.check_graph_trees("cudagraphs")

    def test_graph_trees_of_torch_compile_agree_with_pytorch(self):
        self.check_graph_trees("reduce-overhead")

    def test_frees_within_a_capture_wait_for_its_end(self):
        _, events = self.check_pools("captured_streams")
        deferred = {
            event["event"]: position
            for position, event in enumerate(events)
            if event.kind == "pending_event" and event["event"].startswith("deferred:")
        }
        complete = {
            event["event"]: position
            for position, event in enumerate(events)
            if event.kind == "event_complete"
        }
        self.assertGreater(len(deferred), 60)  # three captures, and two streams of some blocks
        for name, position in deferred.items():
            self.assertLess(position, complete[name])

    # ---- settings, failures ---------------------------------------------------------------------

    def test_pending_frees_of_two_streams_agree_with_pytorch(self):
        said, events, _ = self.run_program("two_streams")
        self.assert_blocks_agree(said, events)
        pending = [event for event in events if event.kind == "pending_event"]
        self.assertGreater(len(pending), 10)
        self.assertGreater(len({event["stream"] for event in events if event.kind == "block_alloc"}), 2)

    def test_twenty_thousand_pending_frees_are_all_completed(self):
        said, events, _ = self.run_program("many_pending")
        self.assert_blocks_agree(said, events)
        kinds = [event.kind for event in events]
        self.assertEqual(kinds.count("pending_event"), 40000)
        self.assertEqual(kinds.count("event_complete"), 40000)

    def test_streams_of_a_block_beyond_32_are_counted_as_lost_and_the_report_says_so(self):
        said, events, facts = self.run_program("many_streams")
        self.assertEqual(said["streams"], 40)
        self.assertEqual(len([event for event in events if event.kind == "pending_event"]), 32)
        self.assertEqual(facts["lost.completions"], "8")
        text = self.run_well([real_process.ANALYZER, self.trace, "--no-whatif"]).stdout
        self.assertIn("8 events LOST", text)
        self.assertIn("8 events were lost while recording; figures after them may be wrong", text)

    def test_failed_requests_record_the_free_memory_of_the_device(self):
        said, events, _ = self.run_program("out_of_memory")
        self.assert_blocks_agree(said, events)
        failed = [
            [event.number("requested"), event.number("device_free")]
            for event in events
            if event.kind == "block_out_of_memory"
        ]
        self.assertEqual(failed, said["failed"])
        self.assertEqual([event.kind for event in events].count("memory_fraction"), 1)
        self.assertEqual([event.kind for event in events].count("empty_cache"), 1)

    def test_settings_accepted_at_run_time_are_recorded(self):
        said, events, _ = self.run_program("settings_at_run_time")
        self.assert_blocks_agree(said, events)
        settings = [event["settings"].strip('"') for event in events if event.kind == "settings"]
        self.assertEqual(settings, ["roundup_power2_divisions:4", "max_split_size_mb:40"])

    # ---- which layer is the truth ---------------------------------------------------------------

    def assert_no_blocks(self, events):
        self.assertEqual([event for event in events if event.kind.startswith("block_")], [])

    def test_the_native_allocator_is_recorded_as_blocks(self):
        said, events, facts = self.run_program("default_pool")
        self.assertEqual(facts["allocator_backend"], "native")
        self.assert_blocks_agree(said, events)

    def test_expandable_segments_are_recorded_as_maps(self):
        said, events, facts = self.run_program(
            "default_pool", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
        )
        self.assertEqual(facts["allocator_conf"], "expandable_segments:True")
        self.assert_blocks_agree(said, events)
        self.assertTrue(any(event.kind == "map" for event in events))

    def test_the_settings_are_those_of_the_variable_that_this_release_reads(self):
        for variable in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
            with self.subTest(variable):
                _, events, facts = self.run_program("default_pool", **{variable: "expandable_segments:True"})
                expands = any(event.kind == "map" for event in events)
                self.assertEqual(facts.get("allocator_conf", "") != "", expands)
                self.assertTrue(expands or variable != "PYTORCH_CUDA_ALLOC_CONF")
                self.trace.unlink()

    def test_with_cuda_malloc_async_requests_are_stream_ordered_allocations(self):
        _, events, facts = self.run_program("default_pool", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
        self.assertEqual(facts["allocator_backend"], "cudaMallocAsync")
        self.assert_no_blocks(events)
        sizes = [5000, 3 * 2**20, 21 * 2**20, 70_000]
        made = [event for event in events if event.kind == "async_alloc"]
        self.assertEqual([event.number("bytes") for event in made], sizes)
        self.assertEqual([event["stream"] == "0x0" for event in made], [True, True, True, False])
        freed = [event for event in events if event.kind == "async_free"]
        self.assertEqual(freed[0].number("address"), made[1].number("address"))
        peak = self.report(self.trace)["devices"][0]["peak"]
        self.assertEqual(peak, dict.fromkeys(("requested", "allocated", "active", "reserved"), sum(sizes)))

    def test_without_caching_requests_are_device_allocations(self):
        _, events, facts = self.run_program("default_pool", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
        self.assertEqual(facts["torch.caching"], "off")
        self.assert_no_blocks(events)
        made = [event for event in events if event.kind == "device_alloc"]
        self.assertEqual([event.number("bytes") for event in made], [5000, 3 * 2**20, 21 * 2**20, 70_000])
        self.assertFalse(any("from_allocator" in event.words for event in made))

    def test_the_caching_variable_set_to_zero_is_read_as_by_this_release(self):
        said, events, facts = self.run_program("default_pool", PYTORCH_NO_CUDA_MEMORY_CACHING="0")
        if said["segments"]:
            self.assertNotIn("torch.caching", facts)
            self.assert_blocks_agree(said, events)
        else:
            self.assertEqual(facts["torch.caching"], "off")
            self.assert_no_blocks(events)

    def test_requests_while_caching_is_off_are_device_allocations(self):
        if not hasattr_of(self.python, "torch.cuda.memory.caching_allocator_enable"):
            self.skipTest("this release of PyTorch has no caching_allocator_enable")
        said, events, facts = self.run_program("default_pool", "switch")
        self.assertEqual(facts["torch.caching"], "on again, at run time")
        self.assert_blocks_agree(said, events)
        direct = [
            event.number("bytes")
            for event in events
            if event.kind == "device_alloc" and "from_allocator" not in event.words
        ]
        self.assertEqual(direct, [123_456, 9 * 2**20 + 1])

    def test_requests_of_a_pluggable_allocator_are_device_allocations(self):
        _, events, facts = self.run_program("pluggable", PLUGGABLE)
        self.assertEqual(facts["allocator_backend"], "pluggable libplain_allocator.so plain_alloc")
        self.assert_no_blocks(events)
        self.assertEqual(
            [event.number("bytes") for event in events if event.kind == "device_alloc"],
            [5000, 3 * 2**20 + 1, 7],
        )

    def test_the_pluggable_allocator_of_a_mem_pool_is_named(self):
        said, events, facts = self.run_program("pluggable", PLUGGABLE, "pool")
        self.assertEqual(facts["allocator_backend"], "native")
        self.assert_blocks_agree(said, events)
        if said["release"].startswith(("2.6.", "2.7.")):
            return  # the pool finds its allocator by itself
        named = [value for key, value in facts.items() if re.fullmatch(r"pool\.\d+\.allocator", key)]
        self.assertEqual(named, ["pluggable libplain_allocator.so plain_alloc"])


class PoolsForOthers(ProgramTest):
    """MemPools with use_on_oom, which older releases lack."""

    def test_blocks_that_a_pool_gives_to_others_name_the_pool_that_was_asked(self):
        said, events, _ = self.run_program("pool_on_oom")
        self.assertEqual(said["failed"], 1)
        live = self.live_blocks(events)
        asked = {tuple(segment["pool"]): [] for segment in said["segments"]}
        for segment in said["segments"]:
            for address, size, _ in segment["live"]:
                block = live.pop(address)
                self.assertEqual(block.number("bytes"), size)
                asked[tuple(segment["pool"])].append(block.pool)
        self.assertEqual(live, {})
        (pool,) = said["pools"]
        self.assertEqual(asked, {(0, 0): 3 * [[0, 0]], tuple(pool): [[0, 0], [0, 0], pool]})
        self.assert_replayed_exactly()


def hasattr_of(python, name):
    module, attribute = name.rsplit(".", 1)
    code = f"import sys, torch; sys.exit(not hasattr({module}, '{attribute}'))"
    return real_process.run([python, "-c", code]).returncode == 0


if __name__ == "__main__":
    real_process.main()
