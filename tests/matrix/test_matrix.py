"""A sample of the matrix: the predictions of a trace equal real runs.

This holds on the recorded card and on a larger one, for any recorded settings.
"""

import collections

import matrix
import real_process
from real_process import RealProcessTest

SAMPLE = ("holes", "limited", "two_streams")
RECORDED = ("", "roundup_power2_divisions:4", "max_split_size_mb:20")
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:30,max_non_split_rounding_mb:50",
    "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9",
    "throw_on_cudamalloc_oom:True",
)
CARDS = ("tight", "roomy")


class Matrix(RealProcessTest):
    def test_predictions_equal_real_runs(self):
        plain, recording = matrix.Torch(recorded=False), matrix.Torch(recorded=True)
        self.addCleanup(plain.close)
        self.addCleanup(recording.close)
        kinds, endings = collections.Counter(), collections.Counter()
        for program in SAMPLE:
            statistics, _ = plain.run(program, 16384, "", self.folder)
            cards = {name: size for name, size in matrix.cards_of(statistics).items() if name in CARDS}
            records = {
                (card, conf): recording.run(program, size, conf, self.folder / program / card)
                for card, size in cards.items()
                for conf in RECORDED
            }
            reals = {
                (card, conf): plain.run(program, size, conf, self.folder)[0]
                for card, size in cards.items()
                for conf in SETTINGS
            }
            for row in matrix.rows_of(program, cards, records, reals):
                with self.subTest(program, card=(row["from"], row["on"]), conf=row["conf"]):
                    self.assertNotEqual(row["kind"], "estimate", row["reason"])
                    self.assertTrue(row["equal"], row)
                    kinds[row["kind"]] += 1
                    endings[reals[row["on"], row["conf"]]["ended"]] += 1
        # The sample must have failing and successful runs, otherwise it shows little.
        self.assertGreater(min(kinds["exact"], endings["ok"], endings["oom"]), 5, (kinds, endings))

    def test_a_row_with_a_pool_that_pytorch_loses_is_not_called_exact(self):
        plain, recording = matrix.Torch(recorded=False), matrix.Torch(recorded=True)
        self.addCleanup(plain.close)
        self.addCleanup(recording.close)
        program, expandable = "lost_pool", "expandable_segments:True"
        recorded, trace = recording.run(program, 1024, "", self.folder)
        for conf, kind in (("", "exact"), (expandable, "estimate")):
            prediction = matrix.Prediction(trace).of(conf)
            real, _ = plain.run(program, 1024, conf, self.folder)
            judged = matrix.judge(prediction, recorded["ended"], real)
            self.assertEqual((judged[0], judged[1]), (kind, kind == "exact"), judged)
        self.assertEqual(prediction["parting"]["kind"], "pool_lost")


if __name__ == "__main__":
    real_process.main()
