"""A process that has only imported torch. Each program runs in a fork of it.

    warm_torch.py < JOBS > RESULTS

A job is a line of JSON: `program` (path), `card`, `conf`, `statistics` (file to write) and `seconds` (time
limit). Optional are `arguments` and `environment` of the program, `output` (file for its output), `traces`
(folder, if the recorder is loaded) and `empty_cache_at` (emptying.py). The answer is also a line: how the
program ended ("ok", "oom", or the error). CUDA, the allocator, the recorder and the virtual GPU read their
settings at the first use, which is in the fork.
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
import torch._dynamo  # optimizers import it in their first step
import torch.utils.checkpoint
import torch.utils.data
from emptying import Emptying

ENDINGS = {0: "ok", 3: "oom"}


def run(job):
    """In the fork: runs the program, writes PyTorch's memory statistics, and ends."""
    os.environ["FRAGTRACE_VIRTUAL_GPU"] = job["card"]
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = job["conf"]
    os.environ.update(job.get("environment", {}))
    if "traces" in job:
        os.environ["FRAGTRACE_OUTPUT"] = os.environ["FRAGTRACE_RING_DIRECTORY"] = job["traces"]
    os.chdir(pathlib.Path(job["program"]).parent)
    sys.path.insert(0, os.getcwd())
    sys.argv = [job["program"], *job.get("arguments", [])]
    if "output" in job:
        printed = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
    torch.set_num_threads(1)
    at_ooms = []

    def note_failure(of_driver):
        """For programs: notes failures that no observer sees, namely rejections by throw_on_cudamalloc_oom
        and failures past the pool."""
        statistics = dict(torch.cuda.memory_stats())
        rejected = sum(1 for at in at_ooms if at.get("rejected"))
        if of_driver or statistics["num_oom_rejections"] > rejected:
            at_ooms.append({**statistics, "rejected": not of_driver})

    def finish(ending):
        """For programs: ends before the interpreter has freed anything."""
        statistics = {
            "ended": ENDINGS.get(ending),
            "at_ooms": at_ooms,
            "at_end": dict(torch.cuda.memory_stats()),
        }
        if emptying:
            statistics["not_emptied_at"] = emptying.end()
        pathlib.Path(job["statistics"]).write_text(json.dumps(statistics), encoding="utf-8")
        os._exit(ending)

    torch._C._cuda_attach_out_of_memory_observer(lambda *_: at_ooms.append(dict(torch.cuda.memory_stats())))
    emptying = Emptying(job["empty_cache_at"]) if "empty_cache_at" in job else None
    gc.collect()
    gc.freeze()  # so that collections come at the same places in every run
    ending = 0
    if emptying:
        emptying.begin()
    try:
        runpy.run_path(job["program"], {"note_failure": note_failure, "finish": finish}, "__main__")
    except torch.OutOfMemoryError:
        ending = 3
    except SystemExit as left:
        ending = 4 if left.code else 0
    except BaseException:  # noqa: BLE001  (whatever ends a program is its ending)
        traceback.print_exc()
        ending = 4
    finish(ending)


def main():
    os.environ.pop("PYTORCH_ALLOC_CONF", None)
    gc.collect()
    gc.freeze()  # forks need not scan the existing objects
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(job["seconds"])
            run(job)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"ended": ENDINGS.get(code, f"failed with {code}"), "process": child}), flush=True)
    os._exit(0)  # frozen objects are not freed, and libraries would complain about that


main()
