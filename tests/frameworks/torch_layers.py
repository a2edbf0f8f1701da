"""A PyTorch program that uses every feature of the block layer and prints its actions.

The test "[torch]" of tests/integration/hooks runs it with the shim on the virtual GPU and compares the
trace with these lines:

    tensor ADDRESS BYTES STREAM     a tensor made by this script, in order
    pending ADDRESS STREAM          a tensor freed while another stream may still use it
    stat NAME VALUE                 PyTorch's own counter at the end
"""

import gc
import os
import random
import sys

import torch

MIB = 2**20
lines = []  # written at the end, in one piece: warnings of PyTorch's own must not cut a line
if len(sys.argv) > 1:  # PyTorch sees it, but a library's constructor does not
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = sys.argv[1]


def say(*words):
    lines.append(" ".join(str(word) for word in words))


def tensor(byte_count):
    made = torch.empty(byte_count, dtype=torch.uint8, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    say("tensor", hex(made.data_ptr()), byte_count, hex(stream))
    return made


def many_sizes():
    generator = random.Random(7)
    kept = []
    for _ in range(400):
        kept.append(tensor(int(2 ** generator.uniform(0, 24.5))))
        if len(kept) > 60:
            kept.pop(generator.randrange(len(kept)))


def other_streams():
    streams = [torch.cuda.Stream() for _ in range(3)]
    own = tensor(3 * MIB)
    with torch.cuda.stream(streams[0]):
        other = tensor(5 * MIB)
    # An event recorded by the program just before a free is unrelated to the free.
    event = torch.cuda.Event()
    event.record()
    generic = torch.Event("cuda")
    generic.record()
    del other
    for stream in streams[1:]:
        own.record_stream(stream)
        say("pending", hex(own.data_ptr()), hex(stream.cuda_stream))
    del own
    torch.cuda.synchronize()
    return tensor(3 * MIB)


def training():
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(5):
        batch = torch.randn(64 + 32 * step, 512, device="cuda")
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def raw_interface():
    default = torch.cuda.caching_allocator_alloc(1000)
    stream = torch.cuda.Stream()
    chosen = torch.cuda.caching_allocator_alloc(2000, stream=stream)
    say("raw", hex(default), 1000, hex(0))
    say("raw", hex(chosen), 2000, hex(stream.cuda_stream))
    torch.cuda.caching_allocator_delete(default)
    torch.cuda.caching_allocator_delete(chosen)


def out_of_memory():
    # More than is free besides the context, less than an expandable segment may span.
    size = torch.cuda.get_device_properties(0).total_memory * 99 // 100 + 5
    try:
        torch.empty(size, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        say("oom", size)
    after = tensor(777)  # the failed request must not affect this one
    torch.cuda.set_per_process_memory_fraction(0.75)
    torch.cuda.empty_cache()
    del after


def main():
    many_sizes()
    kept = other_streams()
    training()
    raw_interface()
    out_of_memory()
    del kept
    gc.collect()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    for name in (
        "allocation.all.allocated",
        "allocation.all.freed",
        "requested_bytes.all.allocated",
        "allocated_bytes.all.allocated",
        "segment.all.allocated",
        "segment.all.freed",
        "reserved_bytes.all.allocated",
        "reserved_bytes.all.current",
        "num_ooms",
    ):
        say("stat", name, stats.get(name, 0))
    print("\n".join(["", *lines]), flush=True)
    os._exit(0)  # nothing more is freed, so the counts above are final


main()
