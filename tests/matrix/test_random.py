"""A sample of random programs: no row called exact or bound differs from its real run.

Each trace replays exactly under its own settings.
"""

import collections

import random_rows
import real_process
from real_process import RealProcessTest

# The last three: small requests outside the pool fill a card page by page; PyTorch crashes in a real run; a
# program has caching off and captures served by other pools.
SEEDS = (*range(1, 9), 442, 314, 563)


class Random(RealProcessTest):
    def test_exact_rows_and_bounds_agree_with_real_runs(self):
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
        # The sample must have judged rows and failing runs, otherwise it shows little.
        self.assertGreater(kinds["exact"], 10, kinds)
        self.assertGreater(kinds["until"], 3, kinds)


if __name__ == "__main__":
    real_process.main()
