"""A process that has imported torch and nothing more: each program is run in a fork of it.

    warm_torch.py < JOBS > RESULTS

A job is a line of JSON: `program` (path), `card`, `conf`, `statistics` (file to write), `seconds`
(at most), and `traces` (folder) where the recorder is loaded. The answer is a line, too: how the
program ended ("ok", "oom", or what went wrong). CUDA, the allocator, the recorder and the virtual
GPU read their settings at the first use, which is in the fork.
"""

import gc
import json
import os
import pathlib
import runpy
import signal
import sys
import traceback

import torch
import torch._dynamo  # what optimizers import at their first step
import torch.utils.checkpoint
import torch.utils.data

ENDINGS = {0: "ok", 3: "oom"}


def run(job):
    """In the fork: runs the program, writes what PyTorch says of its memory, and ends."""
    os.environ["FRAGTRACE_VIRTUAL_GPU"] = job["card"]
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = job["conf"]
    if "traces" in job:
        os.environ["FRAGTRACE_OUTPUT"] = os.environ["FRAGTRACE_RING_DIRECTORY"] = job["traces"]
    os.chdir(pathlib.Path(job["program"]).parent)
    sys.path.insert(0, os.getcwd())
    torch.set_num_threads(1)
    at_ooms = []
    torch._C._cuda_attach_out_of_memory_observer(
        lambda *_: at_ooms.append(dict(torch.cuda.memory_stats())))
    gc.collect()
    gc.freeze()  # collections come at the same places in every run
    ending = 0
    try:
        runpy.run_path(job["program"], run_name="__main__")
    except torch.OutOfMemoryError:
        ending = 3
    except BaseException:
        traceback.print_exc()
        ending = 4
    statistics = {"ended": ENDINGS.get(ending), "at_ooms": at_ooms,
                  "at_end": dict(torch.cuda.memory_stats())}
    pathlib.Path(job["statistics"]).write_text(json.dumps(statistics), encoding="utf-8")
    os._exit(ending)


def main():
    os.environ.pop("PYTORCH_ALLOC_CONF", None)
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(job["seconds"])
            run(job)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"ended": ENDINGS.get(code, f"failed with {code}"), "process": child}),
              flush=True)


main()
