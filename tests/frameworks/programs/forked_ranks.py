"""Starts the ranks of a job as children of this process, so that PyTorch is imported once for all of them."""

import os
import signal
import socket
import sys
import time

LIMIT_S = 150


def end(children, with_signal):
    for child in children:
        os.kill(child, with_signal)


def started_rank(work, rank, ranks):
    """In the child, whose exit code must be that of a program of its own."""
    code = 1
    try:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
        work(rank, ranks)
        code = 0
    except Exception as error:  # noqa: BLE001  (a rank may fail in any way)
        print(f"rank {rank}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr, flush=True)
    os._exit(code)


def launch(work, ranks, stop=signal.SIGTERM, stop_after_s=0, outlives=None):
    """Calls work(rank, ranks) in each rank. After the first failure the others get the signal `stop`.

    Without it they end by themselves, and `outlives` is a rank that is ended when no other is left.
    Returns the exit code of the job.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(free.getsockname()[1]))
    children = {}
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            started_rank(work, rank, ranks)
        children[child] = rank
    limit = time.monotonic() + LIMIT_S
    failed = False
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            if time.monotonic() > limit:
                print("the job took too long", file=sys.stderr)
                end(children, signal.SIGKILL)
                limit += 600
            time.sleep(0.02)
            continue
        rank = children.pop(child)
        print(f"rank {rank} ended with {os.waitstatus_to_exitcode(status)}", flush=True)
        if status != 0 and not failed:
            failed = True
            if stop:
                time.sleep(stop_after_s)
                end(children, stop)
        if outlives is not None and list(children.values()) == [outlives]:
            end(children, signal.SIGTERM)
    return 1 if failed else 0
