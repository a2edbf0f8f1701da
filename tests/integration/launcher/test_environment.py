"""Values, sizes, paths and sanitized programs that the launcher accepts or refuses."""

import os
import pathlib
import re
import shutil
import sys

import real_process
from real_process import ANALYZER, LAUNCHER, environment, run

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
CLIENT = real_process.SOURCE / "tests" / "integration" / "process_life" / "client.py"
CARD = "1GiB,context=0"
BAD_VALUES = {
    "FRAGTRACE_OUTPUT": "x" * 5000,
    "FRAGTRACE_OFF": "maybe",
    "FRAGTRACE_STACKS": "some",
    "FRAGTRACE_STACK_DEPTH": "0",
    "FRAGTRACE_RING_EVENTS": "many",
    "FRAGTRACE_RING_DIRECTORY": "y" * 5000,
    "FRAGTRACE_COMPRESSION": "20",
    "FRAGTRACE_FOLLOW_FORK": "2",
    "FRAGTRACE_NVTX": "never",
    "FRAGTRACE_START": "later",
    "FRAGTRACE_START_AFTER": "1s",
    "FRAGTRACE_STOPPED_STACKS": "x",
    "FRAGTRACE_SIGNAL": "KILL",
    "FRAGTRACE_MIN_BYTES": "1XB",
    "FRAGTRACE_SIZE_LIMIT": "1KB",
    "FRAGTRACE_FLIGHT": "much",
    "FRAGTRACE_KEEP_FREE": "100%",
    "FRAGTRACE_VIRTUAL_GPU": "24XiB",
    "FRAGTRACE_VIRTUAL_GPU_CARDS": "a/b",
    "FRAGTRACE_VIRTUAL_GPU_DEBUG": "maybe",
    "FRAGTRACE_VIRTUAL_GPU_HOST": "64",
    "FRAGTRACE_VIRTUAL_GPU_NCCL_LIMIT": "0",
    "FRAGTRACE_VIRTUAL_GPU_PROCESSES": "4242:1GiB",
}


class Environment(real_process.RealProcessTest):
    def client(self, count=20, ending="return"):
        return [sys.executable, str(CLIENT), "/dev/null", str(count), ending]

    def refused(self, command, expected=2, **options):
        """Prints one line and starts nothing: the command would have created the file `started`."""
        done = self.run_well(
            [*command, "--", "touch", self.folder / "started"], expected, **{"cwd": self.folder, **options}
        )
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("fragtrace: "), done.stderr)
        self.assertFalse((self.folder / "started").exists())
        return done.stderr

    def facts(self, trace):
        lines = self.run_well([ANALYZER, "dump", "--facts", trace]).stdout.splitlines()
        return dict(line.split("\t", 1) for line in lines if "\t" in line)

    # ---- values ---------------------------------------------------------------------------------

    def test_each_variable_of_the_recorder_is_in_its_readme_and_in_these_tests(self):
        text = (real_process.SOURCE / "preload" / "recorder" / "options.def").read_text()
        names = set(re.findall(r'^FT_OPTION\("(FRAGTRACE_\w+)"', text, re.MULTILINE))
        self.assertEqual(names, {name for name in BAD_VALUES if "_VIRTUAL_GPU" not in name})
        readme = (real_process.SOURCE / "preload" / "README.md").read_text()
        self.assertEqual(names - set(re.findall(r"FRAGTRACE_[A-Z_]+", readme)), set())

    def test_a_bad_value_in_the_environment_stops_the_launcher(self):
        for name, value in BAD_VALUES.items():
            with self.subTest(name=name):
                said = self.refused([LAUNCHER, "run"], env=environment(**{name: value}))
                self.assertIn(name, said)
                self.assertIn(value[:80], said)
                self.assertRegex(said, r"give |expected ")

    def test_values_that_are_nearly_good_are_refused_too(self):
        for name, values in {
            "HOST": ("-1", "1x", "+1", "0x1", "99999999999999999999"),
            "NCCL_LIMIT": ("-1", "86400", "1.5", "1s"),
            "PROCESSES": ("1", "1:", ":1", "1:2,", "1:2;3:4", "0:1", "x:1", "1:-1", ",".join(["1:2"] * 17)),
            "DEBUG": ("2", "ON"),
            "CARDS": ("x" * 33, "a b"),
        }.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    env = environment(**{f"FRAGTRACE_VIRTUAL_GPU_{name}": value})
                    self.refused([LAUNCHER, "run"], env=env)
        good = {"HOST": "63", "NCCL_LIMIT": "86399", "PROCESSES": ",".join(["1:2"] * 16), "DEBUG": "off"}
        self.run_well(
            [LAUNCHER, "run", "--virtual-gpu", CARD, "--quiet", "--", *self.client(1)],
            cwd=self.folder,
            env=environment(**{f"FRAGTRACE_VIRTUAL_GPU_{name}": value for name, value in good.items()}),
        )

    def test_an_empty_variable_counts_as_unset_and_an_option_replaces_a_bad_one(self):
        self.run_well(
            [LAUNCHER, "run", "--", "true"],
            cwd=self.folder,
            env=environment(**{name: "" for name in BAD_VALUES}),
        )
        self.run_well(
            [LAUNCHER, "run", "--stacks", "none", "--", "true"],
            cwd=self.folder,
            env=environment(FRAGTRACE_STACKS="some"),
        )

    def test_control_characters_of_a_value_do_not_reach_the_terminal(self):
        for name in ("FRAGTRACE_STACKS", "FRAGTRACE_VIRTUAL_GPU"):
            said = self.refused([LAUNCHER, "run"], env=environment(**{name: "a\x1b[31m\nb"}))
            self.assertNotIn("\x1b", said)

    def test_sizes_mean_the_same_in_options_variables_and_cards(self):
        for text, size in (
            ("1GB", 10**9),
            ("1GiB", 2**30),
            ("1G", 2**30),
            ("1.5 GiB", 3 * 2**29),
            ("20mb", 20 * 10**6),
            ("1073741824", 2**30),
        ):
            with self.subTest(text=text):
                folder = self.folder / text
                common = [LAUNCHER, "run", "--quiet", "--virtual-gpu", CARD, "-o", folder]
                self.run_well(
                    [*common, "--size-limit", text, "--", *self.client()],
                    env=environment(FRAGTRACE_MIN_BYTES=text),
                )
                facts = self.facts(self.only_trace(folder))
                self.assertEqual(
                    (facts["options.size_limit"], facts["options.min_bytes"]), (str(size), str(size))
                )
                self.assertNotIn("options.rejected", facts)
                self.run_well(
                    [
                        LAUNCHER,
                        "run",
                        "--quiet",
                        "--virtual-gpu",
                        f"{text},context=0",
                        "-o",
                        folder / "card",
                        "--",
                        *self.client(1),
                    ]
                )
                card = self.report(self.only_trace(folder / "card"))["devices"][0]
                self.assertEqual(card["total_bytes"], size)

    def test_without_the_launcher_a_bad_value_is_reported_and_the_default_used(self):
        self.run_well(
            self.client(), env=environment(card=CARD, record_to=self.folder, FRAGTRACE_SIZE_LIMIT="1XB")
        )
        self.assertEqual(self.facts(self.only_trace())["options.rejected"], "FRAGTRACE_SIZE_LIMIT")

    # ---- paths ----------------------------------------------------------------------------------

    def test_traces_can_be_written_to_folders_with_special_characters(self):
        for name in ("a b", "a:b", "a;b'c\"d", "-dash", "[x]", "tab\there", "über"):
            with self.subTest(name=name):
                done = self.run_well(
                    [LAUNCHER, "run", "--virtual-gpu", CARD, f"--output={name}", "--", *self.client()],
                    cwd=self.folder,
                )
                trace = self.only_trace(self.folder / name)
                self.assertIn(" events, ", done.stderr)
                self.assertIn("1 trace of job", done.stderr)
                done = self.run_well(
                    [
                        LAUNCHER,
                        "run",
                        "--quiet",
                        "--virtual-gpu",
                        CARD,
                        "--output",
                        f"./{name}/deeper/..",
                        "--",
                        *self.client(),
                    ],
                    cwd=self.folder,
                )
                trace.unlink()
                command = done.stderr.removeprefix("fragtrace: ").strip()
                self.run_well(["bash", "-c", command], cwd=self.folder)

    def test_an_installation_that_ld_preload_cannot_name_is_refused(self):
        for name in ("a b", "a:b", "a;b"):
            with self.subTest(name=name):
                prefix = self.folder / name
                (prefix / "bin").mkdir(parents=True)
                shutil.copy(LAUNCHER, prefix / "bin")
                shutil.copytree(LAUNCHER.parents[1] / "lib", prefix / "lib", symlinks=True)
                said = self.refused([prefix / "bin" / "fragtrace", "run"])
                self.assertIn("LD_PRELOAD cannot name", said)
                self.run_well([prefix / "bin" / "fragtrace", "run", "--no-record", "--", "true"])

    def test_programs_and_arguments_with_any_characters_are_started(self):
        program = self.folder / "my program:1"
        program.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
        program.chmod(0o755)
        words = ["--help", "", "a b", "[1,2]", "--", "-x=1", "line\nline", "{}"]
        for mark in ([], ["--"]):
            done = self.run_well([LAUNCHER, "run", "--no-record", *mark, program, *words])
            self.assertEqual(done.stdout, "".join(f"<{word}>" for word in words))

    def test_a_script_without_interpreter_line_runs_a_missing_interpreter_is_named(self):
        script = self.folder / "script"
        script.write_text("echo ran $1\n")
        script.chmod(0o755)
        done = self.run_well([LAUNCHER, "run", "--no-record", "--", script, "well"])
        self.assertEqual(done.stdout, "ran well\n")
        script.write_text("#!/no/such/interpreter\n")
        done = self.run_well([LAUNCHER, "run", "--", script], expected=127, cwd=self.folder)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("cannot be run", done.stderr)

    # ---- the address sanitizer ------------------------------------------------------------------

    def sanitized(self, *arguments, **options):
        program = self.folder / "sanitized"
        if not program.exists():
            built = run(["cc", "-g", "-fsanitize=address", "-o", program, PROGRAMS / "sanitized.c", "-ldl"])
            needed = run(["sh", "-c", f"ldd {program}"]).stdout
            if built.returncode != 0 or "libasan" not in needed:
                self.skipTest("the compiler has no shared address sanitizer")
        return run(
            [
                LAUNCHER,
                "run",
                "--quiet",
                "--virtual-gpu",
                CARD,
                "-o",
                self.folder / "out",
                "--",
                program,
                *arguments,
            ],
            cwd=self.folder,
            **options,
        )

    def test_a_program_with_the_address_sanitizer_starts_and_is_recorded(self):
        done = self.sanitized()
        self.assertEqual((done.returncode, done.stdout), (0, "up\n"), done.stderr)
        done = self.sanitized("cuda")
        self.assertEqual(done.returncode, 0, done.stderr)
        events = [
            line
            for line in self.events(self.only_trace(self.folder / "out"))
            if "cuMem" in line or "device" in line
        ]
        self.assertGreaterEqual(len(events), 40)

    def test_the_sanitizer_still_finds_errors_and_keeps_the_users_options(self):
        for options, code in ({}, 1), ({"ASAN_OPTIONS": "exitcode=9:detect_leaks=0"}, 9):
            done = self.sanitized("overflow", env=environment(**options))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("heap-buffer-overflow", done.stderr)

    def test_programs_that_a_sanitized_one_starts_are_not_sanitized(self):
        done = self.sanitized("shell", "exec cat /proc/self/maps")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("libfragtrace.so", done.stdout)
        self.assertNotIn("libasan", done.stdout)

    def test_a_full_disk_is_reported_before_the_program_starts(self):
        for share, said in (("99%", True), ("0", False), ("1MiB", False)):
            done = self.run_well(
                [
                    LAUNCHER,
                    "run",
                    "--quiet",
                    "--keep-free",
                    share,
                    "-o",
                    self.folder,
                    "--",
                    "sh",
                    "-c",
                    "echo here >&2",
                ]
            )
            first = done.stderr.splitlines()[0]
            self.assertEqual(first.startswith("fragtrace: little will be recorded"), said, first)
        for bad in ("100%", "-1", "half", "5%%"):
            done = self.run_well([LAUNCHER, "run", "--keep-free", bad, "--", "true"], 2)
            self.assertIn("--keep-free cannot be", done.stderr)

    @real_process.not_sanitized
    def test_a_sanitizer_that_the_user_preloads_stays_first(self):
        runtime = run(["sh", "-c", "readlink -f $(cc -print-file-name=libasan.so)"]).stdout.strip()
        if not os.path.isabs(runtime):
            self.skipTest("the compiler has no shared address sanitizer")
        done = self.run_well(
            [
                "env",
                f"LD_PRELOAD={runtime}",
                "ASAN_OPTIONS=detect_leaks=0",
                LAUNCHER,
                "run",
                "--virtual-gpu",
                CARD,
                "-o",
                self.folder,
                "--",
                sys.executable,
                "-c",
                "import os; print(os.environ['LD_PRELOAD'])",
            ]
        )
        self.assertTrue(done.stdout.startswith(f"{runtime}:"), done.stdout)


if __name__ == "__main__":
    real_process.main()
