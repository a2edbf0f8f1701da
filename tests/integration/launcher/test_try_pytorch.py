"""`fragtrace try` with a real PyTorch on the virtual GPU: the prediction equals the outcome."""

import json
import pathlib
import re
import shutil

import real_process
from real_process import ANALYZER, LAUNCHER, SOURCE, TORCH_PYTHON, environment

SCENARIO = SOURCE / "scripts" / "scenarios" / "variable_lengths.py"
CARD = "3.5GiB,context=0"
# Fits its card. Nothing is unknown in its recording.
FITTING = """
import sys, torch
kept = [torch.empty(int(part) << 20, dtype=torch.uint8, device="cuda") for part in sys.argv[1:]]
del kept[::2]
kept.append(torch.empty(30 << 20, dtype=torch.uint8, device="cuda"))
"""


class Try(real_process.RealProcessTest):
    def record(self, *command, card=CARD, expected=0, **variables):
        before = set(real_process.traces(self.folder))
        self.run_well(
            [LAUNCHER, "run", "--quiet", "--virtual-gpu", card, "-o", self.folder, "--", *command],
            expected,
            cwd=self.folder,
            env=environment(**variables),
        )
        (trace,) = set(real_process.traces(self.folder)) - before
        return trace

    def tried(self, *arguments, expected=0, **options):
        """(standard error, the new report) of a try into a folder of its own."""
        output = self.folder / "tried"
        shutil.rmtree(output, ignore_errors=True)
        done = self.run_well([LAUNCHER, "try", *arguments, "-o", output], expected, **options)
        traces = real_process.traces(output)
        return done.stderr, self.report(traces[0]) if traces else None

    def test_an_out_of_memory_is_avoided_as_predicted(self):
        trace = self.record(TORCH_PYTHON, SCENARIO, expected=1)
        told = json.loads(self.run_well([ANALYZER, trace, "--json", "-"]).stdout)
        (row,) = [row for row in told["whatif"] if row["name"] == "expandable_segments:True"]
        said, report = self.tried(trace, cwd="/")
        self.assertIn("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True on the virtual GPU " + CARD, said)
        self.assertIn(f"{TORCH_PYTHON} {SCENARIO}\n", said)
        self.assertRegex(
            said, r"(?m)^  out of memory +1 +none \(rest of the step: estimate\) +none +as predicted$"
        )
        self.assertRegex(
            said, r"(?m)^  peak reserved +3\.24 GiB +at least 3\.39 GiB +3\.39 GiB +as predicted$"
        )
        self.assertEqual(report["ooms"], [])
        self.assertEqual(report["facts"]["allocator_conf"], "expandable_segments:True")
        self.assertGreaterEqual(report["devices"][0]["peak"]["reserved"], row["peak_reserved_bytes"])

    def test_the_outcome_is_kept_beside_the_trace_for_its_report(self):
        trace = self.record(TORCH_PYTHON, SCENARIO, expected=1)
        kept = pathlib.Path(f"{trace}.tried.json")
        self.assertEqual(self.report(trace)["devices"][0]["tried"], [])
        for _ in range(2):  # a second try of the same change replaces the first
            self.tried(trace)
        (tried,) = self.report(trace)["devices"][0]["tried"]
        self.assertEqual((tried["change"], tried["held"]), ("expandable_segments:True", True))
        self.assertIn("peak reserved 3.39 GiB as predicted", tried["outcome"])
        line = r"(?m)^  tried +expandable_segments:True: out of memory none as predicted, "
        self.assertRegex(self.run_well([ANALYZER, trace]).stdout, line)
        page = self.folder / "page.html"
        self.run_well([ANALYZER, trace, "--html", page])
        self.assertIn('"expandable_segments:True: out of memory none as predicted, ', page.read_text())
        names = sorted(file.name for file in self.folder.iterdir() if file.suffix == ".json")
        self.assertEqual(names, [kept.name])

        content = json.loads(kept.read_text())
        content["trials"][0]["lines"][1]["held"] = False
        kept.write_text(json.dumps(content))
        self.assertFalse(self.report(trace)["devices"][0]["tried"][0]["held"])
        content["start_unix_ns"] += 1  # of another recording with this name
        kept.write_text(json.dumps(content))
        self.assertEqual(self.report(trace)["devices"][0]["tried"], [])
        for damaged in ("", "[]", '{"trials": 3}', "\x00" * 100, "[" * 5000, " " * (1 << 18) + "{}"):
            kept.write_text(damaged)
            report = self.report(trace)
            self.assertEqual(report["devices"][0]["tried"], [])
            self.assertIn(f"{kept}: ", "\n".join(report["warnings"]))
        for trial in (
            3,
            {},
            {"device": 0, "change": "x", "lines": [1]},
            {"device": "0", "change": "x", "lines": []},
        ):
            kept.write_text(
                json.dumps({**content, "start_unix_ns": content["start_unix_ns"] - 1, "trials": [trial]})
            )
            self.assertEqual(self.report(trace)["devices"][0]["tried"], [])

    def test_an_outcome_that_cannot_be_kept_is_told(self):
        program = self.folder / "fitting.py"
        program.write_text(FITTING)
        trace = self.record(TORCH_PYTHON, program, "3", "25", "40")
        pathlib.Path(f"{trace}.tried.json").mkdir()
        number = re.search(r"(?m)^ +(\d+)  ", self.run_well([LAUNCHER, "try", trace, "--list"]).stdout)[1]
        said, _ = self.tried(trace, "--remedy", number)
        self.assertIn("the outcome cannot be kept beside the recorded trace", said)

    def test_exact_rows_of_a_complete_run_are_met_to_the_byte(self):
        program = self.folder / "fitting.py"
        program.write_text(FITTING)
        trace = self.record(TORCH_PYTHON, program, "3", "25", "40", "11", "25", PYTORCH_CUDA_ALLOC_CONF="")
        listed = self.run_well([LAUNCHER, "try", trace, "--list"]).stdout
        numbers = re.findall(r"(?m)^ +(\d+)  (\S+): no out-of-memory, .* \(exact\)", listed)
        self.assertGreater(len(numbers), 2, listed)
        for number, name in [numbers[0], numbers[-1]]:
            said, _ = self.tried(trace, "--remedy", number)
            self.assertRegex(said, rf"CONF={name} on the virtual GPU")
            self.assertEqual(said.count("  as predicted\n"), 3, said)

    def test_an_input_without_a_command_is_refused_for_this_reason(self):
        program = self.folder / "fitting.py"
        program.write_text(FITTING)
        trace = self.record(TORCH_PYTHON, program, "3", "25", "40")
        snapshot, sent = self.folder / "run.pickle", self.folder / "sent.ftrace"
        self.run_well([ANALYZER, "export", trace, "--to", "snapshot", "-o", snapshot])
        self.run_well([ANALYZER, "anonymize", trace, sent])
        for file in (snapshot, sent):
            listed = self.run_well([LAUNCHER, "try", file, "--list"]).stdout
            number = re.search(r"(?m)^ +(\d+)  ", listed)[1]
            done = self.run_well([LAUNCHER, "try", file, "--remedy", number], 2)
            self.assertRegex(
                done.stderr, r"\Afragtrace: \S+ does not have the command \(snapshots, [^\n]*\n\Z"
            )

    def test_another_card_or_program_is_not_compared_with_the_prediction(self):
        program = self.folder / "fitting.py"
        program.write_text(FITTING)
        trace = self.record(TORCH_PYTHON, program, "3", "25", "40")
        number = re.search(r"(?m)^ +(\d+)  ", self.run_well([LAUNCHER, "try", trace, "--list"]).stdout)[1]
        said, _ = self.tried(trace, "--remedy", number, "--virtual-gpu", "8GiB", expected=1)
        self.assertIn("the prediction does not apply", said)
        self.assertNotIn("as predicted", said)
        # A program that needs more than the recorded one.
        said, _ = self.tried(trace, "--remedy", number, "--", TORCH_PYTHON, program, "900", "700", expected=1)
        self.assertIn("NOT as predicted", said)
        said, _ = self.tried(trace, "--remedy", number, "--", "true", expected=2)
        self.assertIn("nothing to compare", said)

    def test_the_command_of_a_trace_of_others_is_not_run(self):
        program = self.folder / "fitting.py"
        program.write_text(FITTING + "open('ran', 'w')\n")
        trace = self.record(TORCH_PYTHON, program, "3", "25", "40")
        ran = self.folder / "ran"
        ran.unlink()
        number = re.search(r"(?m)^ +(\d+)  ", self.run_well([LAUNCHER, "try", trace, "--list"]).stdout)[1]

        def refused(path, words):
            said, _ = self.tried(path, "--remedy", number, expected=2)
            self.assertIn(words, said)
            self.assertEqual(said.count("\n"), 1)
            self.assertFalse(ran.exists())

        trace.chmod(0o666)
        refused(trace, "can be changed by other users")
        trace.chmod(0o600)
        sent = self.folder / "sent.ftrace"
        self.run_well([ANALYZER, "anonymize", trace, sent])
        refused(sent, "does not have the command")
        job = self.record(TORCH_PYTHON, program, "3", "25", "40", RANK=2, WORLD_SIZE=4)
        ran.unlink()
        refused(job, "rank 2 of a job")
        own = pathlib.Path(TORCH_PYTHON).parent
        by_name = self.record("python", program, "3", "25", "40", PATH=f"{own}:/usr/bin:/bin")
        ran.unlink()
        other = self.folder / "bin"
        other.mkdir()
        (other / "python").symlink_to("/bin/true")
        said, _ = self.tried(
            by_name, "--remedy", number, expected=2, env=environment(PATH=f"{other}:/usr/bin:/bin")
        )
        self.assertIn("Activate the same environment", said)
        self.assertFalse(ran.exists())


if __name__ == "__main__":
    real_process.main()
