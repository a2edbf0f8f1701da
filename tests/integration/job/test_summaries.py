"""fraganalyze summarize -o, merge, and jobs of summaries: equal to jobs of traces, kept beside them, and
never trusted."""

import json
import os
import pathlib
import signal
import sys

import json_schema
import real_process
from real_process import ANALYZER, environment, traces

CLIENT = real_process.SOURCE / "tests" / "integration" / "control" / "client.py"
CARD = "1GiB,context=0"
MOST_BYTES = 20_000
VERSION = real_process.run([ANALYZER, "--version"]).stdout.split()[-1]
BEGIN = '{"schema":1,"process_summaries":['


class SummariesTest(real_process.RealProcessTest):
    def record(self, *steps, card=CARD, **variables):
        before = traces(self.folder)
        self.run_well([sys.executable, CLIENT, *steps], env=environment(card, self.folder, **variables))
        (new,) = set(traces(self.folder)) - set(before)
        return new

    def record_job(self):
        """Four ranks. Rank 2 holds more than the others, and rank 3 runs out of memory."""
        steps = {2: ["alloc=41943040"], 3: ["alloc=4194304", "refused"]}
        return [
            self.record(*steps.get(rank, ["alloc=4194304"]), RANK=rank, WORLD_SIZE=4) for rank in range(4)
        ]

    def summarize(self, trace, *options):
        output = trace.with_suffix(".json") if trace.is_file() else self.folder / "whole.json"
        self.run_well([ANALYZER, "summarize", trace, "-o", output, *options])
        document = json.loads(output.read_bytes())
        if json_schema.jsonschema:
            self.assertEqual(json_schema.schemas().problems("process_summaries", document), [])
        for line in output.read_text().splitlines()[1:-1]:
            self.assertLessEqual(len(line.removesuffix(",")), MOST_BYTES)
        return output

    def view(self, *paths, expected=0):
        job = json.loads(self.run_well([ANALYZER, *paths, "--json", "-"], expected).stdout)
        del job["folder"]
        for row in job["processes"]:
            del row["trace"]
        return job

    def elsewhere(self, *files):
        folder = self.folder / "elsewhere"
        folder.mkdir(exist_ok=True)
        for file in files:
            (folder / file.name).write_bytes(file.read_bytes())
        return folder

    def test_a_job_of_summaries_is_that_of_its_traces(self):
        recorded = self.record_job()
        whole = self.summarize(self.folder)
        text = self.run_well([ANALYZER, whole]).stdout
        self.assertRegex(text.splitlines()[0], r"^rank 3 of 4 ran out of memory first, ")
        self.assertIn("differs    rank 2: peak 40 MiB, 36 MiB more than ranks 0-1: +36 MiB ", text)
        self.assertIn("equal      ranks 0-1 (2): peak 4 MiB\n", text)
        one_by_one = [self.summarize(trace) for trace in recorded]
        merged = self.folder / "merged.json"
        self.run_well([ANALYZER, "merge", *one_by_one, "-o", merged])
        self.assertEqual(merged.read_bytes(), whole.read_bytes())
        self.assertEqual(self.view(whole), self.view(self.elsewhere(*one_by_one)))
        traces_alone = self.view(*recorded)
        summaries = self.view(whole)
        self.assertEqual(traces_alone["groups"], summaries["groups"])
        self.assertEqual(
            traces_alone["first_failure"]["cause"]["why"], summaries["first_failure"]["cause"]["why"]
        )
        self.assertEqual(len(summaries["processes"]), 4)

    def test_a_trace_and_its_summary_count_once_in_any_mixture(self):
        recorded = self.record_job()
        summaries = [self.summarize(trace) for trace in recorded]
        for mixture in (
            [*recorded, *summaries],
            [recorded[0], *summaries[1:]],
            [*summaries, self.folder / "again.json"],
        ):
            if mixture[-1].name == "again.json":
                self.run_well([ANALYZER, "merge", *summaries[:2], *summaries, "-o", mixture[-1]])
            job = self.view(*mixture)
            self.assertEqual([row["rank"] for row in job["processes"]], [0, 1, 2, 3])
        self.assertEqual(len(self.view(self.folder)["processes"]), 4)

    def test_merging_a_merged_file_again_changes_nothing(self):
        summaries = [self.summarize(trace, "--no-whatif") for trace in self.record_job()]
        first, second, third = (self.folder / f"merged{i}.json" for i in range(3))
        self.run_well([ANALYZER, "merge", *summaries, "-o", first])
        self.run_well([ANALYZER, "merge", first, "-o", second])
        self.run_well([ANALYZER, "merge", *reversed(summaries), first, second, "-o", third])
        self.assertEqual(first.read_bytes(), second.read_bytes())
        self.assertEqual(first.read_bytes(), third.read_bytes())
        refused = self.run_well([ANALYZER, "merge", first, "-o", first], 2)
        self.assertIn("is a file that this command reads", refused.stderr)

    def test_a_merge_keeps_the_causes_and_replays_of_its_summaries(self):
        failed = self.record_job()[3]
        summary = self.summarize(failed)
        merged, again = self.folder / "merged.json", self.folder / "again.json"
        # The trace beside its summary has no cause, and does not take it away.
        self.run_well([ANALYZER, "merge", *traces(self.folder), summary, "-o", merged])
        self.run_well([ANALYZER, "merge", merged, failed, "-o", again])
        self.assertEqual(merged.read_bytes(), again.read_bytes())
        (kept,) = json.loads(summary.read_text())["process_summaries"]
        row = next(row for row in json.loads(merged.read_text())["process_summaries"] if row["rank"] == 3)
        self.assertTrue(kept["devices"][0]["failures"][0]["why"])
        self.assertEqual(row, kept)
        cause = self.view(self.elsewhere(merged))["first_failure"]["cause"]
        self.assertEqual(cause["why"], kept["devices"][0]["failures"][0]["why"])

    def test_a_trace_that_cannot_be_read_stays_one_line_of_the_job(self):
        bad = self.folder / "bad.ftrace"
        bad.write_text("no trace")
        self.record("alloc=4194304")
        summaries = self.folder / "summaries"
        summaries.mkdir()
        for trace in traces(self.folder):
            command = [ANALYZER, "summarize", trace, "-o", summaries / f"{trace.name}.json", "--no-whatif"]
            self.run_well(command, 2 if trace == bad else 0)
        merged = self.folder / "merged.json"
        again = self.folder / "again.json"
        for inputs, output in ([summaries], merged), ([merged, summaries], again):
            done = self.run_well([ANALYZER, "merge", *inputs, "-o", output], 2)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(merged.read_bytes(), again.read_bytes())
        for file in (merged, again):
            file.unlink()
        whole = self.folder / "whole.json"
        self.run_well([ANALYZER, "summarize", self.folder, "-o", whole, "--no-whatif"], 2)
        self.run_well([ANALYZER, "merge", summaries, "-o", merged], 2)
        self.assertEqual(merged.read_bytes(), whole.read_bytes())
        if json_schema.jsonschema:
            document = json.loads(whole.read_bytes())
            self.assertEqual(json_schema.schemas().problems("process_summaries", document), [])
        done = self.run_well([ANALYZER, whole], 2)
        self.assertIn(f"unreadable  {bad}: is not a trace", done.stdout)
        self.assertIn("1 of 2 traces cannot be read", done.stderr)
        # A missing trace is a mistake of the command.
        self.run_well([ANALYZER, "summarize", self.folder / "no.ftrace", "-o", self.folder / "no.json"], 2)
        self.assertFalse((self.folder / "no.json").exists())

    def test_a_summary_is_made_again_only_if_its_trace_has_changed(self):
        trace = self.record("alloc=4194304")
        output = self.folder / "summary.json"

        def summarize(*options):
            before = output.stat().st_mtime_ns if output.exists() else None
            self.run_well([ANALYZER, "summarize", trace, "-o", output, "--if-changed", *options])
            return output.stat().st_mtime_ns != before

        self.assertTrue(summarize("--no-whatif"))
        self.assertFalse(summarize("--no-whatif"))
        self.assertFalse(summarize())  # this program has no pool to replay
        os.utime(trace)
        self.assertTrue(summarize())
        whole = output.read_bytes()
        output.write_bytes(whole[: len(whole) // 2])
        self.assertTrue(summarize())
        self.assertEqual(output.read_bytes(), whole)
        # After an update of fraganalyze; the last one is of a version that did not write the key.
        version = '"analyzer_version":"' + VERSION + '",'
        for other in ('"analyzer_version":"0.0.1",', '"analyzer_version":null,', ""):
            output.write_text(whole.decode().replace(version, other))
            self.assertNotEqual(output.read_bytes(), whole)
            self.assertTrue(summarize(), other)
            self.assertEqual(output.read_bytes(), whole)
        # Other files are never replaced.
        output.write_text("precious")
        command = [ANALYZER, "summarize", trace, "-o", output, "--if-changed"]
        self.assertIn("is not a summary", self.run_well(command, 2).stderr)
        self.assertEqual(output.read_text(), "precious")

    def kept(self):
        return sorted(path.name for path in self.folder.glob("*.summary.json"))

    def test_summaries_are_kept_beside_large_traces_or_if_asked(self):
        recorded = self.record_job()
        first = self.view(self.folder)
        self.assertEqual(self.kept(), [])  # they are small
        asked = self.view(self.folder, "--cache", "always")
        self.assertEqual(self.kept(), sorted(trace.name + ".summary.json" for trace in recorded))
        self.assertEqual(first, asked)
        self.assertEqual(self.view(self.folder, "--cache", "always"), first)
        self.assertEqual(self.view(self.folder), first)
        self.view(*recorded, "--cache", "always")
        # A summary is used even if its trace cannot be read any more ...
        broken = recorded[0].read_bytes()
        status = recorded[0].stat()
        recorded[0].write_bytes(b"x" * len(broken))
        os.utime(recorded[0], ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assertEqual(self.view(self.folder, "--cache", "always"), first)
        # ... but not if the trace has changed since.
        self.view(self.folder, expected=2)
        os.utime(recorded[0])
        job = self.view(self.folder, "--cache", "always", expected=2)
        self.assertEqual([row["file"] for row in job["unreadable"]], [recorded[0].name])
        # Without its trace it counts as a file of its own.
        recorded[0].unlink()
        self.assertEqual(len(self.view(self.folder)["processes"]), 4)

    def test_a_summary_by_another_version_counts_only_without_its_trace(self):
        trace = self.record("alloc=4194304")
        first = self.view(self.folder, "--cache", "always")
        kept = self.folder / (trace.name + ".summary.json")
        summary = kept.read_text()
        (process,) = json.loads(summary)["process_summaries"]
        self.assertEqual(process.pop("analyzer_version"), VERSION)
        process["command_line"] = "as it was"
        other = BEGIN + "\n" + json.dumps(process, separators=(",", ":")) + "\n]}\n"
        kept.write_text(other)
        self.assertEqual(self.view(self.folder, "--cache", "always"), first)
        self.assertEqual(kept.read_text(), summary)
        # Beside its trace, it gives way as an input of its own, too.
        elsewhere = self.folder / "elsewhere.json"
        elsewhere.write_text(other)
        for inputs in (trace, elsewhere), (elsewhere, trace):
            self.assertEqual(self.view(*inputs)["processes"], first["processes"])
        (alone,) = self.view(elsewhere)["processes"]
        self.assertEqual(alone["command_line"], "as it was")

    def test_replays_with_options_are_neither_kept_nor_taken_from_a_kept_summary(self):
        self.record_job()
        options = ("--capacity", "64MiB", "--cache")
        asked = self.view(self.folder, *options, "never")
        usual = self.view(self.folder, "--cache", "never")
        self.assertNotEqual(asked, usual)
        self.assertEqual(self.view(self.folder, *options, "always"), asked)
        self.assertEqual(self.view(self.folder, "--cache", "always"), usual)
        self.assertEqual(self.view(self.folder, *options, "always"), asked)
        self.assertEqual(self.view(self.folder, "--cache", "always"), usual)

    def test_a_file_without_summaries_is_one_line(self):
        empty = self.folder / "empty.json"
        empty.write_text(BEGIN + "]}")
        output = self.folder / "output.json"
        for command in ([empty], ["merge", empty, "-o", output], ["summarize", empty, "-o", output]):
            done = self.run_well([ANALYZER, *command], 2)
            self.assertIn("empty.json: no process in it. Give summaries or traces.", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertFalse(output.exists())

    def test_results_in_the_folder_of_a_job_can_be_written_again(self):
        trace = self.record("alloc=4194304")
        for name, command in (
            ("job.json", [self.folder, "--json"]),
            ("figures.json", ["summarize", self.folder, "--json"]),
            ("all.json", ["merge", trace, "-o"]),
        ):
            for _ in range(2):
                self.run_well([ANALYZER, *command, self.folder / name])
        # An input is never replaced.
        refused = self.run_well([ANALYZER, self.folder, "--json", self.folder / "all.json"], 2)
        self.assertIn("is a file that this command reads", refused.stderr)

    def test_figures_of_a_folder_skip_its_summaries(self):
        trace = self.record("alloc=4194304")
        self.summarize(trace, "--no-whatif").rename(self.folder / "all.json")
        text = self.run_well([ANALYZER, "summarize", self.folder]).stdout
        self.assertEqual(text, self.run_well([ANALYZER, "summarize", trace]).stdout)

    def test_a_changed_trace_gets_a_new_summary(self):
        trace = self.record("alloc=4194304")
        self.view(self.folder, "--cache", "always")
        (name,) = self.kept()
        kept = json.loads((self.folder / name).read_bytes())
        kept["process_summaries"][0]["trace_bytes"] += 1
        kept["process_summaries"][0]["rank"] = 7
        text = BEGIN + json.dumps(kept["process_summaries"][0]) + "]}"
        (self.folder / name).write_text(text)
        self.assertIsNone(self.view(self.folder, "--cache", "always")["processes"][0]["rank"])
        self.assertNotEqual((self.folder / name).read_text(), text)
        self.assertEqual(trace.name + ".summary.json", name)

    def test_no_summary_is_written_through_a_link_or_over_other_files(self):
        trace = self.record("alloc=4194304")
        beside = pathlib.Path(f"{trace}.summary.json")
        target = self.folder / "target"
        target.write_text("precious")
        beside.symlink_to(target)
        self.view(self.folder, "--cache", "always")
        self.assertTrue(beside.is_symlink())
        self.assertEqual(target.read_text(), "precious")
        beside.unlink()
        beside.write_text("precious")
        self.view(self.folder, "--cache", "always")
        self.assertEqual(beside.read_text(), "precious")
        beside.unlink()
        self.folder.chmod(0o500)
        try:
            self.view(self.folder, "--cache", "always")
        finally:
            self.folder.chmod(0o700)

    def test_a_job_killed_by_its_launcher_names_the_victims(self):
        self.record("alloc=4194304", "refused", RANK=1, WORLD_SIZE=3)
        for rank in (0, 2):
            trace = self.record("alloc=4194304", RANK=rank, WORLD_SIZE=3)
            output = self.summarize(trace, "--no-whatif")
            document = json.loads(output.read_bytes())["process_summaries"][0]
            document |= {"ended": "killed", "exit_code": None, "signal": int(signal.SIGTERM)}
            output.write_text(BEGIN + json.dumps(document) + "]}")
            trace.unlink()
        lines = self.run_well([ANALYZER, self.folder]).stdout.splitlines()
        self.assertRegex(lines[0], r"^rank 1 of 3 ran out of memory first, ")
        self.assertTrue(lines[1].startswith("  verdict "))
        # Rank 1 ended normally, so it is not said to be the reason.
        self.assertIn("  others     2 of the others failed otherwise: 2 SIGTERM", lines)

    def test_processes_of_one_card_are_added_up(self):
        card = f"{CARD},shared=test-summaries-{os.getpid()}"
        recorded = [
            self.record("alloc=419430400", card=card, RANK=0),
            self.record("alloc=4194304", "refused", card=card),
        ]
        summaries = [self.summarize(trace, "--no-whatif") for trace in recorded]
        (card,) = self.view(*summaries)["shared_cards"]
        self.assertTrue(card["at_failure"])
        self.assertFalse(card["exact"])
        self.assertEqual({user["index"] for user in card["users"]}, {0, 1})
        self.assertRegex(
            self.run_well([ANALYZER, *summaries]).stdout,
            r"  same card  GPU-.*rank 0 at most 400 MiB.*its last event .* before: it may have ended since",
        )
        # The driver did not list the first process, so it had ended, and the other one was alone.
        self.assertEqual(self.view(*recorded)["shared_cards"], [])

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def refused(self, *command):
        done = self.run_well([ANALYZER, *command], 2, cwd=self.folder)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done

    def test_a_folder_without_traces_names_a_subfolder_that_has_some(self):
        outer = self.folder / "outer"
        (outer / "a" / "b").mkdir(parents=True)
        for command in ([outer], ["summarize", outer], ["merge", outer, "-o", "m.json"], ["list", outer]):
            said = self.refused(*command).stderr
            self.assertIn(f"{outer}: no traces, snapshots or summaries in it. Give a trace (*.ftrace)", said)
            self.assertIn("a summary (of `fraganalyze summarize -o`)", said)
        trace = self.record("alloc=4194304")
        trace.rename(outer / "a" / "b" / trace.name)
        for command in ([outer], ["summarize", outer], ["merge", outer, "-o", "m.json"], ["list", outer]):
            said = self.refused(*command).stderr
            self.assertIn(f"Its subfolders are not read, and {outer}/a/b has traces: give that", said)

    def test_a_folder_beside_other_inputs_stands_for_its_traces(self):
        recorded = self.record_job()
        folder = self.elsewhere(*recorded[:3])
        summary = self.summarize(recorded[3])
        self.assertEqual(
            [row["rank"] for row in self.view(folder, summary)["processes"]],
            [row["rank"] for row in self.view(*recorded)["processes"]],
        )
        self.assertEqual(len(self.view(summary, folder, recorded[3], recorded[0])["processes"]), 4)
        (self.folder / "empty").mkdir()
        self.assertIn("empty: no traces, snapshots", self.refused(summary, "empty").stderr)

    def test_a_job_of_which_nothing_can_be_read_has_no_table(self):
        folder = self.folder / "bad"
        folder.mkdir()
        for name in ("a.ftrace", "b.ftrace"):
            (folder / name).write_text("junk")
        done = self.refused(folder)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ["unreadable"] * 2)
        self.assertIn("2 of 2 traces cannot be read", done.stderr)

    def test_summaries_of_another_schema_are_named_with_what_to_do(self):
        summary = self.summarize(self.record("alloc=4194304"), "--no-whatif")
        folder = self.elsewhere(summary)
        newer = folder / "newer.json"
        newer.write_bytes(summary.read_bytes().replace(b'"schema":1', b'"schema":7', 1))
        said = f"wrote these summaries (schema 7), and this one ({VERSION}) reads schema 1. Make them again"
        for command in ([newer], [newer, summary], ["merge", newer, "-o", "m.json"], [folder]):
            done = self.refused(*command)
            self.assertIn(said, done.stderr)
        self.assertIn("looks like JSON", self.refused(self.write("other.json", "{}")).stderr)

    def test_summaries_that_another_program_wrote_again_are_read(self):
        summary = self.summarize(self.record("alloc=4194304"), "--no-whatif")
        whole = self.run_well([ANALYZER, summary]).stdout
        for indent in (None, 1):
            again = self.write("again.json", json.dumps(json.loads(summary.read_bytes()), indent=indent))
            self.assertEqual(self.run_well([ANALYZER, again]).stdout, whole)

    def test_options_and_inputs_of_summarize_that_have_no_effect_are_refused(self):
        trace = self.record("alloc=4194304")
        for command, said in (
            ([trace, "--if-changed"], "--if-changed needs -o FILE"),
            ([trace, "--no-whatif"], "--no-whatif needs -o FILE"),
            ([trace, "-o", "s.json", "--json", "f.json"], "-o and --json exclude each other"),
            ([trace, "other.ftrace"], "other.ftrace: this command takes one trace or one folder"),
            ([trace, "other.ftrace", "-o", "s.json"], "`merge TRACE... -o FILE` writes one file"),
        ):
            self.assertIn(said, self.refused("summarize", *command).stderr)
        self.assertFalse((self.folder / "s.json").exists())
        self.assertIn("b.ftrace: one argument too many", self.refused("whatif", trace, "b.ftrace").stderr)

    def test_a_card_that_is_not_known_is_called_so(self):
        text = self.run_well([ANALYZER, *self.record_job(), "--capacity", "64MiB"]).stdout
        self.assertIn("\n  card       not known: no process has a pool that can be replayed\n", text)

    def test_only_summaries_have_no_figures_to_print(self):
        folder = self.elsewhere(self.summarize(self.record("alloc=4194304"), "--no-whatif"))
        self.assertIn("only summaries in it", self.refused("summarize", folder).stderr)

    def test_a_message_about_an_option_names_a_help_that_has_it(self):
        done = self.refused("a.ftrace", "--cache", "sometimes")
        self.assertIn("(see 'fraganalyze report --help')", done.stderr)
        self.assertIn("--cache", self.run_well([ANALYZER, "report", "--help"]).stdout)
        self.assertIn("`fraganalyze report --help`", self.run_well([ANALYZER, "--help"]).stdout)

    def test_hostile_summaries_give_one_line(self):
        trace = self.record("alloc=4194304")
        good = self.summarize(trace, "--no-whatif")
        process = json.loads(good.read_bytes())["process_summaries"][0]
        hostile = [
            BEGIN,
            BEGIN + "[" * 1_000_000,
            BEGIN + '{"a":' * 1_000_000,
            BEGIN + '"' + "x" * 10_000_000,
            BEGIN + '{"file":"' + "x" * 1_000_000 + '"}]}',
            BEGIN + " " * 1_000_000,
            BEGIN + ",".join(["{}"] * 100_000) + "]}",
            BEGIN + "]",
            BEGIN + "{}]}",
            BEGIN + json.dumps(process) + "],",
            BEGIN + json.dumps(process | {"devices": [1]}) + "]}",
            BEGIN + json.dumps(process | {"file": "../../etc/passwd"}) + "]}",
            BEGIN + json.dumps(process | {"rank": 1 << 70}) + "]}",
            BEGIN + json.dumps(process | {"ancestors": [[1, 2]] * 99}) + "]}",
        ]
        file = self.folder / "hostile.json"
        for text in hostile:
            file.write_text(text)
            for command in ([file], [file, good], ["merge", file, "-o", self.folder / "out.json"]):
                done = self.run_well([ANALYZER, *command], 2)
                self.assertEqual(done.stderr.count("\n"), 1, (text[:80], done.stderr))
        # Names are never printed raw, and never lead out of the folder.
        file.write_text(BEGIN + json.dumps(process | {"command_line": "\x1b[31m\n", "host": "\u202e"}) + "]}")
        text = self.run_well([ANALYZER, file]).stdout
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u202e", text)


if __name__ == "__main__":
    real_process.main()
