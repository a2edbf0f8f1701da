"""Categories by rules, with a real model of transformers: the rules that fragtrace brings, and one's own.

Python's regular expressions, applied to the stacks of the SQLite export, give the expected bytes.
Skipped by name without transformers, which scripts/setup --tests installs.
"""

import csv
import json
import os
import pathlib
import re
import sqlite3

import real_process
from real_process import ANALYZER, SOURCE, TORCH_PYTHON, environment, run

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fragtrace"
PROGRAMS = pathlib.Path(__file__).with_name("programs")
STARTER = SOURCE / "analyzer" / "analysis" / "holders" / "starters" / "transformers.rules"


def rules_of(text):
    rules = []
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            name, rest = line.split(":", 1)
            where, pattern = rest.split(None, 1)
            rules.append((name.strip(), where, re.compile(pattern.strip())))
    return rules


class Categories(real_process.RealProcessTest):
    def record(self, what):
        path = ":".join(map(str, sorted(CACHE.glob("transformers-*"))))
        if run([TORCH_PYTHON, "-c", "import transformers"], env=environment(PYTHONPATH=path)).returncode != 0:
            self.skipTest("no transformers beside PyTorch (scripts/setup --tests installs it)")
        env = environment("4GiB", self.folder, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE=1, HF_HUB_OFFLINE=1)
        done = self.run_training([PROGRAMS / "categories.py", what], env=env)
        return json.loads(done.stdout)

    def rows_at_peak(self, trace, *options):
        output = self.folder / "report.json"
        self.run_well([ANALYZER, trace, "--no-whatif", "--json", output, "--force", *options])
        report = json.loads(output.read_text(encoding="utf-8"))
        return report, report["devices"][0]["holders"]

    def shown(self, holders):
        sums = {}
        for row in holders["categories"]:
            name = row["user_category"] or row["category"].replace("_", " ")
            sums[name] = sums.get(name, 0) + row["bytes"]
        return sums

    def expected(self, trace, rules, event):
        """Categories of the blocks at the peak, by Python's regular expressions on the exported stacks."""
        database = self.folder / "trace.db"
        self.run_well([ANALYZER, "export", trace, "--to", "sqlite", "-o", database, "--force"])
        with sqlite3.connect(database) as sql:
            frames = {}
            for stack, file, module, line, function in sql.execute(
                "SELECT stack, file, module, line, function FROM stack_frames JOIN frames USING (frame)"
            ):
                place = f"{file}:{line}" if file and line else file or module or ""
                frames.setdefault(stack, []).append(f"{place} {function}".strip())
            labels = dict(sql.execute("SELECT stack, label FROM stacks WHERE label IS NOT NULL"))
            sums = {}
            for stack, size in sql.execute(
                "SELECT stack, bytes FROM blocks "
                "WHERE start_event <= ? AND (freed_event IS NULL OR freed_event > ?)",
                (event, event),
            ):
                subjects = {
                    "stack": frames.get(stack, []),
                    "label": [labels[stack]] if stack in labels else [],
                }
                name = next(
                    (
                        name
                        for name, where, pattern in rules
                        if any(pattern.search(text) for text in subjects.get(where, []))
                    ),
                    None,
                )
                sums[name] = sums.get(name, 0) + size
        return sums

    def test_rules_for_stacks_agree_with_pythons_regular_expressions(self):
        self.record("train")
        trace = self.only_trace()
        # Without the rules for kinds, which the export of single blocks does not have.
        text = "".join(
            line
            for line in STARTER.read_text().splitlines(keepends=True)
            if not re.search(r":\s+kind ", line)
        )
        own = self.folder / "own.rules"
        own.write_text(text)
        report, holders = self.rows_at_peak(trace, "--categories", own)
        expected = self.expected(trace, rules_of(text), holders["event"])
        found = {}
        for row in holders["categories"]:
            found[row["user_category"]] = found.get(row["user_category"], 0) + row["bytes"]
        self.assertEqual(found, expected)
        for name in ("attention", "mlp", "embeddings", "norms", "logits and loss"):
            self.assertGreater(found.get(name, 0), 0, found)
        self.assertEqual(sum(found.values()), holders["allocated_bytes"])
        # Rules for parts that this program does not have are named, with their lines.
        unused = [line for line in report["warnings"] if "match no allocation" in line]
        self.assertEqual(len(unused), 1, report["warnings"])
        self.assertIn("'vae' (line ", unused[0])
        uses = {rule["category"]: rule["matched"] for rule in report["category_rules"]["rules"]}
        self.assertFalse(uses["vae"])
        self.assertTrue(uses["attention"])

    def test_a_training_has_parameters_and_optimizer_state_beside_the_parts_of_the_model(self):
        expected = self.record("train")
        trace = self.only_trace()
        report, holders = self.rows_at_peak(trace, "--categories", "transformers")
        shown = self.shown(holders)
        for name, size in expected.items():
            self.assertEqual(shown.get(name), size, shown)
        self.assertFalse([line for line in report["warnings"] if "no allocation" in line])
        text = self.run_well([ANALYZER, trace, "--no-whatif", "--categories", "transformers"]).stdout
        self.assertRegex(text, r"holders .*attention .*by the rules of transformers")

    def test_a_cache_of_keys_and_values_has_the_bytes_of_its_tensors(self):
        expected = self.record("generate")
        trace = self.only_trace()
        _, holders = self.rows_at_peak(trace, "--categories", "transformers")
        self.assertEqual(self.shown(holders).get("kv cache"), expected["kv cache"])
        tables = self.folder / "tables"
        self.run_well(
            [ANALYZER, "export", trace, "--to", "csv", "-o", tables, "--categories", "transformers"]
        )
        with open(tables / "holders_by_kind.csv", encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["user_category"] == "kv cache"]
        self.assertEqual(sum(int(row["bytes"]) for row in rows), expected["kv cache"])
        page = self.folder / "page.html"
        self.run_well([ANALYZER, trace, "--no-whatif", "--categories", "transformers", "--html", page])
        self.assertIn("kv cache", page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    real_process.main()
