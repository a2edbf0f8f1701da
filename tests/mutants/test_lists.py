"""Every planted fault still has its place in the sources: when code changes, its faults must follow."""

import unittest

import planting


class Lists(unittest.TestCase):
    def test_each_planted_fault_matches_exactly_one_place(self):
        faults = planting.read_faults()
        self.assertGreaterEqual(len(faults), 200)
        lost = []
        for fault in faults:
            try:
                planting.place_of(fault, (planting.ROOT / fault.file).read_text(encoding="utf-8"))
            except (planting.PlantingError, OSError) as problem:
                lost.append(f"{fault.area}: {problem}")
        self.assertEqual(lost, [])


if __name__ == "__main__":
    unittest.main()
