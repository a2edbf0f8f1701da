"""The tables of the report as CSV: each cell is a value of the report's JSON, and each value is in a cell.

The readers are Python's csv module and the command `sqlite3`.
"""

import collections
import csv
import json
import shutil
import unittest

import real_process
import recordings
from real_process import ANALYZER, MIB, TORCH_PYTHON, with_escapes

# Lists of the JSON, and the table with the same rows. A column with the name of a key has its value.
SAME_ROWS = {
    "whatif": "whatif",
    "advice": "advice",
    "phases": "phases",
    "driver_calls": "driver_calls",
    "near_misses": "near_misses",
}


class Number(str):
    """A number as it is written in the JSON."""


def cell_of(value):
    """The cell that a value of the JSON must have."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return json.dumps(value)
    text = with_escapes(value)
    return "'" + text if not isinstance(value, Number) and text[:1] in tuple("=+-@") else text


def leaves(value, path=""):
    """All values of the document that are no objects and no lists: their keys, and their cells.

    Empty ones are left out."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{path}/{key}")
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one, path)
    elif cell_of(value):
        yield path, cell_of(value)


class Csv(real_process.RealProcessTest):
    def export(self, trace):
        """The tables by name, each a list of rows; and the JSON of the report, with numbers as text."""
        folder = self.folder / "tables"
        self.run_well([ANALYZER, "export", trace, "--to", "csv", "-o", folder])
        text = self.run_well([ANALYZER, trace, "--json", "-"]).stdout
        report = json.loads(text, parse_int=Number, parse_float=Number)
        tables = {}
        for file in sorted(folder.iterdir()):
            lines = file.read_text().splitlines()
            with file.open(newline="") as opened:
                rows = list(csv.DictReader(opened, strict=True))
            self.assertEqual(len(rows) + 1, len(lines), file.name)  # no cell has a line break
            for row in rows:
                self.assertNotIn(None, row, file.name)
                self.assertNotIn(None, row.values(), file.name)
            tables[file.stem] = rows
        return tables, report

    def assert_tables_have_all(self, tables, report):
        cells = collections.Counter(
            value for rows in tables.values() for row in rows for value in row.values() if value
        )
        # The first device's values are repeated at the top of the document, the names in `source`.
        inside = {key: value for key, value in report.items() if key not in ("fidelity", "capacity_bytes")}
        inside["source"] = dict(report["source"], device_names=[])
        listed = list(leaves(inside))
        missing = collections.Counter(cell for _, cell in listed) - cells
        keys = sorted({path for path, cell in listed if cell in missing})
        self.assertFalse(
            missing, f"analyzer/export/csv_tables.cpp has no column for one of these keys: {keys}"
        )
        for key, table in SAME_ROWS.items():
            self.assertEqual(len(tables[table]), len(report[key]), table)
            for row, wanted in zip(tables[table], report[key], strict=True):
                for column in row.keys() & wanted.keys():
                    self.assertEqual(row[column], cell_of(wanted[column]), f"{table}.{column}")
        for row, device in zip(tables["devices"], report["devices"], strict=True):
            for kind, value in device["peak"].items():
                self.assertEqual(row[f"peak_{kind}_bytes"], value)
            for kind, value in device["waste_at_peak"].items():
                self.assertEqual(row[f"waste_{kind}_bytes"], value)
        for row, wanted in zip(tables["whatif"], report["whatif"], strict=True):
            for kind, value in wanted["waste_at_peak"].items():
                self.assertEqual(row[f"waste_{kind}_bytes"], value)
        failures = [("out_of_memory", one) for one in report["ooms"]]
        failures += [("retry", one) for one in report["retries"]]
        for row, (outcome, wanted) in zip(tables["failures"], failures, strict=True):
            self.assertEqual(row["outcome"], outcome)
            for column in row.keys() & wanted.keys():
                self.assertEqual(row[column], cell_of(wanted[column]), column)
        # Rows of inner lists name their device and event.
        culprits = [
            (outcome, one["device"], one["event"], culprit["held_open_bytes"], cell_of(culprit["label"]))
            for outcome, one in failures
            for culprit in one.get("culprits", [])
        ]
        columns = ("outcome", "device", "event", "held_open_bytes", "label")
        found = [tuple(row[column] for column in columns) for row in tables["culprits"]]
        self.assertEqual(found, culprits)
        held = [
            ("peak", one["index"], kind["category"], kind["bytes"])
            for one in report["devices"]
            for kind in (one["holders"] or {}).get("categories", [])
        ]
        held += [
            (outcome, one["device"], kind["category"], kind["bytes"])
            for outcome, one in failures
            for kind in (one.get("holders") or {}).get("categories", [])
        ]
        columns = ("at", "device", "category", "bytes")
        found = [tuple(row[column] for column in columns) for row in tables["holders_by_kind"]]
        self.assertEqual(found, held)
        for table, column in (("assumptions", "assumption"), ("warnings", "warning")):
            self.assertEqual([row[column] for row in tables[table]], list(map(cell_of, report[table])))
        facts = {row["key"]: row["value"] for row in tables["facts"]}
        self.assertEqual(facts, {cell_of(k): cell_of(v) for k, v in report["facts"].items()})

    def test_the_tables_of_two_devices_have_all_that_the_report_has(self):
        tables, report = self.export(recordings.two_devices(self))
        self.assert_tables_have_all(tables, report)
        peaks = [(row["device"], int(row["peak_allocated_bytes"]) // MIB) for row in tables["devices"]]
        self.assertEqual(peaks, [("0", 300), ("1", 50)])

    def test_text_of_the_program_is_no_formula_and_no_second_line(self):
        tables, _ = self.export(recordings.two_devices(self))
        functions = {row["function"] for row in tables["failure_stacks"]}
        self.assertIn('\'=HYPERLINK("a,b")', functions)
        (run,) = tables["run"]
        self.assertTrue(run["command_line"].endswith("two\\nlines"), run["command_line"])
        for table, rows in tables.items():
            for row in rows:
                for column, value in row.items():
                    if value[:1] in tuple("=+-@"):
                        self.assertRegex(value, r"^-[0-9.e+-]+$", f"{table}.{column}")

    def test_the_tables_of_a_snapshot_have_all_that_the_report_has(self):
        self.assert_tables_have_all(*self.export(recordings.snapshot(self)))

    @unittest.skipUnless(TORCH_PYTHON, recordings.NO_TORCH)
    def test_the_tables_of_pytorch_and_its_snapshot_have_all_that_the_report_has(self):
        trace, snapshots = recordings.torch_training(self)
        tables, report = self.export(trace)
        self.assert_tables_have_all(tables, report)
        kinds = {row["table"] for row in tables["whatif"]}
        self.assertEqual(kinds, {"settings", "remedies", "pools", "bounds", "cards"})
        self.assert_tables_have_all(*self.export(snapshots["whole"]))

    def test_sqlite_imports_the_tables(self):
        if shutil.which("sqlite3") is None:
            self.skipTest("sqlite3 is missing: apt-get install sqlite3")
        tables, _ = self.export(recordings.two_devices(self))
        database = self.folder / "report.db"
        for table, rows in tables.items():
            file = self.folder / "tables" / f"{table}.csv"
            done = self.run_well(["sqlite3", database, ".mode csv", f".import {file} {table}"])
            self.assertEqual(done.stderr, "", table)
            if rows:
                done = self.run_well(["sqlite3", "-json", database, f"select * from {table}"])
                self.assertEqual(json.loads(done.stdout), rows, table)
        query = (
            "select device, sum(bytes) from holders_by_line_at_peak join devices using (device) "
            "group by device having sum(bytes) = 0 + peak_allocated_bytes order by device"
        )
        done = self.run_well(["sqlite3", database, query])
        self.assertEqual(done.stdout.split(), [f"0|{300 * MIB}", f"1|{50 * MIB}"])

    def test_only_folders_of_tables_are_replaced(self):
        snapshot = recordings.snapshot(self)
        folder = self.folder / "tables"
        command = [ANALYZER, "export", snapshot, "--to", "csv", "-o", folder]
        folder.mkdir()
        self.run_well(command)
        before = {file.name for file in folder.iterdir()}
        (folder / "run.csv").write_text("old\n")
        self.run_well(command)
        self.assertEqual({file.name for file in folder.iterdir()}, before)
        self.assertNotEqual((folder / "run.csv").read_text(), "old\n")
        (folder / "run.csv").write_text("old\n")
        (folder / "notes.csv").write_text("mine\n")
        done = self.run_well([*command, "--force"], expected=2)
        self.assertIn("files that fraganalyze did not write", done.stderr)
        self.assertEqual((folder / "run.csv").read_text(), "old\n")
        self.assertEqual([path.name for path in self.folder.glob("tables.*")], [])
        for output in ("-", snapshot):
            self.run_well([ANALYZER, "export", snapshot, "--to", "csv", "-o", output], expected=2)


if __name__ == "__main__":
    real_process.main()
