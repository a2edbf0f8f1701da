"""Lists that repeat lists of the sources are complete.

The tables of event kinds in docs/trace-format.md agree with event_kinds.def, and the JSON schemas allow every
call and every pool.
"""

import json
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r"^FT_EVENT_KIND\((\w+), (\d+), (\w+), (.*)\)$", re.MULTILINE)
# The stream of these kinds is that of the first block. It is given only in checkpoints, as the text says.
STREAM_IN_CHECKPOINTS = {"device alloc", "address reserve"}


def read_definition():
    """Number -> (name, whether address, size, extra and stream have a meaning)."""
    kinds = {}
    text = (SOURCE / "preload" / "include" / "fragtrace" / "event_kinds.def").read_text()
    for _, number, name, rest in ROW.findall(text):
        traits, *columns = re.split(r", (?![^()]*\))", rest)[1:]
        assert len(columns) == 3, rest
        name = name.replace("_", " ")
        stream = "kHasStream" in traits and name not in STREAM_IN_CHECKPOINTS
        kinds[int(number)] = (name, *(column != "kNothing" for column in columns), stream)
    return kinds


def read_page():
    """The same from the page. A row may have several kinds. A cell then has one part for all of them, or one
    part each."""
    kinds = {}
    text = (SOURCE / "docs" / "trace-format.md").read_text(encoding="utf-8")
    for line in re.findall(r"^\| \d+(?:, \d+)* \|.*\|.*\|.*\|.*\|.*\|$", text, re.MULTILINE):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        numbers = cells[0].split(", ")
        names = re.split(r", ", cells[1])
        for place, number in enumerate(numbers):
            columns = []
            for cell in cells[2:]:
                parts = cell.split(", ")
                part = parts[place] if len(parts) == len(numbers) else cell
                columns.append(part not in ("", "-"))
            kinds[int(number)] = (names[place], *columns)
    return kinds


class EventKinds(unittest.TestCase):
    maxDiff = None

    def test_the_page_describes_every_kind(self):
        definition, page = read_definition(), read_page()
        self.assertGreater(len(definition), 50)
        self.assertEqual(sorted(page), sorted(definition))
        for number, (name, *columns) in definition.items():
            with self.subTest(number=number, kind=name):
                described, *told = page[number]
                self.assertTrue(re.match(re.escape(name) + r"(?!\w)", described), described)
                self.assertEqual(told, columns, "address, size, extra, stream")

    def test_the_schema_of_driver_calls_has_every_kind_that_is_a_call(self):
        text = (SOURCE / "preload" / "include" / "fragtrace" / "event_kinds.def").read_text()
        report = json.loads((SOURCE / "docs" / "schema" / "report.json").read_text())
        names = report["properties"]["driver_calls"]["items"]["properties"]["kind"]["anyOf"][0]["enum"]
        calls = {row[2] for row in ROW.findall(text) if "kCall" in row[3]}
        self.assertGreater(len(calls), 30)
        self.assertEqual(set(names), calls)

    def test_the_schema_of_pools_has_every_simulated_pool(self):
        text = (SOURCE / "analyzer" / "pools" / "registry" / "pool_registry.cpp").read_text()
        common = json.loads((SOURCE / "docs" / "schema" / "common.json").read_text())
        pools = re.findall(r'^ +\{\.name = "([\w-]+)",$', text, re.MULTILINE)
        self.assertGreater(len(pools), 8)
        self.assertEqual(set(common["$defs"]["pool"]["enum"]), set(pools))


if __name__ == "__main__":
    unittest.main()
