"""`fragtrace doctor`: what it says about machines and programs."""

import json
import pathlib
import resource
import sys

import real_process
from launching import fake_python
from real_process import BUILD, LAUNCHER, SOURCE, VIRTUAL_GPU, environment, run


class Doctor(real_process.RealProcessTest):
    def doctor(self, *arguments, expected=0, **options):
        """{topic: (state, text, advice)}; the last one of a topic."""
        options.setdefault("cwd", self.folder)
        done = self.run_well([LAUNCHER, "doctor", "--json", *arguments], expected, **options)
        self.assertEqual(done.stderr, "")
        document = json.loads(done.stdout)
        self.assertEqual(document["will_record"], expected == 0)
        return {one["topic"]: (one["state"], one["text"], one["advice"]) for one in document["findings"]}

    def write_program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def interpreter(self, version, *more):
        return self.write_program("python3", fake_python(version, *more))

    # ---- the machine ----------------------------------------------------------------------------

    def test_the_text_names_each_topic_with_its_state_and_ends_with_a_verdict(self):
        done = self.run_well([LAUNCHER, "doctor", "--", "true"], cwd=self.folder)
        self.assertRegex(done.stdout, r"(?m)^  ok +fragtrace +fragtrace \d+\.\d+\.\d+: recorder and analyzer")
        self.assertRegex(done.stdout, r"(?m)^  ok +program +\S+/true can be recorded")
        self.assertRegex(done.stdout, r"Recording will work[^\n]*\n\Z")
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def test_without_a_driver_it_points_at_the_virtual_gpu(self):
        state, text, advice = self.doctor("--", "true")["driver"]
        if state == "ok":
            self.skipTest(f"this machine has a card: {text}")
        self.assertEqual(state, "note")
        self.assertIn("--virtual-gpu", advice)

    def test_installed_programs_find_the_virtual_gpu_and_say_if_it_is_missing(self):
        prefix = self.folder / "installed"
        for component in ("fragtrace", "virtual_gpu"):
            self.run_well(["cmake", "--install", BUILD, "--component", component, "--prefix", prefix])
            done = run([prefix / "bin" / "fragtrace", "doctor", "--json", "--", "true"])
            found = {one["topic"]: one for one in json.loads(done.stdout)["findings"]}
            if found["driver"]["state"] == "ok":
                self.skipTest("this machine has a card")
            there = component == "virtual_gpu"
            self.assertEqual(found["driver"]["state"], "note" if there else "problem", found["driver"])
            self.assertEqual(done.returncode, 0 if there else 1)

    def test_cards_are_listed_as_the_driver_names_them(self):
        env = environment(LD_LIBRARY_PATH=VIRTUAL_GPU, FRAGTRACE_VIRTUAL_GPU="A100-80GB,count=2")
        state, text, _ = self.doctor("--", "true", env=env)["driver"]
        self.assertEqual(state, "ok")
        self.assertIn("2 usable cards: ", text)
        self.assertEqual(text.count("A100"), 2, text)
        env["CUDA_VISIBLE_DEVICES"] = "7"
        state, text, advice = self.doctor("--", "true", env=env)["driver"]
        self.assertEqual(state, "note")
        self.assertIn("no usable card", text)
        self.assertIn("CUDA_VISIBLE_DEVICES is '7'", advice)

    def test_a_driver_that_crashes_or_is_no_driver_is_a_problem_of_the_driver(self):
        libraries = self.folder / "libraries"
        libraries.mkdir()
        source = self.folder / "driver.c"
        source.write_text(
            "#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n"
        )
        library = libraries / "libcuda.so.1"
        self.run_well(["cc", "-shared", "-fPIC", "-o", library, source])
        found = self.doctor("--", "true", expected=1, env=environment(LD_LIBRARY_PATH=libraries))
        self.assertEqual(found["driver"][0], "problem")
        self.assertIn("crashed", found["driver"][1])
        source.write_text("int nothing;\n")
        self.run_well(["cc", "-shared", "-fPIC", "-o", library, source])
        found = self.doctor("--", "true", env=environment(LD_LIBRARY_PATH=libraries))
        self.assertIn("not a CUDA driver", found["driver"][1])

    def test_bad_settings_and_a_recorder_that_is_switched_off_are_problems(self):
        found = self.doctor("--", "true", expected=1, env=environment(FRAGTRACE_STACKS="some"))
        self.assertEqual(found["settings"][0], "problem")
        self.assertIn("FRAGTRACE_STACKS is 'some'", found["settings"][1])
        found = self.doctor("--", "true", expected=1, env=environment(FRAGTRACE_OFF="1"))
        self.assertIn("FRAGTRACE_OFF", found["settings"][1])

    def test_a_folder_that_cannot_be_written_or_is_too_full_is_a_problem(self):
        found = self.doctor("--", "true", expected=1, env=environment(FRAGTRACE_OUTPUT="/dev/null/traces"))
        self.assertEqual(found["traces"][0], "problem")
        found = self.doctor("--", "true", expected=1, env=environment(FRAGTRACE_KEEP_FREE="99%"))
        self.assertIn("little will be recorded", found["traces"][1])
        missing = self.folder / "not" / "yet"
        found = self.doctor("--", "true", env=environment(FRAGTRACE_OUTPUT=missing))
        self.assertIn(f"Traces go to {missing}", found["traces"][1])
        self.assertFalse(missing.parent.exists())

    def test_the_ring_goes_where_the_recorder_puts_it_and_leaves_nothing(self):
        rings = self.folder / "rings"
        rings.mkdir()
        found = self.doctor("--", "true", env=environment(FRAGTRACE_RING_DIRECTORY=rings))
        self.assertIn(str(rings), found["ring"][1])
        self.assertEqual(list(rings.iterdir()), [])
        found = self.doctor("--", "true", env=environment(FRAGTRACE_RING_DIRECTORY="/proc"))
        self.assertEqual(found["ring"][0], "note")
        self.assertIn("its last events are lost", found["ring"][1])

    @real_process.not_sanitized
    def test_limits_for_files_and_addresses_are_named(self):
        def limit(kind, most):
            return lambda: resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))

        found = self.doctor("--", "true", expected=1, preexec_fn=limit(resource.RLIMIT_FSIZE, 1 << 20))
        self.assertIn("ulimit -f", found["limits"][1])
        found = self.doctor("--", "true", expected=1, preexec_fn=limit(resource.RLIMIT_AS, 8 << 30))
        self.assertIn("ulimit -v", found["limits"][1])
        found = self.doctor("--", "true", preexec_fn=limit(resource.RLIMIT_NOFILE, 32))
        self.assertEqual(found["limits"][0], "note")

    def test_other_preloaded_libraries_are_named(self):
        other = self.folder / "libother.so"
        source = self.folder / "other.c"
        source.write_text("int other_library;\n")
        self.run_well(["cc", "-shared", "-fPIC", "-o", other, source])
        found = self.doctor("--", "true", env=environment(LD_PRELOAD=other))
        self.assertIn(str(other), found["preloads"][1])
        self.assertNotIn("preloads", self.doctor("--", "true"))
        done = self.run_well(
            [LAUNCHER, "doctor", "--json", "--", "true"], env=environment(LD_PRELOAD="/nonexist.so")
        )
        (found,) = [one for one in json.loads(done.stdout)["findings"] if one["topic"] == "preloads"]
        self.assertIn("/nonexist.so cannot be loaded", found["text"])

    # ---- interpreters ---------------------------------------------------------------------------

    def test_an_interpreter_of_this_machine_is_ok_and_gets_the_recorder(self):
        found = self.doctor("--", sys.executable)
        self.assertEqual(found["python"][0], "ok", found["python"])
        version = ".".join(map(str, sys.version_info[:2]))
        self.assertIn(f"Python {version}.", found["python"][1])

    def test_a_script_is_checked_with_its_interpreter(self):
        script = self.write_program("train", f"#!{sys.executable} -u\nraise SystemExit('it was run')\n")
        self.assertEqual(self.doctor("--", script)["python"][0], "ok")

    def test_modules_in_the_current_folder_are_not_run(self):
        for name in ("json", "os", "torch", "importlib"):
            (self.folder / f"{name}.py").write_text("open('run', 'w')\n")
        found = self.doctor("--", sys.executable)
        self.assertEqual(found["python"][0], "ok")
        self.assertFalse((self.folder / "run").exists())

    def test_every_known_version_is_ok_and_every_other_one_says_what_is_missing(self):
        for minor in range(8, 15):
            found = self.doctor("--", self.interpreter(f"3.{minor}.1 (main)"))
            self.assertEqual(found["python"][0], "ok", minor)
        for version in ("3.7.3 (default)", "3.15.0 (main)", "3.14.0 free-threading build (main)"):
            state, text, advice = self.doctor("--", self.interpreter(version))["python"]
            self.assertEqual(state, "note", version)
            self.assertIn("Memory and native stacks are recorded. Python stacks are not", text)
            self.assertEqual("free-threaded" in text, "free-threading" in version)
            self.assertIn("3.8 to 3.14", advice)

    def test_an_interpreter_without_the_recorder_with_32_bits_or_in_pieces_is_a_problem(self):
        for more in ("recorder\tFalse", "bits\t32"):
            found = self.doctor("--", self.interpreter("3.11.2 (main)", more), expected=1)
            self.assertEqual(found["python"][0], "problem", more)
        broken = self.write_program("python3", "#!/bin/sh\necho 'No module named encodings' >&2\nexit 1\n")
        state, text, _ = self.doctor("--", broken, expected=1)["python"]
        self.assertEqual(state, "problem")
        self.assertIn("No module named encodings", text)
        noisy = self.write_program("python3", "#!/bin/sh\nhead -c 100000000 /dev/zero\n")
        self.assertEqual(self.doctor("--", noisy, expected=1)["python"][0], "problem")

    def test_releases_and_kinds_of_pytorch(self):
        def torch(version, cuda="12.4", hip="", library="True"):
            return [
                "module.torch\t/x/torch/__init__.py",
                f"torch.version\t{version}",
                f"torch.cuda\t{cuda}",
                f"torch.hip\t{hip}",
                f"torch.library\t{library}",
            ]

        for lines, state, said in (
            (torch("2.0.1+cu118"), "ok", "PyTorch 2.0.1+cu118 for CUDA 12.4"),
            (torch("2.15.0"), "ok", "are recorded"),
            (torch("2.16.0"), "note", "newer than the tested releases (2.0 to 2.15)"),
            (torch("1.13.1"), "note", "not tested"),
            (torch("2.6.0+cpu", cuda=""), "problem", "without CUDA"),
            (torch("2.6.0", library="False"), "problem", "without CUDA"),
            (torch("2.6.0+rocm", cuda="", hip="6.1"), "problem", "ROCm"),
        ):
            found = self.doctor(
                "--", self.interpreter("3.11.2 (main)", *lines), expected=1 if state == "problem" else 0
            )["pytorch"]
            self.assertEqual(found[0], state, found)
            self.assertIn(said, found[1])
        found = self.doctor("--", self.interpreter("3.11.2 (main)", "module.jax\t/x/jax/__init__.py"))
        self.assertIn("no PyTorch", found["pytorch"][1])
        self.assertIn("jax", found["frameworks"][1])

    def test_the_tested_releases_are_those_of_the_page(self):
        page = (SOURCE / "docs" / "compatibility.md").read_text()
        releases = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| 2.")]
        source = (SOURCE / "preload" / "launcher" / "target.cpp").read_text()
        for name, release in (("kFirstTorchMinor", releases[0]), ("kLastTorchMinor", releases[-1])):
            self.assertIn(f"{name} = {release.split('.')[1]};", source)

    # ---- other programs -------------------------------------------------------------------------

    def test_programs_into_which_no_library_can_be_loaded_are_problems(self):
        source = self.folder / "program.c"
        source.write_text("int main(void) { return 0; }\n")
        static = self.folder / "static"
        self.run_well(["cc", "-static", "-o", static, source])
        found = self.doctor("--", static, expected=1)["program"]
        self.assertIn("linked statically", found[1])
        plain = self.folder / "plain"
        self.run_well(["cc", "-o", plain, source])
        self.assertEqual(self.doctor("--", plain)["program"][0], "ok")
        plain.chmod(0o4755)
        self.assertIn("set-user-id", self.doctor("--", plain, expected=1)["program"][1])
        plain.chmod(0o755)
        content = bytearray(plain.read_bytes())
        content[18:20] = (8).to_bytes(2, "little")  # MIPS
        plain.write_bytes(content)
        self.assertIn("another processor", self.doctor("--", plain, expected=1)["program"][1])
        found = self.doctor("--", "no-such-program", expected=1)["program"]
        self.assertIn("command not found", found[1])

    def test_a_static_runtime_is_named(self):
        source = self.folder / "program.c"
        source.write_text(
            '__attribute__((section(".nv_fatbin"))) int kernels;\n'
            'const char *volatile driver = "libcuda.so.1";\nint main(void) { return driver[0] == 0; }\n'
        )
        program = self.folder / "program"
        self.run_well(["cc", "-o", program, source])
        state, text, _ = self.doctor("--", program)["program"]
        self.assertIn("CUDA's runtime linked into it", text)
        self.assertIn(state, ("ok", "note"))

    def test_damaged_programs_are_answered(self):
        content = pathlib.Path("/bin/true").read_bytes()
        for size in (3, 20, 63, 64, 100, 600):
            self.write_program("cut", "")
            (self.folder / "cut").write_bytes(content[:size])
            self.assertIn("program", self.doctor("--", self.folder / "cut", expected=1 if size > 3 else 0))
        damaged = bytearray(content)
        damaged[32:40] = b"\xff" * 8  # offset of the program headers
        (self.folder / "cut").write_bytes(damaged)
        self.doctor("--", self.folder / "cut", expected=1)

    # ---- the command line -----------------------------------------------------------------------

    def test_bad_usage_is_one_line_and_exit_code_2(self):
        for arguments in (["--trace", "x"], ["--jsno"], ["--bundle"], ["--json", "--bundle", "x"]):
            done = self.run_well([LAUNCHER, "doctor", *arguments], 2, cwd=self.folder)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("fragtrace: "), done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_every_command_names_the_option_that_was_meant(self):
        for words, meant in (
            (["doctor", "--bundel", "x"], "--bundle"),
            (["doctor", "--jsno"], "--json"),
            (["try", "x", "--remdy", "1"], "--remedy"),
            (["try", "--lst", "x"], "--list"),
            (["try", "x", "--remdy=1"], "--remedy"),
            (["clean", "--dryrun"], "--dry-run"),
            (["demo", "--outpt", "x"], "--output"),
            (["run", "--vitual-gpu", "1GiB", "x"], "--virtual-gpu"),
            (["top", "--srve", ":1"], "--serve"),
            (["docter"], "doctor"),
            (["trie"], "try"),
            (["rn"], "run"),
            (["--verson"], "--version"),
        ):
            done = self.run_well([LAUNCHER, *words], 2, cwd=self.folder)
            self.assertIn(f"; did you mean '{meant}'?", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    real_process.main()
