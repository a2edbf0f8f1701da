"""The tables of event kinds in docs/trace-format.md agree with event_kinds.def.

Numbers and names are the same, and a column is described if the kind uses it.
"""

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


if __name__ == "__main__":
    unittest.main()
