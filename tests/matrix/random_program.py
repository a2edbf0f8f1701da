"""A random program for PyTorch's allocator: random_program.py SEED [FEATURE,...]"""

import ctypes
import os
import sys
import threading

from random_plan import FEATURES, Plan


class Program:
    """Makes the calls of a plan."""

    def __init__(self, plan, note_failure):
        import torch

        self.torch, self.note_failure = torch, note_failure
        self.catches = "caught" in plan.has
        self.streams = [torch.cuda.current_stream()]
        self.streams += [torch.cuda.Stream() for _ in range(plan.streams - 1)]
        # Several pools with use_on_oom would be used in an unspecified order.
        self.pools = [
            torch.cuda.MemPool(
                use_on_oom="use_on_oom" in plan.has and number == 0,
                no_split="no_split" in plan.has and number != 1,
            )
            for number in range(plan.pools)
        ]
        self.keeps = self.pools[:1] if "use_on_oom" in plan.has else []
        self.live, self.graphs, self.handle = {}, {}, None
        self.driver = ctypes.CDLL(None)

    def make(self, calls):
        for name, *arguments in calls:
            try:
                getattr(self, name)(*arguments)
            except self.torch.OutOfMemoryError:
                self.note_failure(False)
                if not self.catches:
                    raise
            except self.torch.AcceleratorError as error:  # while the pool's caching is off
                if "out of memory" not in str(error):
                    raise
                self.note_failure(True)
                raise self.torch.OutOfMemoryError(str(error)) from error

    def tensor(self, name, size, stream, pool):
        torch = self.torch

        def made():
            return torch.empty(size, dtype=torch.uint8, device="cuda")

        with torch.cuda.stream(None if stream is None else self.streams[stream]):
            if 0 <= pool < len(self.pools) and self.pools[pool] is not None:
                with torch.cuda.use_mem_pool(self.pools[pool]):
                    self.live[name] = made()
            else:
                self.live[name] = made()
            if stream is None:
                self.live[name].zero_()  # PyTorch warns about a capture without any work

    def free(self, name):
        held = self.live.pop(name, None)
        if isinstance(held, tuple):
            free, address = held
            free(address)

    def free_elsewhere(self, name):
        thread = threading.Thread(target=self.free, args=(name,))
        thread.start()
        thread.join()

    def device_tensor(self, name):
        held = self.live.get(name)
        return held if isinstance(held, self.torch.Tensor) and held.is_cuda else None

    def record(self, name, stream):
        held = self.device_tensor(name)
        if held is not None:
            held.record_stream(self.streams[stream])

    def resize(self, name, size, storage):
        held = self.device_tensor(name)
        if held is None:
            return
        (held.untyped_storage() if storage else held).resize_(size)

    def raw_block(self, name, size, stream):
        address = self.torch.cuda.caching_allocator_alloc(size, 0, self.streams[stream])
        self.live[name] = self.torch.cuda.caching_allocator_delete, address

    def raw_malloc(self, name, size):
        address = ctypes.c_void_p()
        if self.driver.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) == 0:
            self.live[name] = self.driver.cudaFree, address
        else:
            self.driver.cudaGetLastError()

    def pinned(self, name, size):
        self.live[name] = self.torch.empty(size, dtype=self.torch.uint8, pin_memory=True)

    def fraction(self, value):
        self.torch.cuda.set_per_process_memory_fraction(value)

    def settings(self, text):
        self.torch._C._accelerator_setAllocatorSettings(text)

    def caching(self, value):
        self.torch.cuda.memory.caching_allocator_enable(value)

    def empty_cache(self):
        self.torch.cuda.empty_cache()

    def synchronize(self):
        self.torch.cuda.synchronize()

    def memory_info(self):
        self.torch.cuda.mem_get_info()

    def fork(self):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

    def drop_pool(self, number):
        self.pools[number] = None

    def capture(self, name, pool, stream, calls):
        torch = self.torch
        if pool == "handle" and self.handle is None:
            self.handle = torch.cuda.graph_pool_handle()
        shared = self.graphs[pool].pool() if pool in self.graphs else None
        graph = torch.cuda.CUDAGraph()
        if pool == "handle":
            self.keeps.append(graph)  # also if the capture fails
        capture_on = self.streams[stream] if stream else None
        with torch.cuda.graph(graph, pool=self.handle if pool == "handle" else shared, stream=capture_on):
            self.make(calls)
        self.graphs[name] = graph

    def replay(self, name):
        if name in self.graphs:
            self.graphs[name].replay()

    def drop_graph(self, name):
        self.graphs.pop(name, None)


def main(seed, features=""):
    plan = Plan(seed, features.split(",") if features else FEATURES)
    program = Program(plan, globals().get("note_failure", lambda _: None))
    finish = globals().get("finish", sys.exit)
    try:
        program.make(plan.calls)
    except program.torch.OutOfMemoryError:
        finish(3)
    finish(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
