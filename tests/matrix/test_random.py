"""A sample of random programs: no row that is called exact or bound differs from its real run, and each
record replays exactly under its own settings."""

import collections

import random_rows
import real_process
from real_process import RealProcessTest

# The last three: a card that small requests past the pool fill page by page, a real run in which
# PyTorch crashes, and a program with caching off and captures that other pools serve.
SEEDS = (*range(1, 9), 442, 314, 563)


class Random(RealProcessTest):
    def test_rows_are_what_real_runs_do(self):
        checker = random_rows.Checker()
        self.addCleanup(checker.close)
        kinds = collections.Counter()
        for seed in SEEDS:
            result = checker.check(seed, self.folder / str(seed), rows=6 if seed < 100 else 12)
            for row in result["rows"]:
                with self.subTest(seed, uses=result["uses"], card=result["card"], conf=result["conf"]):
                    self.assertIsNot(row["equal"], False, row)
                    kinds[row["kind"]] += 1
            self.assertEqual(result["rows"][0]["fidelity"], "", result)
        # A sample that is never judged, or holds no failing run, shows little.
        self.assertGreater(kinds["exact"], 10, kinds)
        self.assertGreater(kinds["until"], 3, kinds)


if __name__ == "__main__":
    real_process.main()
