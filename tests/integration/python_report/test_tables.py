"""Tables of reports in pyarrow and pandas, and Parquet files read back by pyarrow and DuckDB."""

import json
import re
import sqlite3
import sys

import package
import real_process
from real_process import ANALYZER, LAUNCHER, MIB, SOURCE, environment

FOLDER = SOURCE / "tests/integration/python_report"
TABLES = """
import json, sys
import fragtrace, pyarrow
report = fragtrace.load(sys.argv[1], whatif=False)
blocks, events = report.blocks(), report.events()
report.close()  # the tables stay
for table in (blocks, events):
    table.to_arrow().validate(full=True)
    assert len(table) == table.to_arrow().num_rows
frame = blocks.to_pandas()
assert str(frame["bytes"].dtype) == "UInt64" and str(frame["line"].dtype) == "category", frame.dtypes
def rows(table):
    return [list(row.values()) for row in table.to_arrow().to_pylist()]
print(json.dumps({"block columns": blocks.column_names, "blocks": rows(blocks), "event columns":
                  events.column_names, "events": rows(events), "pandas": int(frame["bytes"].sum())}))
"""
PARQUET = """
import json, pathlib, sys
import duckdb, fragtrace, pyarrow.dataset
folder = pathlib.Path(sys.argv[1])
written = fragtrace.to_parquet(sys.argv[2:], folder)
assert written == fragtrace.to_parquet(sys.argv[2:], folder)  # again
assert written[:2] == fragtrace.to_parquet(sys.argv[2], folder)  # one path is one trace
for target in ("/dev/null/folder", "/proc/no/such"):
    try:
        fragtrace.to_parquet(sys.argv[2], target)
        raise SystemExit("no error")
    except fragtrace.Error as error:
        assert str(error).startswith(target), error
    try:
        fragtrace.load(sys.argv[2]).blocks().to_parquet(target + "/blocks.parquet")
        raise SystemExit("no error")
    except fragtrace.Error as error:
        assert str(error).startswith(target), error
found = {"files": [str(file.relative_to(folder)) for file in written]}
for kind in ("blocks", "events"):
    data = pyarrow.dataset.dataset(folder / kind, partitioning="hive").to_table()
    counted = data.group_by("run").aggregate([("stack", "count")]).to_pylist()
    found[kind] = {row["run"]: row["stack_count"] for row in counted}
    pattern = str(folder / kind / "*" / "*.parquet")
    query = f"SELECT run, count(*) FROM read_parquet('{pattern}', hive_partitioning = true) GROUP BY run"
    found["duckdb " + kind] = dict(duckdb.sql(query).fetchall())
query = f"SELECT line, max(bytes) FROM '{folder}/blocks/*/*.parquet' GROUP BY line ORDER BY 2 DESC LIMIT 1"
found["largest"] = duckdb.sql(query).fetchall()[0]
try:
    fragtrace.to_parquet([sys.argv[2], sys.argv[2]], folder)
except fragtrace.Error as error:
    found["twice"] = str(error)
print(json.dumps(found))
"""
WITHOUT = """
import sys, fragtrace
try:
    fragtrace.load(sys.argv[1], whatif=False).blocks()
except fragtrace.Error as error:
    print(error)
"""


class Tables(real_process.RealProcessTest):
    def record(self, name):
        self.run_well(
            [LAUNCHER, "run", "--virtual-gpu", "1GiB,context=0", "-o", self.folder / name, "--quiet", "--",
             sys.executable, FOLDER / "allocates.py"],
            env=environment(),
        )  # fmt: skip
        return self.only_trace(self.folder / name)

    def python(self, program, *arguments):
        done = self.run_well(
            [PYTHON, "-c", program, *arguments], env=environment(**package.variables()), cwd=self.folder
        )
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def test_they_agree_with_the_sqlite_export(self):
        trace = self.record("one")
        found = self.python(TABLES, trace)
        database = self.folder / "one.db"
        self.run_well([ANALYZER, "export", trace, "--to", "sqlite", "-o", database])
        with sqlite3.connect(database) as connection:
            query = """SELECT device, b.address, bytes, requested_bytes, stream, stack,
                       CASE stack WHEN 0 THEN NULL ELSE s.line END, start_event, freed_event, end_event,
                       start_ns, freed_ns, end_ns, step, freed_step
                       FROM blocks b JOIN stacks s USING (stack) ORDER BY block"""
            expected = [list(row) for row in connection.execute(query)]
            self.assertEqual(found["blocks"], expected)
            query = """SELECT event, time_ns, device, e.kind, address, bytes, requested_bytes, stream, pool,
                       e.thread, stack, CASE stack WHEN 0 THEN NULL ELSE s.line END, duration_ns, p.name,
                       step, partner, flags
                       FROM events e JOIN stacks s USING (stack) LEFT JOIN phases p USING (phase)
                       ORDER BY event"""
            expected = [list(row) for row in connection.execute(query)]
            self.assertEqual(found["events"], expected)
        self.assertEqual(found["pandas"], 350 * MIB)
        self.assertEqual(
            [row[found["block columns"].index("bytes")] // MIB for row in found["blocks"]], [100, 200, 50]
        )
        page = (SOURCE / "docs" / "python.md").read_text()
        for columns in (found["block columns"], found["event columns"]):
            for column in columns:
                self.assertIn(f"`{column}`", page)

    def test_parquet_files_of_many_runs_are_one_table(self):
        traces = [self.record(name) for name in ("one", "two")]
        found = self.python(PARQUET, self.folder / "data", *traces)
        names = [re.sub(r"\.ftrace$", "", trace.name) for trace in traces]
        self.assertEqual(
            found["files"],
            [f"{kind}/run={name}/part.parquet" for name in names for kind in ("blocks", "events")],
        )
        self.assertEqual(found["blocks"], dict.fromkeys(names, 3))
        self.assertEqual(found["duckdb blocks"], found["blocks"])
        self.assertEqual(found["duckdb events"], found["events"])
        self.assertEqual(len(set(found["events"].values())), 1)
        self.assertEqual(found["largest"][1], 200 * MIB)
        self.assertRegex(found["largest"][0], r"allocates\.py:\d+")
        self.assertIn("two runs have this name", found["twice"])

    def test_without_pyarrow_an_error_says_what_to_install(self):
        done = self.run_well(
            [sys.executable, "-S", "-c", WITHOUT, self.record("one")],
            env=environment(**package.variables()),
        )
        self.assertRegex(done.stdout, r"tables need pyarrow: pip install 'fragtrace\[data\]'")


PYTHON = package.tool_python("pyarrow")

if __name__ == "__main__":
    if PYTHON is None:
        print("skipped: pyarrow is not installed (scripts/setup --tests)")
        sys.exit(77)
    package.main()
