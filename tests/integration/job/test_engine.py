"""`fragtrace job analyze` on real Dask clusters: killed workers, object storage, and refusals in one line."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import made_up_job
import real_process
from made_up_job import DASK_PYTHON, RANKS
from real_process import ANALYZER, LAUNCHER, run

ANALYZE = real_process.SOURCE / "scripts" / "job" / "analyze.py"


def processes():
    """{pid: (parent, command line)} of all processes."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int(re.search(r"^PPid:\s+(\d+)", (folder / "status").read_text(), re.MULTILINE)[1])
            found[int(folder.name)] = (parent, (folder / "cmdline").read_text().split("\0"))
        except OSError:
            continue
    return found


def summarizing(root):
    """(fraganalyze, its parent) of each running task below the process `root`."""
    found = processes()

    def is_below(pid):
        while pid in found and pid != root:
            pid = found[pid][0]
        return pid == root

    return [
        (pid, parent)
        for pid, (parent, command) in found.items()
        if command[0] == str(ANALYZER) and "summarize" in command and is_below(pid)
    ]


class Refused(real_process.RealProcessTest):
    """No Dask is needed for these."""

    def refused(self, *arguments):
        done = run([LAUNCHER, "job", *arguments], cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        return done.stderr

    def test_without_dask_one_line_says_what_to_install(self):
        python = self.folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        python.chmod(0o755)
        traces = self.folder / "traces"
        traces.mkdir()
        (traces / "a.ftrace").write_bytes(b"")
        python.rename(self.folder / "own-python")
        os.environ["PATH"] += os.pathsep + str(self.folder)  # a name is looked up there
        for folder, python in ((traces, self.folder / "own-python"), ("memory://traces", "own-python")):
            self.assertEqual(
                self.refused("analyze", folder, "-o", "job", "--python", python),
                f"fragtrace: job: {sys.executable} has no Dask. Run pip install 'fragtrace[job]', or give an "
                "interpreter that has it: --python PATH\n",
            )

    def test_a_wrong_folder_is_named_before_a_missing_dask(self):
        python = self.folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        python.chmod(0o755)
        options = ("--python", python)
        self.assertEqual(
            self.refused("analyze", "/nowhere", *options),
            "fragtrace: job: /nowhere: cannot be listed: No such file or directory\n",
        )
        self.assertIn(
            f"{python}: cannot be listed: Not a directory", self.refused("analyze", python, *options)
        )
        self.assertIn("no traces or snapshots in it", self.refused("analyze", self.folder, *options))
        self.assertIn("give a folder for the results, -o DIR", self.refused("analyze", "s3://a", *options))

    def test_wrong_words_and_options_are_refused(self):
        self.assertIn("what to do with the job is missing: fragtrace job analyze FOLDER", self.refused())
        self.assertIn("job: unknown command look: fragtrace job analyze", self.refused("look"))
        self.assertIn("job: unknown command analyse; did you mean 'analyze'? (", self.refused("analyse", "."))
        self.assertIn("FOLDER is required", self.refused("analyze"))
        self.assertIn("did you mean '--slurm'?", self.refused("analyze", ".", "--slrm"))
        for options in (["--workers", "3"], ["--submit-option=-q short"], ["--sbatch=--partition=short"]):
            self.assertIn("requires --slurm, --pbs or --lsf", self.refused("analyze", ".", *options))
        self.assertIn("--local excludes --slurm", self.refused("analyze", ".", "--slurm", "--local", "2"))
        self.assertIn("--slurm excludes --lsf", self.refused("analyze", ".", "--lsf", "--slurm"))
        self.refused("analyze", ".", "--local", "0")

    def test_the_interpreter_must_exist(self):
        done = run([LAUNCHER, "job", "analyze", self.folder, "--python", "/nowhere/python"])
        self.assertEqual(
            (done.returncode, done.stderr),
            (126, "fragtrace: /nowhere/python cannot be run: No such file or directory\n"),
        )


class Engine(made_up_job.MadeUpJobTest):
    def refused(self, *options, folder=None, **others):
        done = self.analyze(*options, folder=folder, **others)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        return done.stderr

    def test_a_killed_worker_loses_no_trace_and_counts_none_twice(self):
        command = [LAUNCHER, "job", "analyze", self.job, "--local", "2", "--python", DASK_PYTHON]
        with subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as engine:
            killed = []
            while engine.poll() is None and not killed:
                running = summarizing(engine.pid) if len(self.summaries()) >= 2 else []
                for task, worker in running[:1]:
                    os.kill(worker, signal.SIGKILL)
                    os.kill(task, signal.SIGKILL)
                    killed.append(worker)
                time.sleep(0.01)
            text, said = engine.communicate()
        self.assertEqual(len(killed), 1, said)
        self.assertEqual(engine.returncode, 2, said)  # one trace cannot be read
        self.assertEqual(self.result(), self.serial())
        self.assertEqual(len(self.summaries()), RANKS + 1)
        self.assertRegex(said, r"9 traces: \d summaries made, \d kept, 1 unreadable; ")
        self.assertIn(f"unreadable  {self.bad}: is not a trace", text)
        self.assertRegex(text.splitlines()[0], r"^rank 4 of 8 ran out of memory first, ")

    def test_a_second_run_makes_only_what_changed(self):
        self.analyze("--no-whatif", "--local", "2")
        before = self.readable(self.summaries())
        self.assertEqual(len(before), RANKS)
        again = self.analyze("--no-whatif", "--local", "2")
        self.assertIn("9 traces: 0 summaries made, 8 kept, 1 unreadable; ", again.stderr)
        self.assertEqual(self.readable(self.summaries()), before)
        os.utime(self.job / self.names[3])
        (self.job / "job" / "summaries" / f"{self.names[5]}.json").write_text("cut")
        (self.job / "job" / "summaries" / f"{self.names[6]}.json").unlink()
        self.bad.unlink()
        self.names.remove(self.bad.name)
        (self.job / "job" / "summaries" / f"{self.bad.name}.json").unlink()
        third = self.analyze("--no-whatif", "--local", "1")
        self.assertEqual(third.returncode, 2, third.stderr)
        self.assertIn("exists, and is not a summary", third.stderr)
        (self.job / "job" / "summaries" / f"{self.names[5]}.json").unlink()
        third = self.analyze("--no-whatif", "--local", "1")
        self.assertEqual(third.returncode, 0, third.stderr)
        changed = {name for name, value in self.summaries().items() if before.get(name) != value}
        self.assertLessEqual(len(changed), 3)
        self.assertIn(f"{self.names[3]}.json", changed)

    def test_a_folder_and_a_broken_link_with_names_of_traces_are_unreadable(self):
        (self.job / "folder.ftrace").mkdir()
        os.symlink("/nowhere", os.fsencode(self.job) + b"/gone\xfe.ftrace")
        done = self.analyze("--no-whatif", "--local", "2")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("11 traces: 8 summaries made, 0 kept, 3 unreadable; ", done.stderr)
        self.assertIn("folder.ftrace: is a folder", done.stdout)
        self.assertIn("gone?.ftrace: no such file", done.stdout)

    def test_a_scheduler_without_workers_or_none_at_all_ends_in_one_line(self):
        self.assertIn(
            "no Dask scheduler answers at tcp://127.0.0.1:1 (waited up to 10 s)",
            self.refused("--scheduler", "tcp://127.0.0.1:1"),
        )
        self.assertIn("no Dask scheduler answers at nonsense", self.refused("--scheduler", "nonsense"))
        listening = self.folder / "scheduler.json"
        with subprocess.Popen(
            [DASK_PYTHON, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
            + ["--no-dashboard", "--scheduler-file", listening],
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        ) as scheduler:
            self.addCleanup(scheduler.kill)
            while not listening.exists() and scheduler.poll() is None:
                time.sleep(0.05)
            address = re.search(r"tcp://127[^\"]+", listening.read_text())[0]
            self.assertIn(
                "there was no worker for 2 s, and 9 of 9 traces have no summary. Run this again to continue",
                self.refused("--scheduler", address, "--wait", "2"),
            )
            with subprocess.Popen(
                [DASK_PYTHON, "-m", "distributed.cli.dask_worker", address, "--no-dashboard"]
                + ["--no-nanny", "--nthreads", "2", "--local-directory", self.folder],
                stderr=subprocess.DEVNULL,
                cwd=self.folder,
            ) as worker:
                done = self.analyze("--scheduler", address)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(self.result(), self.serial())
                worker.terminate()
            scheduler.terminate()

    def test_missing_and_empty_folders_are_refused(self):
        self.assertIn(
            "/nowhere: cannot be listed: No such file or directory", self.refused(folder="/nowhere")
        )
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn(f"{empty}: no traces or snapshots in it", self.refused(folder=empty))
        (empty / "below").mkdir()
        (empty / "below" / "a.ftrace").write_bytes(b"")
        self.assertIn(f"{empty}/below has some: give that folder", self.refused(folder=empty))
        self.assertIn("give a folder for the results, -o DIR", self.refused(folder="memory://job"))
        self.assertIn("cannot be listed", self.refused("-o", empty, folder="nothing://job"))
        self.assertIn("cannot be made", self.refused("-o", self.bad))

    def test_traces_on_other_storage_give_the_same_summaries(self):
        for name in self.names:  # fsspec gives times in microseconds
            os.utime(self.job / name, ns=(1_700_000_000_123_456_000,) * 2)
        output = self.folder / "output"
        done = self.analyze("--local", "2", "--no-whatif", "-o", output, folder=f"file://{self.job}")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"unreadable  file://{self.bad}: is not a trace", done.stdout)
        self.run_well([ANALYZER, "summarize", self.job, "-o", self.folder / "serial.json", "--no-whatif"], 2)
        serial = (self.folder / "serial.json").read_bytes()
        self.assertEqual(self.result(output).replace(b"file:///", b"/"), serial)
        again = self.analyze("--local", "2", "--no-whatif", "-o", output, folder=f"file://{self.job}")
        self.assertIn("0 summaries made, 8 kept, 1 unreadable", again.stderr)

    def test_an_object_in_memory_is_copied_and_read_once(self):
        script = f"""
import importlib.util, os, pathlib, sys
import fsspec
specification = importlib.util.spec_from_file_location("analyze", {str(ANALYZE)!r})
analyze = importlib.util.module_from_spec(specification)
specification.loader.exec_module(analyze)
trace, output = sys.argv[1:]
files = fsspec.filesystem("memory")
files.pipe("/job/" + os.path.basename(trace), pathlib.Path(trace).read_bytes())
files.pipe("/job/bad.ftrace", b"no trace")
assert analyze.traces_in("memory://job") == ["bad.ftrace", os.path.basename(trace)]
def summarize(name):
    return analyze.summarize("memory://job/" + name, output + "/" + name + ".json", {str(ANALYZER)!r}, False)
print(summarize(os.path.basename(trace)))
analyze.copy_at_most = None  # the second time nothing is copied
print(summarize(os.path.basename(trace)))
print(summarize("missing.ftrace"))
"""
        output = self.folder / "output"
        output.mkdir()
        done = self.run_well([DASK_PYTHON, "-c", script, self.job / self.names[0], output])
        made, kept, missing = done.stdout.splitlines()
        self.assertEqual((made, kept), ("made", "kept"))
        self.assertTrue(missing.startswith("memory://job/missing.ftrace: "), missing)
        self.assertEqual(
            sorted(path.name for path in output.iterdir()),
            ["missing.ftrace.json", f"{self.names[0]}.json"],
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["Engine"] and DASK_PYTHON is None:
        print("skipped: distributed is not installed (scripts/setup --tests)")
        sys.exit(77)
    real_process.main()
