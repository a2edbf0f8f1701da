"""Every function of hooks.def gives the same answer with and without the recorder.

This holds for every way to find the function and for any arguments: results and every byte behind the
pointers.
"""

import re
import sys

import real_process
from cuda_calls import rows
from real_process import environment

PROGRAM = real_process.SOURCE / "tests" / "integration" / "hooks" / "same_answers.py"
NOT_SUPPORTED = "801"

# Functions that never succeed here, and why. Functions that the virtual GPU does not support are recognised
# by their answer.
NEVER_SUCCEED = {
    "cuModuleLoad": "no file is given",
    "cuLibraryLoadFromFile": "no file is given",
    **{
        f"{prefix}{name}": "a process cannot open its own memory"
        for prefix, name in (
            ("cu", "IpcOpenMemHandle"),
            ("cu", "IpcOpenMemHandle_v2"),
            ("cu", "IpcCloseMemHandle"),
            ("cuda", "IpcOpenMemHandle"),
            ("cuda", "IpcCloseMemHandle"),
        )
    },
}


class SameAnswers(real_process.RealProcessTest):
    def answers(self, **environment_options):
        done = self.run_well([sys.executable, PROGRAM], env=environment("4GiB", **environment_options))
        self.assertEqual(done.stderr, "")
        self.assertTrue(done.stdout.endswith("all called\n"))
        return done.stdout.splitlines()

    def test_answers_are_the_same_with_and_without_the_shim(self):
        bare = self.answers()
        traced = self.answers(record_to=self.folder)
        for expected, found in zip(bare, traced):
            self.assertEqual(found, expected)
        self.assertEqual(len(traced), len(bare))
        self.only_trace()

        results = {}
        for line in bare[:-1]:
            symbol, way, result = re.match(r"(\w+) \[(.*?)\] .*?(?:-> (\d+).*|is not there)$", line).groups()
            results.setdefault(symbol, {}).setdefault(way, set()).add(result)
        for row in rows():
            with self.subTest(row.symbol):
                ways = results[row.symbol]
                self.assertEqual(len(ways), 5 if row.library == "driver" else 3)
                for way, found in ways.items():
                    self.assertNotIn(None, found, f"not found by {way}")
                    self.assertTrue(
                        "0" in found or found == {NOT_SUPPORTED} or row.symbol in NEVER_SUCCEED,
                        f"{way}: only {found}",
                    )


if __name__ == "__main__":
    real_process.main()
