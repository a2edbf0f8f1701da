"""`fraganalyze mcp` with the real client of the package mcp."""

import json
import pathlib
import sys

import real_process
import test_tools
from real_process import ANALYZER, SOURCE, environment

FOLDER = test_tools.folder_of("mcp")
CLIENT = SOURCE / "tests" / "integration" / "process_life" / "client.py"
MESSAGE = "CUDA out of memory. Tried to allocate 664.00 MiB. GPU 0 has a total capacity of 3.50 GiB"


class Client(real_process.RealProcessTest):
    def test_both_kinds_of_client_list_the_tools_and_read_their_results(self):
        self.run_well(
            [sys.executable, CLIENT, "/dev/null", "50", "return"],
            env=environment("1GiB,context=0", self.folder),
        )
        trace = self.only_trace()
        program = pathlib.Path(__file__).parent / "mcp_program.py"
        done = self.run_well([FOLDER / "bin" / "python", program, ANALYZER, trace, MESSAGE])
        found = json.loads(done.stdout)
        self.assertRegex(found["version"], r"^\d{4}-\d\d-\d\d$")
        peak = self.report(trace)["devices"][0]["peak"]
        for kind in ("session", "client"):
            self.assertIn("whatif", found[kind]["tools"])
            self.assertEqual(found[kind]["holders"]["devices"][0]["peak"], peak)
            self.assertEqual(found[kind]["explained"]["messages"][0]["times"], 1)
            self.assertTrue(found[kind]["failed"][0])
            self.assertIn("/no/such.ftrace", found[kind]["failed"][1])


if __name__ == "__main__":
    if FOLDER is None:
        print(f"skipped: {test_tools.missing('mcp')}")
        sys.exit(77)
    real_process.main()
