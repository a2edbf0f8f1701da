"""docs/hooks.md lists exactly the functions of hooks.def that are recorded."""

import re
import unittest

import real_process
from cuda_calls import rows

PAGE = (real_process.SOURCE / "docs" / "hooks.md").read_text()
NAME = r"`((?:__)?cu[A-Z]\w+|cuda[A-Z]\w+|(?:__)?cuda[A-Z]\w+)`"


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def table(text):
    return [line for line in text.splitlines() if line.startswith("|")]


class HooksPage(unittest.TestCase):
    def setUp(self):
        self.functions = {re.sub(r"(_v\d)?(_ptsz|_ptds)?$", "", row.symbol) for row in rows()}

    def test_the_page_lists_exactly_the_functions_of_the_table(self):
        calls = "".join(line.split("|")[2] for line in table(section("Recorded")))
        self.assertEqual(set(re.findall(NAME, calls)), self.functions)

    def test_an_unrecorded_call_has_no_row(self):
        for line in table(section("Not recorded, and why")):
            calls = line.split("|")[1]
            if "without a suffix" in calls:
                symbols = {row.symbol for row in rows()}
                self.assertEqual(set(re.findall(NAME, calls)) & symbols, set())
            else:
                self.assertEqual(set(re.findall(NAME, calls)) & self.functions, set())


if __name__ == "__main__":
    real_process.main()
