"""Threads that people diagnosed by hand, rebuilt as programs: the report must find the same cause.

Each file in threads/ is a program. Its FIELD names the thread, the finding in one line, the card that the
program runs on, and what the report must say. Names of files as arguments run only these files. FIELD_SHOW=1
prints each report.
"""

import ast
import os
import pathlib
import sys

import real_process
from real_process import ANALYZER, MIB, SHIM, TORCH_PYTHON, environment

THREADS = pathlib.Path(__file__).with_name("threads")
PROGRAMS = [path for path in sorted(THREADS.glob("*.py")) if path.stem != "common"]
PAGE = real_process.SOURCE / "docs" / "field-threads.md"
DEVICE = real_process.BUILD / "lib" / "libfield_device.so"


def field_of(path):
    """Reads the FIELD of a program without running it."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "FIELD":
            return eval(compile(ast.Expression(node.value), str(path), "eval"), {"GIB": 1024})
    raise ValueError(f"{path} has no FIELD")


class FieldThreads(real_process.RealProcessTest):
    def run_program(self, path, field, arguments):
        folder = self.folder / "-".join(["run", *arguments])
        folder.mkdir()
        conf = {"PYTORCH_CUDA_ALLOC_CONF": field["conf"]} if "conf" in field else {}
        env = environment(field["card"], record_to=folder, PYTHONDONTWRITEBYTECODE=1, **conf)
        env["LD_PRELOAD"] = env["LD_PRELOAD"].replace(str(SHIM), f"{SHIM}:{DEVICE}")
        done = real_process.run([TORCH_PYTHON, "-W", "ignore", path, *arguments], env=env)
        return self.only_trace(folder), done

    def check_outcome(self, field, done):
        """Checks that the program itself behaves as the thread says."""
        ran_out = field.get("kind", "ooms") == "ooms" and not field.get("caught")
        ran_out = ran_out and field.get("requester", "pool") == "pool"
        if ran_out:
            self.assertIn("OutOfMemoryError", done.stderr)
        else:
            self.assertEqual(done.returncode, 0, done.stderr)

    def check_report(self, field, report, text):
        troubles = report[field.get("kind", "ooms")]
        self.assertTrue(troubles, text)
        trouble = troubles[0]
        self.assertEqual(trouble["verdict"], field["says"], text)
        self.assertEqual(trouble["requester"], field.get("requester", "pool"), text)
        if "also" in field:
            self.assertIn(field["also"], trouble["also_served_by"], text)
        if "frees_mib" in field:
            steps = {step["id"]: step["frees_bytes"] for step in trouble["steps"]}
            self.assertEqual(steps[field["says"]], field["frees_mib"] * MIB, text)
        if "culprit" in field:
            self.assertRegex(trouble["culprits"][0]["label"], field["culprit"], text)
        self.check_remedy(field, report, text)

    def check_remedy(self, field, report, text):
        """Checks that each remedy of the maintainers helps, and the first remedy of the report too."""
        rows = [row for row in report["whatif"] if row["pool"] == "pytorch" and row["usable"]]
        recorded = next((row for row in rows if row["recorded"]), None)
        if "remedies" in field:
            tried = {row["name"]: row for row in rows}
            for remedy in field["remedies"]:
                self.assertIn(remedy, tried, text)
                self.assertTrue(self.helps(tried[remedy], recorded), f"{remedy}\n{text}")
            if not report["ooms"]:
                return
            headline = text.splitlines()[1]
            self.assertIn("would have", headline, text)
            named = [row for row in rows if f" {row['name']} would have" in headline]
            self.assertTrue(named and self.helps(named[0], recorded), text)

    @staticmethod
    def helps(row, recorded):
        return (row["ooms"], row["retries"], row["peak_reserved_bytes"]) < (
            recorded["ooms"],
            recorded["retries"],
            recorded["peak_reserved_bytes"],
        ) and row["ooms"] == 0

    def check(self, path):
        field = field_of(path)
        trace, done = self.run_program(path, field, field.get("arguments", []))
        report = self.assert_all_agree(trace)
        text = self.run_well([ANALYZER, trace]).stdout
        if os.environ.get("FIELD_SHOW"):
            print(text, done.stderr[-600:], sep="\n")
        self.check_outcome(field, done)
        self.assertEqual(report["fidelity"]["placements_equal"], report["fidelity"]["placements"])
        self.check_report(field, report, text)
        if "runs_well" in field:
            trace, done = self.run_program(path, field, field["runs_well"])
            self.assertEqual(done.returncode, 0, done.stderr)
            report = self.report(trace)
            self.assertEqual([*report["ooms"], *report["retries"]], [])

    def test_the_page_has_one_row_for_each_tested_thread(self):
        said = [line for line in PAGE.read_text().splitlines() if line.startswith("| [")]
        self.assertEqual(said, [row_of(path) for path in PROGRAMS])
        self.assertEqual(len(said), 16)


def row_of(path):
    """Finds the page's row of a thread."""
    field = field_of(path)
    of = " (of a retry)" if field.get("kind") == "retries" else ""
    if "also" in field:
        of = of.replace(")", f"; `{field['also']}` would have avoided it)")
    if field.get("requester") == "library":
        of += ", requested by a library; the pool could have released"
    elif "frees_mib" in field:
        of += ","
    parts = [f"`{field['says']}`{of}" + (f" {field['frees_mib']:,} MiB" if "frees_mib" in field else "")]
    if "culprit" in field:
        parts.append(f"blocked by `{field['culprit']}`")
    if "remedies" in field:
        parts.append(
            "helps: " + " or ".join(name if " " in name else f"`{name}`" for name in field["remedies"])
        )
    if "runs_well" in field:
        parts.append("the run with `" + " ".join(field["runs_well"]) + "` has no failure and no retry")
    return (
        f"| [{field['thread']}](../tests/field/threads/{path.name}) | {field['finding']} | "
        f"{'; '.join(parts)} |"
    )


def add_test(path):
    def test(self):
        self.check(path)

    test.__doc__ = f"{path.stem}: {field_of(path)['finding']}"
    setattr(FieldThreads, f"test_{path.stem}", test)


for program in PROGRAMS:
    add_test(program)

if __name__ == "__main__":
    sys.argv[1:] = [name if name.startswith("-") else f"FieldThreads.test_{name}" for name in sys.argv[1:]]
    real_process.main()
