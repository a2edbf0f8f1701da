"""`fragtrace job analyze`: summarizes each trace of a job on the workers of Dask, merges the summaries, and
prints the view of the job.

The launcher (preload/launcher/job.cpp) reads the options, and passes them as NAME=VALUE. A task is
`fraganalyze summarize` of one trace. It writes DIR/summaries/TRACE.json at once or not at all, and leaves a
summary that matches its trace. So a task may run twice, and a stopped job continues where it was. Workers get
the functions of this file by value: they need Dask, fraganalyze at the same path, and the folders.
"""

import contextlib
import importlib
import json
import logging
import os
import pathlib
import queue
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ENDINGS = (".ftrace", ".pickle", ".pkl", ".pickle.gz", ".pkl.gz")  # as fraganalyze FOLDER
CONNECT_SECONDS = 10
RETRIES = 2  # of a task whose fraganalyze was killed
# Batch systems by the name of their option: the class of dask-jobqueue, and a command that refuses wrong
# options and starts nothing. sbatch only checks. qsub and bsub submit a job on hold, to be cancelled at once.
BATCH_SYSTEMS = {
    "slurm": ("SLURMCluster", "sbatch --test-only {}"),
    "pbs": ("PBSCluster", "qsub -h {}"),
    "lsf": ("LSFCluster", "bsub -H < {}"),
}
NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}  # Dask's port is often in use
KEPT_FREE = 1 << 30  # bytes that a download leaves on the disk
PIECE = 8 << 20  # bytes of a download at a time


def note(text):
    print(f"fragtrace: {text}", file=sys.stderr)


def refuse(text):
    note("job: " + " ".join(str(text).split()))
    sys.exit(2)


# ---- On the workers ----------------------------------------------------------------------------------------


def mark_unreadable(output, name, reason):
    """Writes the file that `fraganalyze summarize` writes for a trace that it cannot read."""
    row = json.dumps({"file": name, "reason": reason}, separators=(",", ":"), ensure_ascii=False)
    temporary = f"{output}.{socket.gethostname()}.{os.getpid()}.tmp"
    pathlib.Path(temporary).write_text(
        f'{{"schema":1,"process_summaries":[\n],"unreadable":[\n{row}\n]}}\n', "utf-8", "replace"
    )
    os.replace(temporary, output)


def identity_of(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def summarize_file(trace, output, analyzer, whatif):
    """Returns `made`, `kept` or the reason why the trace cannot be read."""
    before = identity_of(output)
    command = [analyzer, "summarize", "--if-changed", "-o", output]
    done = subprocess.run(
        [*command, *([] if whatif else ["--no-whatif"]), "--", trace],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode < 0:
        raise ChildProcessError(f"{trace}: signal {-done.returncode} ended fraganalyze")
    if done.returncode == 0:
        return "kept" if identity_of(output) == before else "made"
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1].removeprefix("fraganalyze: ")
    if not os.path.isfile(trace):
        what = "is a folder" if os.path.isdir(trace) else f"no such file on {socket.gethostname()}"
        reason = f"{trace}: {what}"
        mark_unreadable(output, os.path.basename(trace), reason)
    elif identity_of(output) in (before, None):
        raise RuntimeError(reason)  # the summary cannot be written
    return reason


def modified_ns(files, path):
    """When the object was last changed; 0 = not known."""
    try:
        return int(files.modified(path).timestamp() * 1_000_000) * 1000
    except (NotImplementedError, KeyError, AttributeError, OSError):
        return 0


def version_of(analyzer):
    done = subprocess.run([analyzer, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.split()[-1] if done.stdout.strip() else None


def is_summary_of(output, name, size, modified, whatif, analyzer):
    """Whether `fraganalyze summarize --if-changed` would keep the summary: without a download."""
    try:
        (process,) = json.loads(pathlib.Path(output).read_bytes())["process_summaries"]
        same = (process["file"], process["trace_bytes"], process["trace_modified_ns"]) == (
            name,
            size,
            modified,
        )
        has_pool = any(device["pool_blocks"] for device in process["devices"])
        complete = process["replayed"] or not whatif or not process["analysed"] or not has_pool
        settled = modified != 0 and process["ended"] != "running"
        return same and complete and settled and process["analyzer_version"] == version_of(analyzer)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def copy_at_most(source, target, size):
    """Copies one piece after the other. Returns whether the source had exactly this size."""
    while piece := source.read(min(PIECE, size + 1)):
        if len(piece) > size:
            return False
        target.write(piece)
        size -= len(piece)
    return size == 0


def summarize_object(url, output, analyzer, whatif):
    """The same for a trace on object storage, of which it keeps a copy on the local disk meanwhile."""
    import fsspec

    files, path = fsspec.core.url_to_fs(url)
    name = url.rsplit("/", 1)[-1]
    with tempfile.TemporaryDirectory(prefix="fragtrace-job-") as folder:
        try:
            size = files.info(path)["size"]
            modified = modified_ns(files, path)
            if is_summary_of(output, name, size, modified, whatif, analyzer):
                return "kept"
            free = shutil.disk_usage(folder).free
            if size + KEPT_FREE > free:
                raise OSError(
                    f"its copy of {size} bytes needs more room in {tempfile.gettempdir()} on "
                    f"{socket.gethostname()}, which has {free} bytes free (TMPDIR names another folder)"
                )
            copy = os.path.join(folder, name)
            with files.open(path, "rb") as source, open(copy, "wb") as target:
                if not copy_at_most(source, target, size):
                    raise OSError("it changed while it was read")
            if modified:
                os.utime(copy, ns=(modified, modified))
        except Exception as failure:  # each storage has its own ones
            reason = f"{url}: {failure}"
        else:
            reason = summarize_file(copy, output, analyzer, whatif)
            if reason in ("made", "kept"):
                return reason
            reason = reason.replace(copy, url)
        mark_unreadable(output, name, " ".join(reason.split()))
        return reason


def summarize(trace, output, analyzer, whatif):
    return (summarize_object if "://" in trace else summarize_file)(trace, output, analyzer, whatif)


# ---- Here --------------------------------------------------------------------------------------------------


def need(module):
    """A part of Dask, which may be missing."""
    try:
        return importlib.import_module(module)
    except ImportError:
        refuse(
            f"{sys.executable} has no Dask. Run pip install 'fragtrace[job]', or give an interpreter that "
            "has it: --python PATH"
        )


def traces_in(folder):
    """The names of the traces and snapshots in a folder or at a URL, sorted."""
    fsspec = need("fsspec") if "://" in folder else None
    try:
        if fsspec:
            files, path = fsspec.core.url_to_fs(folder)
            names = [found.rstrip("/").rsplit("/", 1)[-1] for found in files.ls(path, detail=False)]
        else:
            names = os.listdir(folder)
    except Exception as failure:
        refuse(f"{folder}: cannot be listed: {getattr(failure, 'strerror', None) or failure}")
    recordings = sorted(name for name in names if name.endswith(ENDINGS))
    if not recordings:
        below = None if fsspec else first_with_traces(folder, names)
        refuse(
            f"{folder}: no traces or snapshots in it; "
            + (
                f"{below} has some: give that folder"
                if below
                else f"give a folder of them ({', '.join(ENDINGS)})"
            )
        )
    return recordings


def first_with_traces(folder, names):
    """The first of these subfolders that has traces or snapshots; None if none has."""
    for name in sorted(names):
        below = os.path.join(folder, name)
        try:
            if any(found.endswith(ENDINGS) for found in os.listdir(below)):
                return below
        except OSError:
            continue
    return None


def local_cluster(workers, scratch):
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers or len(os.sched_getaffinity(0)),
        threads_per_worker=1,
        dashboard_address=NO_DASHBOARD["dashboard_address"],
        scheduler_kwargs=NO_DASHBOARD,
        local_directory=scratch,
        silence_logs=logging.CRITICAL,
    )


def try_to_submit(cluster, trial):
    """Returns why the batch system refuses the jobs of the cluster; empty = it takes them."""
    with tempfile.NamedTemporaryFile("w", prefix="fragtrace-job-", suffix=".sh") as script:
        script.write(cluster.job_script())
        script.flush()
        asked = subprocess.run(
            trial.format(shlex.quote(script.name)), shell=True, capture_output=True, text=True, check=False
        )
    if asked.returncode:
        return asked.stderr.strip() or asked.stdout.strip() or f"exit code {asked.returncode}"
    if submitted := re.search(cluster.job_cls.job_id_regexp, asked.stdout):
        subprocess.run(
            [*shlex.split(cluster.job_cls.cancel_command), submitted["job_id"]],
            capture_output=True,
            check=False,
        )
    return ""


def batch_cluster(batch, workers, options, logs):
    class_name, trial = BATCH_SYSTEMS[batch]
    program = trial.split()[0]
    if shutil.which(program) is None:
        refuse(f"--{batch}: {program} is not on the path. Run this where jobs are submitted")
    try:
        import dask
        import dask_jobqueue
    except ImportError:
        refuse(f"{sys.executable} has no dask-jobqueue. Run pip install dask-jobqueue")
    cluster = getattr(dask_jobqueue, class_name)(
        cores=1,
        memory="4GiB",
        job_name="fragtrace",
        log_directory=logs,
        job_extra_directives=options,
        silence_logs=logging.CRITICAL,
        scheduler_options={**dask.config.get(f"jobqueue.{batch}.scheduler-options", {}), **NO_DASHBOARD},
    )
    if reason := try_to_submit(cluster, trial):
        cluster.close()
        refuse(f"--{batch}: {reason}")
    cluster.adapt(minimum_jobs=workers, maximum_jobs=workers)  # replaces workers whose job ended
    return cluster


def connect(address, wait):
    from distributed import Client

    seconds = min(wait, CONNECT_SECONDS)
    try:
        return Client(address, timeout=seconds)
    except (OSError, ValueError, TypeError):
        refuse(f"no Dask scheduler answers at {address} (waited up to {seconds} s)")


def has_workers(client):
    try:
        found = client.sync(client.scheduler.identity, callback_timeout=CONNECT_SECONDS)
        return bool(found["workers"])
    except Exception:  # no connection, or no answer
        return False


def outcomes(client, futures, wait):
    """Yields each task with what it returned, or the failure that ended it."""
    done = queue.SimpleQueue()
    for future in futures:
        future.add_done_callback(done.put)
    left = len(futures)
    alive = time.monotonic()
    while left:
        try:
            future = done.get(timeout=1)
        except queue.Empty:
            if has_workers(client):
                alive = time.monotonic()
            elif time.monotonic() - alive > wait:
                refuse(
                    f"there was no worker for {wait} s, and {left} of {len(futures)} traces have no summary. "
                    "Run this again to continue"
                )
            continue
        alive = time.monotonic()
        if future.status not in ("finished", "error"):
            refuse(
                f"the scheduler forgot the tasks; {left} traces have no summary. Run this again to continue"
            )
        left -= 1
        yield future, future.exception() or future.result()


def run_tasks(client, folder, names, summaries, options):
    """Summarizes the traces. Returns how many summaries were made and kept, and the unreadable traces."""
    from distributed import KilledWorker

    tasks = {}
    for name in names:
        output = os.path.join(summaries, name + ".json")
        arguments = (f"{folder}/{name}", output, options["analyzer"], options["whatif"] == "1")
        future = client.submit(summarize, *arguments, pure=False, retries=RETRIES)
        tasks[future.key] = (future, name, output)
    counts = {"made": 0, "kept": 0, "unreadable": 0}
    futures = [future for future, _, _ in tasks.values()]
    for future, outcome in outcomes(client, futures, int(options["wait"]) or 60):
        _, name, output = tasks[future.key]
        if isinstance(outcome, (KilledWorker, ChildProcessError)):
            died = isinstance(outcome, KilledWorker)
            reason = f"{folder}/{name}: each worker that read it ended" if died else str(outcome)
            mark_unreadable(output, name, reason)
            outcome = "unreadable"
        elif isinstance(outcome, BaseException):
            refuse(str(outcome) or repr(outcome))
        counts[outcome if outcome in counts else "unreadable"] += 1
        if sys.stderr.isatty():
            print(f"\r{sum(counts.values()):,} of {len(tasks):,} traces", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return counts


def show(analyzer, summaries, job):
    """Merges the summaries, and prints the view of the job. Returns its exit code."""
    job.unlink(missing_ok=True)
    merged = subprocess.run(
        [analyzer, "merge", summaries, "-o", job], stderr=subprocess.PIPE, text=True, check=False
    )
    if not job.exists():
        refuse(merged.stderr.removeprefix("fraganalyze: "))
    return subprocess.run([analyzer, job], check=False).returncode


def main(words):
    pairs = [word.split("=", 1) for word in words]
    options = dict(pairs)
    folder = options["folder"].rstrip("/") or "/"
    if "://" in folder:
        if not options["output"]:
            refuse(f"{folder}: give a folder for the results, -o DIR")
    else:
        folder = os.path.abspath(folder)
    names = traces_in(folder)
    distributed = need("distributed")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    output = pathlib.Path(options["output"] or f"{folder}/job").absolute()
    summaries = output / "summaries"
    try:
        summaries.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        refuse(f"{summaries}: cannot be made: {failure.strerror}")
    with contextlib.ExitStack() as stack:
        if options["scheduler"]:
            client = connect(options["scheduler"], int(options["wait"]) or 60)
        else:
            if options["batch"]:
                submit_options = [value for name, value in pairs if name == "submit_option"]
                logs = str(output / "logs")
                cluster = batch_cluster(options["batch"], int(options["workers"]), submit_options, logs)
                options["wait"] = options["wait"] if options["wait"] != "0" else "3600"
            else:
                scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="fragtrace-job-"))
                cluster = local_cluster(int(options["local"]), scratch)
            stack.enter_context(cluster)
            client = distributed.Client(cluster)
        stack.enter_context(client)
        counts = run_tasks(client, folder, names, str(summaries), options)
    missing = [name for name in names if not (summaries / f"{name}.json").exists()]
    if missing:
        refuse(f"{summaries} lacks {len(missing)} summaries. Do the workers see the same folder?")
    job = output / "job.json"
    status = show(options["analyzer"], summaries, job)
    sys.stdout.flush()
    note(
        f"{len(names):,} traces: {counts['made']:,} summaries made, {counts['kept']:,} kept, "
        f"{counts['unreadable']:,} unreadable; {job}"
    )
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        note("job: interrupted. Run this again to continue")
        sys.exit(130)
