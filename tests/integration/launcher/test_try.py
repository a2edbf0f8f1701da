"""`fragtrace try` without PyTorch: which commands it runs, and which traces it does not trust."""

import json
import shutil

import real_process
from real_process import ANALYZER, LAUNCHER, VIRTUAL_GPU, environment

CARD = "1GiB,context=0"
# Allocates and frees; then leaves a sign and its arguments.
PROGRAM = """
#include <stdio.h>
int cudaMalloc(void **, unsigned long);
int main(int count, char **arguments) {
    void *memory;
    if (cudaMalloc(&memory, 4 << 20) != 0) return 3;
    FILE *file = fopen("ran", "a");
    for (int i = 1; i < count; ++i) fprintf(file, "<%s>", arguments[i]);
    fprintf(file, "\\n");
    return fclose(file);
}
"""


class Try(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        source = self.folder / "program.c"
        source.write_text(PROGRAM)
        self.program = self.folder / "program"
        runtime = VIRTUAL_GPU / "libcudart.so.13"
        self.run_well(
            ["cc", "-o", self.program, source, runtime, "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
        )

    def record(self, *arguments, **variables):
        before = set(real_process.traces(self.folder))
        self.run_well(
            [LAUNCHER, "run", "--quiet", "--virtual-gpu", CARD, "--", self.program, *arguments],
            cwd=self.folder,
            env=environment(**variables),
        )
        (trace,) = set(real_process.traces(self.folder)) - before
        return trace

    def facts(self, trace):
        return json.loads(self.run_well([ANALYZER, trace, "--no-whatif", "--json", "-"]).stdout)["facts"]

    def refused(self, *arguments, **options):
        ran = (self.folder / "ran").read_text() if (self.folder / "ran").exists() else ""
        done = self.run_well([LAUNCHER, "try", *arguments], 2, cwd=self.folder, **options)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        now = (self.folder / "ran").read_text() if (self.folder / "ran").exists() else ""
        self.assertEqual(now, ran, "the program ran")
        return done.stderr

    # ---- the recorded arguments -----------------------------------------------------------------

    def test_arguments_are_recorded_as_a_list_whatever_they_contain(self):
        words = ["a b", "", "two\nlines", "back\\slash", "\\n", "tab\there", "-x"]
        facts = self.facts(self.record(*words))
        read = []
        for line in facts["arguments"].split("\n"):
            read.append(line.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\"))
        self.assertEqual(read, [str(self.program), *words])

    def test_arguments_that_are_too_long_are_not_recorded(self):
        facts = self.facts(self.record("x" * 5000))
        self.assertNotIn("arguments", facts)
        self.assertIn("command_line", facts)
        facts = self.facts(self.record("\n" * 3000))  # too long only as a list
        self.assertNotIn("arguments", facts)

    def test_an_anonymized_trace_has_no_arguments(self):
        trace = self.record("secret")
        self.assertIn("secret", self.facts(trace)["arguments"])
        sent = self.folder / "sent.ftrace"
        self.run_well([ANALYZER, "anonymize", trace, sent])
        self.assertNotIn("arguments", self.facts(sent))

    # ---- what can be tried ----------------------------------------------------------------------

    def test_a_program_without_a_pool_has_nothing_to_try(self):
        trace = self.record()
        self.assertIn("--list shows what can be tried", self.refused(trace))
        done = self.run_well([LAUNCHER, "try", trace, "--list"], cwd=self.folder)
        self.assertEqual(done.stdout, "No change of settings can be tried.\n")
        self.assertIn("no change with this number", self.refused(trace, "--remedy", "1"))

    def test_without_fraganalyze_it_says_so(self):
        launcher = self.folder / "bin" / "fragtrace"
        launcher.parent.mkdir()
        shutil.copy(LAUNCHER, launcher)
        for arguments in (["try", "/nonexistent"], ["top"]):
            done = self.run_well([launcher, *arguments], 127, cwd=self.folder)
            self.assertRegex(done.stderr, r"\Afragtrace: fraganalyze is missing: [^\n]*\n\Z")

    def test_bad_usage_is_one_line(self):
        trace = self.record()
        self.assertIn("TRACE", self.refused())
        self.assertIn("no command after --", self.refused(trace, "--"))
        self.assertIn("a command comes after --", self.refused(trace, "true"))
        self.assertIn("--remedy", self.refused(trace, "--remedy", "0"))
        self.assertIn("1XB", self.refused(trace, "--virtual-gpu", "1XB"))
        self.assertIn("none.ftrace", self.refused(self.folder / "none.ftrace"))
        self.assertIn("give one trace", self.refused(self.folder))


if __name__ == "__main__":
    real_process.main()
