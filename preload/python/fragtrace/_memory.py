"""The memory of a device, as PyTorch's allocator and the driver report it."""

import collections
import sys

Memory = collections.namedtuple(
    "Memory", "allocated_bytes reserved_bytes largest_free_block_bytes device_free_bytes allocatable_bytes"
)


def memory(device=None):
    """The memory of a device now, in bytes. None before this process has used a GPU with PyTorch.

    device: a number or a torch.device; the current one if None. The result has these fields:

    allocated_bytes           in tensors and other live blocks
    reserved_bytes            what PyTorch's allocator has from the driver
    largest_free_block_bytes  the largest request that its cache can serve, in the default pool
    device_free_bytes         what the driver reports as free; other processes take part of it
    allocatable_bytes         reserved, not allocated, plus free: at most this much can still be allocated

    The first two cost microseconds. The largest block needs PyTorch's list of all blocks, about 1 ms per
    thousand blocks, so call this every some steps only. Recording changes none of the figures. Any thread.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    if device is None:
        number = cuda.current_device()
    else:
        number = device if isinstance(device, int) else device.index
        number = cuda.current_device() if number is None else number
    statistics = cuda.memory_stats(number)
    allocated = statistics.get("allocated_bytes.all.current", 0)
    reserved = statistics.get("reserved_bytes.all.current", 0)
    largest = max(
        (
            block["size"]
            for segment in cuda.memory_snapshot()
            if segment["device"] == number and tuple(segment.get("segment_pool_id", (0, 0))) == (0, 0)
            for block in segment["blocks"]
            if block["state"] == "inactive"
        ),
        default=0,
    )
    free = cuda.mem_get_info(number)[0]
    return Memory(allocated, reserved, largest, free, reserved - allocated + free)


def scalars(prefix="gpu_memory/", device=None):
    """The fields of memory() by name, for a logger: {"gpu_memory/allocated_bytes": 1024, ...}.

    Empty before this process has used a GPU with PyTorch.
    """
    now = memory(device)
    return {} if now is None else {prefix + name: value for name, value in now._asdict().items()}
