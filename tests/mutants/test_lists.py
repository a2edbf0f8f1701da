"""Every planted fault still has its place in the sources: when code changes, its faults must follow."""

import re
import unittest

import planting


class Lists(unittest.TestCase):
    def test_each_planted_fault_matches_exactly_one_place(self):
        faults = planting.read_faults()
        self.assertGreaterEqual(len(faults), 200)
        lost = []
        for fault in faults:
            try:
                text = (planting.ROOT / fault.file).read_text(encoding="utf-8")
                _, end = planting.place_of(fault, text)
                # A whole statement becomes one with braces, which no "else" may follow.
                whole = fault.right.endswith((";", "}", "{")) or re.match(r"(if|while)\b", fault.right)
                if not whole and re.search(r"^(return|case)\b|[&|?:=(,]$", fault.right):
                    lost.append(f"{fault.area}: {fault.file}: no expression: {fault.right}")
                if fault.right.endswith(";") and re.match(r"\s*else\b", text[end:]):
                    lost.append(f"{fault.area}: {fault.file}: 'else' follows {fault.right}")
            except (planting.PlantingError, OSError) as problem:
                lost.append(f"{fault.area}: {problem}")
        self.assertEqual(lost, [])

    def test_right_and_faulty_code_have_balanced_brackets(self):
        """A condition or a branch may end with the bracket that opens its block."""
        pairs = {"(": ")", "[": "]", "{": "}"}
        wrong = []
        for fault in planting.read_faults():
            for form in (fault.right, fault.wrong):
                expected = []
                text = re.sub(r"'(\\?.)'|\"(\\.|[^\"\\])*\"", "", form.removeprefix("} else "))
                for sign in re.sub(r"^((?:if|while) \(.*\)|else) \{$", r"\1", text):
                    if sign in pairs:
                        expected.append(pairs[sign])
                    elif sign in pairs.values() and (not expected or expected.pop() != sign):
                        expected.append("no " + sign)
                        break
                if expected:
                    wrong.append(f"{fault.file}: {form}")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
