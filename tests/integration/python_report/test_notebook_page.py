"""%fragtrace page and reports as outputs, in a notebook that nbclient runs with the real PyTorch."""

import html
import json
import pathlib
import re
import sys

import package
import real_process
from real_process import TORCH_PYTHON, environment, run

RUNNER = """
import json, sys
import nbclient, nbformat
cells = json.load(open(sys.argv[1]))
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
nbformat.validate(notebook)
json.dump([cell.outputs for cell in notebook.cells], open(sys.argv[2], "w"))
"""
CELLS = [
    "%load_ext fragtrace",
    "import torch\nmodel = torch.nn.Linear(1024, 1024).cuda()",
    "import os; os.makedirs('elsewhere', exist_ok=True); os.chdir('elsewhere')",
    "%fragtrace page",
    "import fragtrace\nfrom fragtrace import notebook\nreport = fragtrace.load(notebook.own_trace())\nreport",
    "fragtrace.report.LARGEST_PAGE_IN_NOTEBOOK_BYTES = 1000\nreport",
    "%fragtrace page 'no such.ftrace'",
    "print(sorted(os.listdir('.')), report.json['source']['ended'])",
]


class Notebook(real_process.RealProcessTest):
    def outputs(self, cells, **options):
        given, written = self.folder / "cells.json", self.folder / "outputs.json"
        given.write_text(json.dumps(cells))
        self.run_well(
            [TORCH_PYTHON, "-c", RUNNER, given, written],
            cwd=self.folder,
            env=environment(
                options.pop("card", "2GiB"),
                **options,
                **package.variables(
                    "nbclient",
                    IPYTHONDIR=self.folder / "ipython",
                    JUPYTER_RUNTIME_DIR=self.folder / "runtime",
                ),
            ),
        )
        return json.loads(written.read_text())

    def page_in(self, output):
        """The page inside of an output, which must be one frame that may not leave its sandbox."""
        shown = output["data"]["text/html"]
        frame = re.fullmatch(
            r'<iframe sandbox="allow-scripts" style="[^"]*" srcdoc="([^"]*)"></iframe>', shown
        )
        self.assertIsNotNone(frame, shown[:300])
        return html.unescape(frame[1])

    def test_pages_of_this_process_and_of_files(self):
        outputs = self.outputs(CELLS, record_to=self.folder / "traces")
        self.assertEqual(outputs[0], [])
        (own,) = outputs[3]
        self.assertIn(" - fragtrace</title>", self.page_in(own))
        self.assertIn("No out-of-memory", own["data"]["text/plain"])
        loaded = next(output for output in outputs[4] if output["output_type"] == "execute_result")
        self.assertIn(" - fragtrace</title>", self.page_in(loaded))
        large = next(output for output in outputs[5] if output["output_type"] == "execute_result")
        shown = large["data"]["text/html"]
        self.assertIn("more than a notebook should contain", shown)
        written = re.search(r"It was written to (\S+\.html)\.", shown)
        self.assertIn(" - fragtrace</title>", pathlib.Path(written[1]).read_text())
        (missing,) = outputs[6]
        self.assertRegex(missing["text"], r"^fragtrace: no such\.ftrace: ")
        self.assertEqual(missing["name"], "stderr")
        self.assertRegex(outputs[7][0]["text"], r"^\['.*\.ftrace\.html'\] running\n$")

    def test_without_the_recorder_a_file_can_be_shown(self):
        traces = self.folder / "traces"
        self.outputs(CELLS[1:2], record_to=traces)
        trace = self.only_trace(traces)
        cells = ["%load_ext fragtrace", "%fragtrace page", f"%fragtrace page {trace}", "%fragtrace report"]
        outputs = self.outputs(cells, card=None)
        self.assertIn("fragtrace run -- jupyter lab", outputs[0][0]["text"])
        self.assertIn("Name a trace: %fragtrace page TRACE", outputs[1][0]["text"])
        self.assertIn(" - fragtrace</title>", self.page_in(outputs[2][0]))
        self.assertIn("the recorder is not in this process", outputs[3][0]["text"])


if __name__ == "__main__":
    program = "import nbclient, ipykernel, nbformat"
    if run([TORCH_PYTHON, "-c", program], env=environment(**package.variables("nbclient"))).returncode != 0:
        print("skipped: no nbclient beside PyTorch (scripts/setup --tests installs it)")
        sys.exit(77)
    package.main()
