"""What the launcher prints after a run: the summary, the list of traces, and whose failure it explains."""

import json
import os
import re
import shutil
import subprocess
import time

import real_process
from launching import CARD, LauncherTest
from real_process import ANALYZER, LAUNCHER, environment, run, traces


class AfterTheRun(LauncherTest):
    def test_the_verdict_is_printed_to_the_standard_error_and_short(self):
        done = self.launch("run", "--virtual-gpu", CARD, "-o", "out", "--", *self.client())
        self.assertEqual(done.stdout, "50 allocations, then return\n")
        self.assertEqual(len(traces(self.folder / "out")), 1)
        lines = done.stderr.splitlines()
        self.assertTrue(1 <= len(lines) <= 25, done.stderr)

    def test_a_long_summary_and_a_long_list_are_cut(self):
        prefix = self.folder / "prefix"
        (prefix / "bin").mkdir(parents=True)
        shutil.copy(LAUNCHER, prefix / "bin")
        (prefix / "lib").symlink_to(LAUNCHER.parents[1] / "lib")
        analyzer = prefix / "bin" / "fraganalyze"
        analyzer.write_text("#!/bin/sh\nseq 1000\n")
        analyzer.chmod(0o755)
        done = run(
            [prefix / "bin" / "fragtrace", "run", "--virtual-gpu", CARD, "--", *self.client()],
            cwd=self.folder,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(40 <= done.stderr.count("\n") <= 47, done.stderr)

    def test_quiet_prints_only_the_command_of_the_report_which_can_be_run(self):
        done = self.launch("run", "--quiet", "--virtual-gpu", CARD, "--", *self.client())
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        command = done.stderr.removeprefix("fragtrace: ").strip()
        self.run_well(["bash", "-c", command], cwd=self.folder)

    def test_without_a_trace_one_line_says_why(self):
        done = self.launch("run", "--", "true")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("no trace", done.stderr)
        done = self.launch(
            "run", "--virtual-gpu", CARD, "--", *self.client(), env=environment(FRAGTRACE_OFF=1)
        )
        self.assertIn("FRAGTRACE_OFF", done.stderr)

    def test_every_trace_of_the_run_is_listed_but_no_older_one(self):
        self.launch("run", "--quiet", "--virtual-gpu", CARD, "--", *self.client())
        older = self.only_trace()
        time.sleep(0.05)
        normal, killed = (" ".join(self.client(20, ending)) for ending in ("return", "kill"))
        done = self.launch(
            "run",
            "--virtual-gpu",
            CARD,
            "--",
            "sh",
            "-c",
            f"RANK=3 {normal}; {killed}; true",
            env=environment(FRAGTRACE_RING_DIRECTORY=self.folder),
        )
        lines = done.stderr.splitlines()
        heading = next(
            number
            for number, line in enumerate(lines)
            if re.fullmatch("fragtrace: 2 traces of job [0-9a-f]{12}:", line)
        )
        listed = lines[heading + 1 :]
        self.assertEqual(
            sorted(line.split()[0] for line in listed),
            sorted(trace.name for trace in traces(self.folder) if trace != older),
        )
        said = {re.search(r"pid (\d+)", line)[1]: line for line in listed}
        for trace in traces(self.folder):
            if trace == older:
                continue
            source = self.report(trace)["source"]
            line = said[str(source["process"])]
            self.assertIn("client.py", line)
            self.assertIn(f" {source['events']} events, ", line)
            self.assertIn({"normal": "rank 3, ", "killed": "killed (SIGKILL)"}[source["ended"]], line)

    def test_the_process_that_failed_first_is_explained_even_if_the_command_succeeds(self):
        fine, killed = (" ".join(self.client(*how)) for how in ((3000, "return"), (20, "kill")))
        command = ("sh", "-c", f"RANK=0 {fine}; RANK=1 {killed}; true")
        rings = environment(FRAGTRACE_RING_DIRECTORY=self.folder)
        done = self.launch("run", "--virtual-gpu", CARD, "--", *command, env=rings)
        self.assertRegex(done.stderr, r"(?m)^rank 1 of 2 failed first: killed \(SIGKILL\)$")
        done = self.launch("run", "--virtual-gpu", CARD, "--quiet", "--", *command, env=rings)
        (command,) = re.findall("(?m)^fragtrace: (.*)$", done.stderr)
        self.assertIn("rank 1 of ", self.run_well(["bash", "-c", command], cwd=self.folder).stdout)

    def while_another_run_fails(self, *command):
        """Standard error of a run in whose time and folder another run is killed, and that one's trace."""
        outer = subprocess.Popen(
            [LAUNCHER, "run", *command[:-1], "--", "sh", "-c", f"read line; {command[-1]}"],
            cwd=self.folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(outer.kill)
        before = set(traces(self.folder))
        self.launch("run", "--virtual-gpu", CARD, "--", *self.client(20, "kill"), expected=137)
        (other,) = set(traces(self.folder)) - before
        _, errors = outer.communicate("go on\n", timeout=60)
        self.assertEqual(outer.returncode, 0, errors)
        return errors, other

    def test_traces_of_another_run_in_the_same_folder_at_the_same_time_are_left_out(self):
        well = " ".join(self.client())
        errors, other = self.while_another_run_fails("--virtual-gpu", CARD, well)
        self.assertNotIn("failed first", errors)
        self.assertNotIn(other.name, errors)
        self.assertRegex(errors, "(?m)^fragtrace: 1 trace of job [0-9a-f]{12}:$")
        errors, other = self.while_another_run_fails("--virtual-gpu", CARD, "--quiet", well)
        self.assertNotIn(other.name, errors)
        self.assertRegex(errors, r"^fragtrace: \S*fraganalyze \S+\.ftrace\n$")
        errors, _ = self.while_another_run_fails("true")
        self.assertEqual(
            errors,
            f"fragtrace: no trace of this run in {self.folder}, only traces that other runs of fragtrace "
            "wrote there meanwhile: 1\n",
        )

    def test_quiet_absorbs_the_rings_of_killed_processes(self):
        rings = self.folder / "rings"
        rings.mkdir()
        done = self.launch(
            "run",
            "--quiet",
            "--virtual-gpu",
            CARD,
            "--",
            *self.client(20, "kill"),
            env=environment(FRAGTRACE_RING_DIRECTORY=rings),
            expected=137,
        )
        self.assertEqual(list(rings.iterdir()), [])
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        (trace,) = traces(self.folder)
        self.assertEqual(self.report(trace)["source"]["ended"], "killed")
        self.assertIn("killed (SIGKILL)", self.run_well([ANALYZER, "list", trace]).stdout)
        facts = self.run_well([ANALYZER, "dump", "--facts", trace]).stdout
        self.assertRegex(facts, r"(?m)^end\.signal_seen_ns\s+\d+$")
        allocations = self.run_well([ANALYZER, "dump", trace]).stdout.count(" device_alloc ")
        self.assertGreaterEqual(allocations, 20)

    def test_clean_removes_only_the_files_of_dead_processes(self):
        rings = self.folder / "rings"
        rings.mkdir()
        env = environment(FRAGTRACE_RING_DIRECTORY=rings)
        # Recorded without the launcher, which would absorb the ring.
        run(
            self.client(20, "kill"),
            env=environment(CARD, record_to=self.folder, FRAGTRACE_RING_DIRECTORY=rings),
        )
        (ring,) = rings.glob("*.ring")
        (self.folder / "a.99999999.part2.ftrace.tmp").touch()
        kept = [
            rings / f"fragtrace-0-{os.getpid()}-1.ring",
            rings / "fragtrace-notes.txt",
            self.folder / f"a.{os.getpid()}.part2.ftrace.tmp",
        ]
        for path in kept:
            path.touch()
        # The header of a trace of another host that shares this folder: its process may run there.
        other_host = b"FTRACE\r\n".ljust(340, b"\0") + b"elsewhere".ljust(172, b"\0")
        (self.folder / "a.99999999.part3.ftrace.tmp").write_bytes(other_host)
        (rings / "fragtrace-0-99999998-1.ring").symlink_to(kept[1])
        where = (rings, self.folder)
        before = sorted(self.folder.rglob("*"))
        by_itself = self.launch("clean", "--dry-run", "--age", "0", env=env).stdout
        self.assertIn(f"{ring}  ", by_itself)
        said = self.launch("clean", "--dry-run", "--age", "0", *where).stdout
        self.assertIn("2 would go", said)
        self.assertIn("0 removed", self.launch("clean", *where).stdout)  # they are too new
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        said = self.launch("clean", "--age", "0s", *where).stdout
        self.assertIn(f"{ring}  ", said)
        self.assertIn("2 removed", said)
        self.assertEqual(
            set(before) - set(self.folder.rglob("*")), {ring, self.folder / "a.99999999.part2.ftrace.tmp"}
        )
        for bad in (["--age", "soon"], ["--age", "nan"], ["/nonexistent"], ["--wrong"]):
            done = self.launch("clean", *bad, expected=2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_with_many_traces_the_first_20_are_listed_and_the_rest_counted(self):
        line = " ".join(self.client(1))
        done = self.launch(
            "run", "--virtual-gpu", CARD, "--", "sh", "-c", f"for i in $(seq 23); do {line} & done; wait"
        )
        self.assertEqual(len(traces(self.folder)), 23)
        listed = done.stderr[done.stderr.index("fragtrace: 23 traces of job ") :].splitlines()
        self.assertEqual(len(listed), 22, done.stderr)
        self.assertEqual(listed[-1], "  and 3 more")

    def test_the_list_of_a_folder_is_json_too_and_leaves_other_jobs_out(self):
        for rank in (0, 1):
            self.launch(
                "run", "--quiet", "--virtual-gpu", CARD, "--", *self.client(), env=environment(RANK=rank)
            )
        (self.folder / "foreign.ftrace").write_text("not a trace")
        done = self.run_well([ANALYZER, "list", self.folder, "--json", "-"], 2)
        self.assertIn("1 of 3 traces cannot be read", done.stderr)
        (foreign,) = json.loads(done.stdout)["unreadable"]
        self.assertEqual(foreign["file"], "foreign.ftrace")
        self.assertIn("foreign.ftrace: is not a trace", foreign["reason"])
        listed = sorted(json.loads(done.stdout)["traces"], key=lambda trace: trace["rank"])
        self.assertEqual(
            [(trace["rank"], trace["ended"], trace["events_lost"], trace["damaged"]) for trace in listed],
            [(0, "normal", 0, False), (1, "normal", 0, False)],
        )
        job = listed[1]["job"]
        self.assertNotEqual(job, listed[0]["job"])
        done = self.run_well([ANALYZER, "list", self.folder, "--job", job], 2)
        self.assertTrue(done.stdout.startswith(f"1 trace of job {job}:\n"), done.stdout)
        self.assertIn(", rank 1, ", done.stdout)
        (self.folder / "empty").mkdir()
        done = self.run_well([ANALYZER, "list", self.folder / "empty"], expected=2)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_traces_of_a_run_carry_its_job(self):
        self.launch("run", "--quiet", "--virtual-gpu", CARD, "--", *self.client())
        facts = self.run_well([real_process.ANALYZER, "dump", self.only_trace(), "--facts"]).stdout
        self.assertRegex(facts, r"FRAGTRACE_JOB\b.*[0-9a-f]{12}")


if __name__ == "__main__":
    real_process.main()
