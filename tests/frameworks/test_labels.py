"""Labels of blocks, from the program to the report, the page's data and the exports, with a real PyTorch."""

import csv
import json
import pathlib
import re
import sqlite3

import real_process
from real_process import ANALYZER, SOURCE, TORCH_PYTHON, environment

PROGRAMS = pathlib.Path(__file__).with_name("programs")


class Labels(real_process.RealProcessTest):
    def record(self, *arguments, **variables):
        env = environment(
            "2GiB",
            self.folder,
            PYTHONPATH=SOURCE / "preload" / "python",
            PYTHONDONTWRITEBYTECODE=1,
            **variables,
        )
        done = self.run_well([TORCH_PYTHON, PROGRAMS / "labels.py", *arguments], env=env)
        return json.loads(done.stdout)

    def labels_of(self, rows):
        """Bytes of the lines that end with a label, by label."""
        sums = {}
        for row in rows:
            found = re.search(r' "(.*)"$', row["label"])
            if found:
                sums[found[1]] = sums.get(found[1], 0) + row["bytes"]
        return sums

    def test_every_label_has_the_bytes_that_were_allocated_under_it(self):
        expected = self.record()
        trace = self.only_trace()
        report = self.report(trace)  # agrees with the text and with `summarize`
        self.assertEqual(self.labels_of(report["devices"][0]["holders"]["places"]), expected)
        text = self.run_well([ANALYZER, trace, "--no-whatif"]).stdout
        self.assertRegex(text, r'most +.*labels\.py:\d+ block "annotated"')
        self.assertRegex(text, r'blocked by .*labels\.py:\d+ block "of the thread"')

    def test_exports_and_the_page_have_the_labels(self):
        expected = self.record()
        trace = self.only_trace()
        database = self.folder / "trace.db"
        self.run_well([ANALYZER, "export", trace, "--to", "sqlite", "-o", database])
        with sqlite3.connect(database) as sql:
            found = dict(
                sql.execute(
                    "SELECT label, sum(bytes) FROM blocks JOIN stacks USING (stack) "
                    "WHERE label IS NOT NULL GROUP BY label"
                ).fetchall()
            )
        self.assertGreaterEqual(found.pop("freed"), 16 << 20)
        self.assertEqual(found, expected)
        tables = self.folder / "tables"
        self.run_well([ANALYZER, "export", trace, "--to", "csv", "-o", tables])
        text = (tables / "holders_by_kind_and_line.csv").read_text(encoding="utf-8")
        cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
        self.assertTrue(any(cell.endswith(' "inner ä"') for cell in cells), text)
        page = self.folder / "page.html"
        self.run_well([ANALYZER, trace, "--no-whatif", "--html", page])
        self.assertIn("inner \\u00e4", page.read_text().replace("ä", "\\u00e4"))
        snapshot = self.folder / "snapshot.pickle"
        self.run_well([ANALYZER, "export", trace, "--to", "snapshot", "-o", snapshot])
        report = self.report(snapshot)
        self.assertEqual(self.labels_of(report["devices"][0]["holders"]["places"]), expected)
        for kind in ("perfetto", "folded", "speedscope"):
            self.run_well([ANALYZER, "export", trace, "--to", kind, "-o", self.folder / kind])
        copy = self.folder / "anonymous.ftrace"
        self.run_well([ANALYZER, "anonymize", trace, copy])
        dump = self.run_well([ANALYZER, "dump", copy]).stdout
        self.assertIn("block_label", dump)
        self.assertNotIn("inner", dump)

    def test_labels_outlive_a_pause_of_the_recording(self):
        expected = self.record("pause")
        report = self.report(self.only_trace())
        self.assertEqual(self.labels_of(report["devices"][0]["holders"]["places"]), expected)

    def test_a_flight_recorder_keeps_the_labels_of_blocks_of_earlier_parts(self):
        expected = self.record(FRAGTRACE_SIZE_LIMIT="1MiB")
        parts = real_process.traces(self.folder)
        report = self.report(parts[-1])
        self.assertEqual(self.labels_of(report["devices"][0]["holders"]["places"]), expected)

    def test_blocks_of_a_forward_pass_carry_the_name_of_their_module(self):
        env = environment(
            "2GiB", self.folder, PYTHONPATH=SOURCE / "preload" / "python", PYTHONDONTWRITEBYTECODE=1
        )
        done = self.run_well([TORCH_PYTHON, PROGRAMS / "module_names.py"], env=env)
        expected, hooks = json.loads(done.stdout)
        self.assertEqual(hooks, 0)
        labels = self.labels_of(self.report(self.only_trace())["devices"][0]["holders"]["places"])
        self.assertEqual({name: labels.get(name) for name in expected}, expected)
        self.assertEqual([name for name in labels if not name.startswith("net")], [])

    def test_without_the_recorder_labels_do_nothing(self):
        env = environment("2GiB", PYTHONPATH=SOURCE / "preload" / "python", PYTHONDONTWRITEBYTECODE=1)
        self.run_well([TORCH_PYTHON, PROGRAMS / "labels.py"], env=env, cwd=self.folder)
        self.assertEqual(real_process.traces(self.folder), [])


if __name__ == "__main__":
    real_process.main()
