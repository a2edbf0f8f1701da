"""Categories by the user's rules: report, JSON, page, tables and Python, for a snapshot written by hand."""

import csv
import json
import pickle
import sqlite3
import sys

import real_process
from real_process import ANALYZER, SOURCE, environment

MIB = 1 << 20
BASE = 0x7F0000000000
# File, line, function, MiB and metadata of each block.
BLOCKS = [
    ("/home/me/serve/cache.py", 88, "Cache.grow", 6, "kv cache"),
    ("/home/me/serve/cache.py", 88, "Cache.grow", 4, ""),
    ("/home/me/model/net.py", 12, "Attention.forward", 3, ""),
    ("/home/me/model/net.py", 30, "MLP.forward", 2, ""),
    ("/home/me/train.py", 7, "main", 1, ""),
]
RULES = """\
# The first rule that matches counts.
kv cache:  label ^kv
cache:     stack serve/cache\\.py
attention: stack \\w*Attention\\.forward$
kash:      stack kash
"""


def snapshot():
    """A state with its history, where PyTorch keeps the metadata."""
    address = BASE
    blocks, history = [], []
    for file, line, function, mib, metadata in BLOCKS:
        block = {
            "address": address,
            "size": mib * MIB,
            "requested_size": mib * MIB,
            "state": "active_allocated",
            "frames": [{"filename": file, "line": line, "name": function}],
        }
        blocks.append(block)
        history.append(
            {
                "action": "alloc",
                "addr": address,
                "size": mib * MIB,
                "stream": 0,
                "frames": block["frames"],
                "time_us": 10 + len(history),
                "user_metadata": metadata,
            }
        )
        address += mib * MIB
    total = sum(block["size"] for block in blocks)
    segment = {
        "device": 0,
        "address": BASE,
        "total_size": total,
        "allocated_size": total,
        "active_size": total,
        "requested_size": total,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }
    mapped = {"action": "segment_alloc", "addr": BASE, "size": total, "stream": 0, "frames": [], "time_us": 1}
    return {"segments": [segment], "device_traces": [[mapped, *history]], "allocator_settings": {}}


class Categories(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        self.snapshot = self.folder / "state.pickle"
        self.snapshot.write_bytes(pickle.dumps(snapshot()))
        self.rules = self.folder / "my.rules"
        self.rules.write_text(RULES)

    def holders(self, *options):
        output = self.folder / "report.json"
        self.run_well([ANALYZER, self.snapshot, "--json", output, "--force", *options])
        report = json.loads(output.read_text())
        return report, report["devices"][0]["holders"]

    def test_blocks_have_the_category_of_the_first_rule_that_matches(self):
        report, holders = self.holders("--categories", self.rules)
        found = {}
        for row in holders["categories"]:
            found[row["user_category"]] = found.get(row["user_category"], 0) + row["bytes"] // MIB
        self.assertEqual(found, {"kv cache": 6, "cache": 4, "attention": 3, None: 3})
        places = {row["label"]: row["user_category"] for row in holders["places"]}
        self.assertEqual(places['serve/cache.py:88 Cache.grow "kv cache"'], "kv cache")
        self.assertEqual(places["serve/cache.py:88 Cache.grow"], "cache")
        rules = report["category_rules"]
        self.assertEqual(rules["file"], str(self.rules))
        self.assertEqual(
            [(rule["line"], rule["category"], rule["matched"]) for rule in rules["rules"]],
            [(2, "kv cache", True), (3, "cache", True), (4, "attention", True), (5, "kash", False)],
        )
        unused = f"{self.rules}: 1 rule matches no allocation: 'kash' (line 5)"
        self.assertIn(unused, report["warnings"])
        text = self.run_well([ANALYZER, self.snapshot, "--categories", self.rules, "--color", "never"]).stdout
        text = " ".join(text.split())
        self.assertIn("kv cache 6 MiB, cache 4 MiB,", text)
        self.assertIn(f"by the rules of {self.rules}", text)
        self.assertIn("'kash' (line 5)", text)

    def test_without_rules_there_are_only_kinds(self):
        report, holders = self.holders()
        self.assertIsNone(report["category_rules"])
        self.assertEqual({row["user_category"] for row in holders["categories"]}, {None})

    @real_process.not_sanitized
    def test_tables_the_page_and_python_have_the_categories(self):
        tables = self.folder / "tables"
        options = ("--categories", self.rules)
        self.run_well([ANALYZER, "export", self.snapshot, "--to", "csv", "-o", tables, *options])
        with open(tables / "holders_by_kind.csv", encoding="utf-8", newline="") as file:
            rows = {row["user_category"]: int(row["bytes"]) // MIB for row in csv.DictReader(file)}
        self.assertEqual(rows["kv cache"], 6)
        database = self.folder / "trace.db"
        self.run_well([ANALYZER, "export", self.snapshot, "--to", "sqlite", "-o", database, *options])
        with sqlite3.connect(database) as sql:
            lines = dict(sql.execute("SELECT user_category, sum(bytes) FROM holding_lines GROUP BY 1"))
        self.assertEqual(lines["attention"], 3 * MIB)
        page = self.folder / "page.html"
        self.run_well([ANALYZER, self.snapshot, "--html", page, *options])
        self.assertIn('"kv cache"', page.read_text(encoding="utf-8"))
        program = (
            "import fragtrace, sys\n"
            "report = fragtrace.load(sys.argv[1], whatif=False, categories=sys.argv[2])\n"
            "print(sorted({row['user_category'] or '' for row in report.holders}))\n"
        )
        env = environment(PYTHONPATH=SOURCE / "preload" / "python", FRAGTRACE_PREFIX=ANALYZER.parent.parent)
        done = self.run_well([sys.executable, "-c", program, self.snapshot, self.rules], env=env)
        self.assertEqual(done.stdout.strip(), "['', 'attention', 'cache', 'kv cache']")

    def test_the_rules_that_fragtrace_brings_are_found_by_name(self):
        report, _ = self.holders("--categories", "transformers")
        self.assertEqual(report["category_rules"]["file"], "transformers")
        self.assertFalse([line for line in report["warnings"] if "allocation" in line])

    def refusal(self, rules, *command):
        done = self.run_well([ANALYZER, *command, "--categories", rules], expected=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_a_wrong_file_is_refused_with_its_line_and_column(self):
        self.rules.write_text(RULES + "bad: stack [\n")
        for command in ([self.snapshot], ["export", self.snapshot, "--to", "csv", "-o", self.folder / "t"]):
            message = self.refusal(self.rules, *command)
            self.assertIn("line 6, column 12: the pattern is not valid: missing ]", message)
        self.assertIn("rules that fragtrace brings: transformers", self.refusal("transformer", self.snapshot))
        self.rules.write_bytes(b"\x80\x02}q\x00")
        self.assertIn("line 1, column 2: not text (byte 0x02)", self.refusal(self.rules, self.snapshot))
        self.rules.write_bytes(b"# comment\n" * 200_000)
        self.assertIn("too many for a file of rules", self.refusal(self.rules, self.snapshot))
        self.assertIn("is not a regular file", self.refusal(self.folder, self.snapshot))
        done = self.run_well(
            [ANALYZER, "export", self.snapshot, "--to", "snapshot", "-o", "-", "--categories", self.rules],
            expected=2,
        )
        self.assertIn("--categories: the format snapshot does not use it", done.stderr)


if __name__ == "__main__":
    real_process.main()
