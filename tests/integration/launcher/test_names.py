"""Who is who: names of traces and folders, ranks from launchers and NCCL, helper processes, generations."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import real_process
from real_process import ANALYZER, LAUNCHER, environment, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "control" / "client.py"
TREE = real_process.SOURCE / "tests" / "integration" / "launcher" / "programs" / "process_tree.py"
NCCL = real_process.SOURCE / "tests" / "integration" / "launcher" / "programs" / "communicators.py"
CARD = "1GiB,context=0"
PLACES = re.compile(
    r"RANK|SIZE|PROCID|LOCALID|NTASKS|TASK|JOB|RESTART|RUN_ID|APID|NAMESPACE|ALPS", re.IGNORECASE
)
HOST = os.uname().nodename.partition(".")[0]
# A host's name that is a number is not used as it is.
HOST = f"host{os.uname().nodename.replace('.', '-')}" if HOST.isdigit() or not HOST else HOST


def clean_environment(**variables):
    """An environment without a place in a job."""
    env = {name: value for name, value in environment(CARD).items() if not PLACES.search(name)}
    return env | {name: str(value) for name, value in variables.items()}


def new_host_name(name):
    """A command that runs the rest of its arguments under another host name; None if that is not allowed."""
    if shutil.which("unshare") is None or shutil.which("hostname") is None:
        return None
    command = ["unshare", "--uts", "--map-root-user", "sh", "-c", 'hostname "$0" && exec "$@"', name]
    done = subprocess.run([*command, "uname", "-n"], capture_output=True, text=True, check=False)
    return command if done.stdout.strip() == name else None


class WhoIsWho(real_process.RealProcessTest):
    def record(self, *command, expected=0, output=None, options=(), **variables):
        return self.run_well(
            [LAUNCHER, "run", "--quiet", "-o", output or self.folder, *options, "--", *command],
            expected,
            env=clean_environment(FRAGTRACE_VIRTUAL_GPU=CARD, **variables),
            cwd=self.folder,
        )

    def client(self, *steps):
        return [sys.executable, CLIENT, *(steps or ("alloc=8192",))]

    def job(self, folder=None):
        return json.loads(self.run_well([ANALYZER, folder or self.folder, "--json", "-"]).stdout)

    def facts(self, trace):
        lines = self.run_well([ANALYZER, "dump", trace, "--facts"]).stdout.splitlines()
        return dict(line.split("\t", 1) for line in lines if "\t" in line)

    # ---- names ----------------------------------------------------------------------------------

    def test_a_name_has_program_host_and_process_and_the_rank_of_a_job(self):
        self.record(*self.client())
        trace = self.only_trace()
        self.assertRegex(trace.name, rf"^client\.{re.escape(HOST)}\.\d+\.ftrace$")
        trace.unlink()
        self.record(*self.client(), RANK=12)
        self.assertRegex(self.only_trace().name, rf"^client\.{re.escape(HOST)}\.rank12\.\d+\.ftrace$")

    def test_two_hosts_with_equal_process_ids_in_one_folder_are_two_processes(self):
        commands = [new_host_name(name) for name in ("alpha.cluster", "beta.cluster")]
        if None in commands:
            self.skipTest("no other host name: unshare --uts is not allowed here")
        names = []
        # A process namespace gives both processes the same id.
        same_pid = ["unshare", "--pid", "--fork", "--mount-proc"]
        for command in commands:
            self.record(*command, *same_pid, *self.client())
            names = [trace.name for trace in traces(self.folder)]
        pids = {name.split(".")[2] for name in names}
        self.assertEqual([name.split(".")[1] for name in names], ["alpha", "beta"])
        self.assertEqual((len(names), len(pids)), (2, 1), names)
        job = self.job()["processes"]
        self.assertEqual([row["host"] for row in job], ["alpha.cluster", "beta.cluster"])
        self.assertEqual([row["ended"] for row in job], ["normal", "normal"])
        table = self.run_well([ANALYZER, self.folder]).stdout
        self.assertIn("alpha.cluster: ", table)
        self.assertIn("beta.cluster: ", table)

    def test_a_process_in_another_container_is_not_called_dead_and_keeps_its_ring(self):
        container = self.container()
        env = environment(CARD, record_to=self.folder)
        # The first process of a namespace needs a parent there, to end as usual.
        steps = self.client("alloc=8192", "churn=20", "wait=go")
        with subprocess.Popen(
            [*container, "sh", "-c", '"$@"; exit', "sh", *map(str, steps)], env=env
        ) as program:
            trace, ring = self.once_there("*.ftrace", "host.boot_id"), self.once_there("*.ring")
            listed = self.run_well([ANALYZER, "list", "--absorb", trace, "--json", "-"]).stdout
            self.assertEqual(json.loads(listed)["traces"][0]["ended"], "not_recorded")
            self.assertIn("end not recorded", self.run_well([ANALYZER, trace]).stdout)
            cleaned = self.run_well([LAUNCHER, "clean", "--age", "0", self.folder], env=clean_environment())
            self.assertIn("0 removed", cleaned.stdout)
            self.assertTrue(ring.exists())
            (self.folder / "go").touch()
        self.assertEqual(program.returncode, 0)
        listed = self.run_well([ANALYZER, "list", trace, "--json", "-"]).stdout
        found = json.loads(listed)["traces"][0]
        self.assertEqual((found["ended"], found["events_lost"], found["damaged"]), ("normal", 0, False))

    def once_there(self, pattern, fact=""):
        """The file of this name, once it is there and, if it is a trace, has this fact."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            for path in self.folder.glob(pattern):
                if not fact or fact in self.facts(path):
                    return path
            time.sleep(0.05)
        self.fail(f"no {pattern} in two minutes")

    def test_patterns_name_a_folder_per_process(self):
        pattern = self.folder / "50%%" / "%q{KIND}-%r" / "%h" / "%p"
        done = self.record(*self.client(), output=pattern, RANK=3, KIND="a b/c")
        (trace,) = self.folder.rglob("*.ftrace")
        pid = trace.name.split(".")[3]
        self.assertEqual(trace.parent, self.folder / "50%" / "a_b_c-3" / HOST / pid)
        self.assertIn(str(trace.relative_to(self.folder)), done.stderr)
        self.assertNotIn("no trace", done.stderr)

    def test_unknown_values_of_patterns_are_named_so(self):
        self.record(*self.client(), output="%q{NOT_SET}/%r")
        self.assertTrue(traces(self.folder / "unknown" / "unknown"))

    def test_patterns_work_without_the_launcher_and_in_a_folder_with_a_percent_sign(self):
        folder = self.folder / "100%"
        folder.mkdir()
        env = environment(CARD, record_to="%h", **{name: "" for name in os.environ if PLACES.search(name)})
        env["FRAGTRACE_RING_DIRECTORY"] = str(self.folder)
        self.run_well(self.client(), env=env, cwd=folder)
        self.assertEqual(len(traces(folder / HOST)), 1)
        self.run_well([LAUNCHER, "run", "--quiet", *self.client()], env=clean_environment(), cwd=folder)
        self.assertEqual(len(traces(folder)), 1)

    def test_the_report_names_all_folders_of_a_run(self):
        program = (
            "import os, subprocess, sys\n"
            "for rank in '01':\n"
            "    subprocess.run(sys.argv[1:], env=os.environ | {'RANK': rank}, check=True)\n"
        )
        done = self.record(sys.executable, "-c", program, *self.client(), output="r %r")
        self.assertEqual(len(traces(self.folder / "r 0") + traces(self.folder / "r 1")), 2)
        (line,) = done.stderr.splitlines()
        self.assertTrue(line.endswith(r"/r\ */*.ftrace"), line)

    def test_a_malformed_pattern_is_refused_before_the_program_starts(self):
        for pattern in ("%x", "a%", "%q{", "%q{}"):
            with self.subTest(pattern=pattern):
                done = self.record("touch", "started", output=pattern, expected=2)
                self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
                done = self.run_well(
                    [LAUNCHER, "run", "--", "touch", "started"],
                    2,
                    env=clean_environment(FRAGTRACE_OUTPUT=pattern),
                    cwd=self.folder,
                )
                self.assertIn("FRAGTRACE_OUTPUT", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    # ---- places in a job ------------------------------------------------------------------------

    def assert_place(self, variables, rank, local_rank, size, source):
        with self.subTest(variables=variables):
            self.record(*self.client(), **variables)
            (row,) = self.job()["processes"]
            found = (row["rank"], row["local_rank"], row["world_size"], row["rank_source"])
            self.assertEqual(found, (rank, local_rank, size, source))
            for trace in traces(self.folder):
                trace.unlink()
            return row

    def test_each_launcher_tells_its_ranks(self):
        rows = [
            ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
            ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
            ("PALS_RANKID", "PALS_LOCAL_RANKID", "PMI_SIZE"),
            ("FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"),
            ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
            ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
        ]
        for rank, local_rank, size in rows:
            self.assert_place({rank: 5, local_rank: 1, size: 8}, 5, 1, 8, rank)
        self.assert_place({"PMIX_RANK": 2}, 2, None, None, "PMIX_RANK")
        self.assert_place({"ALPS_APP_PE": 2}, 2, None, None, "ALPS_APP_PE")

    def test_the_innermost_launcher_counts(self):
        self.assert_place(
            {"RANK": 9, "WORLD_SIZE": 16, "SLURM_PROCID": 1, "SLURM_NTASKS": 2}, 9, None, 16, "RANK"
        )
        self.assert_place(
            {"OMPI_COMM_WORLD_RANK": 3, "SLURM_PROCID": 0}, 3, None, None, "OMPI_COMM_WORLD_RANK"
        )
        self.assert_place({"RANK": "x", "SLURM_PROCID": "1"}, 1, None, None, "SLURM_PROCID")
        self.assert_place({"RANK": ""}, None, None, None, None)

    def test_a_local_rank_is_the_rank_only_on_the_first_node(self):
        self.assert_place({"NODE_RANK": 0, "LOCAL_RANK": 2, "WORLD_SIZE": 4}, 2, 2, 4, "LOCAL_RANK")
        self.assert_place({"NODE_RANK": 1, "LOCAL_RANK": 2, "WORLD_SIZE": 8}, None, 2, 8, None)

    def test_job_and_generation_are_recorded(self):
        row = self.assert_place(
            {"RANK": 0, "SLURM_JOB_ID": 77, "TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_RESTART_COUNT": 2},
            *(0, None, None, "RANK"),
        )
        self.assertEqual((row["job_id"], row["generation"]), ("77", 2))
        row = self.assert_place({"TORCHELASTIC_RUN_ID": "none", "SLURM_RESTART_COUNT": 1}, *[None] * 4)
        self.assertEqual((row["job_id"], row["generation"]), (None, 1))

    def test_the_largest_communicator_gives_the_rank(self):
        for how in ("linked", "looked-up"):
            with self.subTest(how=how):
                self.record(sys.executable, NCCL, how, "2:1", "4:3", "2:0", "4:1")
                trace = self.only_trace()
                self.assertNotIn("rank", trace.name)
                self.assertEqual(self.facts(trace)["nccl.rank"], "3 of 4")
                (row,) = self.job()["processes"]
                self.assertEqual((row["rank"], row["world_size"], row["rank_source"]), (3, 4, "nccl"))
                trace.unlink()

    def test_communicators_that_fail_and_those_of_a_parent_give_no_rank(self):
        self.record(sys.executable, NCCL, "linked", "2:5", "0:0")
        self.assertNotIn("nccl.rank", self.facts(self.only_trace()))
        self.only_trace().unlink()
        self.record(sys.executable, NCCL, "linked", "4:2", "fork")
        ranks = sorted(str(row["rank"]) for row in self.job()["processes"])
        self.assertEqual(ranks, ["2", "None"])

    # ---- helper processes, generations, copies --------------------------------------------------

    def test_processes_below_a_recorded_rank_are_its_helpers(self):
        for how in ("fork", "spawn", "grandchild"):
            with self.subTest(how=how):
                self.record(sys.executable, TREE, how, RANK=1, WORLD_SIZE=2, LOCAL_RANK=1)
                names = sorted(trace.name.split(".")[2] for trace in traces(self.folder))
                self.assertEqual(names[-1], "rank1")
                rows = self.job()["processes"]
                self.assertEqual([row["rank"] for row in rows], [1] + [None] * (len(rows) - 1))
                self.assertEqual({row["helper_of_rank"] for row in rows[1:]}, {1})
                self.assertIn("(helper of rank 1) ", self.run_well([ANALYZER, self.folder]).stdout)
                listed = self.run_well([ANALYZER, "list", self.folder]).stdout
                self.assertIn(", helper of rank 1, ", listed)
                for trace in traces(self.folder):
                    trace.unlink()

    def test_a_child_that_uses_the_card_before_its_parent_is_a_helper_too(self):
        self.record(sys.executable, TREE, "child-first", RANK=1)
        self.assertEqual(len([name for name in traces(self.folder) if "rank1" in name.name]), 2)
        self.assertEqual(
            [(row["rank"], row["helper_of_rank"]) for row in self.job()["processes"]], [(1, None), (None, 1)]
        )

    def test_ranks_below_another_rank_stay_ranks(self):
        self.record(sys.executable, TREE, "other-rank", RANK=0)
        self.assertEqual([row["rank"] for row in self.job()["processes"]], [0, 1])

    def test_generations_are_kept_apart_each_with_its_first_failure(self):
        for generation, rank, steps in ((0, 0, ()), (0, 1, ("refused",)), (1, 0, ()), (1, 1, ("refused",))):
            self.record(*self.client("alloc=8192", *steps), RANK=rank, TORCHELASTIC_RESTART_COUNT=generation)
        job = self.job()
        self.assertEqual(
            [(row["generation"], row["rank"]) for row in job["processes"]], [(0, 0), (0, 1), (1, 0), (1, 1)]
        )
        failures = [(row["generation"], row["rank"], row["of"]) for row in job["first_failures"]]
        self.assertEqual(failures, [(0, 1, 2), (1, 1, 2)])
        self.assertEqual(job["first_failure"], job["first_failures"][0])
        lines = self.run_well([ANALYZER, self.folder]).stdout.splitlines()
        firsts = [line.split(" first")[0] for line in lines if " ran out of memory first" in line]
        self.assertEqual(
            firsts, [f"generation {generation}: rank 1 of 2 ran out of memory" for generation in (0, 1)]
        )
        rows = [line.split()[0] for line in lines if re.match(r" *(gen\.rank|[01]\.[01]) ", line)]
        self.assertEqual(rows, ["gen.rank", "0.0", "0.1", "1.0", "1.1"])

    def test_the_copies_of_a_flight_recorder_are_no_processes(self):
        self.record(*self.client("alloc=4194304", "refused"), options=["--flight-recorder"], RANK=0)
        self.record(*self.client("alloc=8192"), options=["--flight-recorder"], RANK=1)
        copies = [trace.name for trace in traces(self.folder) if ".oom1." in trace.name]
        self.assertEqual(len(copies), 1)
        job = self.job()
        self.assertEqual([row["rank"] for row in job["processes"]], [0, 1])
        self.assertEqual([row["other_files"] for row in job["processes"]], [copies, []])
        self.assertEqual(job["processes"][0]["ooms"], 1)
        self.assertEqual(job["first_failure"]["of"], 2)
        self.assertIn("copy (oom)", self.run_well([ANALYZER, "list", self.folder]).stdout)

    def test_rings_of_killed_children_are_absorbed_in_all_folders(self):
        rings = self.folder / "rings"
        rings.mkdir()
        self.record(sys.executable, TREE, "killed", output="%p", RANK=0, FRAGTRACE_RING_DIRECTORY=rings)
        self.assertEqual(len(list(self.folder.rglob("*.ftrace"))), 2)
        self.assertEqual(list(rings.iterdir()), [])


if __name__ == "__main__":
    real_process.main()
