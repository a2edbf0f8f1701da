"""Traces recorded under expandable segments on tight cards, compared with real runs.

Checked are the card's memory for the pool, the refused map, and the results of other settings and cards.
"""

import matrix
import real_process
from real_process import MIB, RealProcessTest

PROGRAM = matrix.HERE.parent / "frameworks" / "programs" / "expandable.py"
RECORDED = (
    "expandable_segments:True",
    "expandable_segments:True,expandable_segments_reserve:0.7",
    "expandable_segments:True,per_process_memory_fraction:0.9",
)
REPLAYED = (
    "",
    "expandable_segments:True",
    "per_process_memory_fraction:0.8",
    "expandable_segments:True,per_process_memory_fraction:0.95",
)
CONTEXTS_MIB = (0, 256)
SEEDS = 10


def card(pool_mib, context_mib):
    return f"{pool_mib + context_mib}MiB,context={context_mib}MiB"


class Expandable(RealProcessTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plain, cls.recording = matrix.Torch(recorded=False), matrix.Torch(recorded=True)
        cls.addClassCleanup(cls.plain.close)
        cls.addClassCleanup(cls.recording.close)

    def real(self, arguments, pool_mib, context_mib, conf):
        return self.plain.run_file(
            PROGRAM, card(pool_mib, context_mib), conf, self.folder / "real", arguments=arguments
        )[0]

    def check(self, arguments, pool_mib, context_mib, conf, sizes_more=(0, 100)):
        """Records one run. Its card, the replay of the trace, and other rows must be right.

        `sizes_more`: MiB by which the cards of the other rows are larger.
        """
        recorded, trace = self.recording.run_file(
            PROGRAM, card(pool_mib, context_mib), conf, self.folder / "recorded", arguments=arguments
        )
        report = self.report(trace)
        device = report["devices"][0]
        self.assertEqual(
            (device["others_bytes"] / MIB, device["total_bytes"] / MIB, device["capacity_bytes"] / MIB),
            (context_mib, pool_mib + context_mib, pool_mib),
        )
        self.assertEqual(device["violations"], 0)
        self.assertEqual(report["fidelity"]["placements_equal"], report["fidelity"]["placements"])
        self.assertEqual(report["fidelity"]["segments_equal"], report["fidelity"]["segments"])
        predictor = matrix.Prediction(trace)
        for more_mib in sizes_more:
            for other in REPLAYED:
                prediction = predictor.of(other, more_mib)
                real = self.real(arguments, pool_mib + more_mib, context_mib, other)
                kind, equal, wanted, seen = matrix.judge(prediction, recorded["ended"], real)
                self.assertTrue(equal or kind == "estimate", (kind, other, more_mib, wanted, seen))
        return recorded

    def test_a_request_refused_while_its_pages_are_created_is_replayed_exactly(self):
        for context_mib in CONTEXTS_MIB:
            with self.subTest(context_mib=context_mib):
                recorded = self.check(["refused_while_mapping"], 1150, context_mib, RECORDED[0])
                self.assertEqual(recorded["at_end"]["num_alloc_retries"], 1)
                self.assertEqual(recorded["at_end"]["num_ooms"], 0)

    def test_a_request_refused_in_its_second_hole_is_replayed_exactly(self):
        for context_mib in CONTEXTS_MIB:
            for name, ooms in (("refused_in_second_hole", 0), ("refused_twice_in_second_hole", 1)):
                with self.subTest(name, context_mib=context_mib):
                    recorded = self.check([name], 800, context_mib, RECORDED[0])
                    self.assertEqual(recorded["at_end"]["num_alloc_retries"], 1 + ooms)
                    self.assertEqual(recorded["at_end"]["num_ooms"], ooms)

    def test_random_programs_on_tight_cards_are_predicted(self):
        retries = ooms = 0
        for seed in range(SEEDS):
            arguments = ["any_order", str(seed)]
            wanted = self.real(arguments, 16384, 0, RECORDED[0])["at_end"]
            pool_mib = wanted["active_bytes.all.peak"] // MIB * (80 + 3 * seed) // 200 * 2
            context_mib = CONTEXTS_MIB[seed % 2]
            conf = RECORDED[seed % len(RECORDED)]
            with self.subTest(seed=seed, pool_mib=pool_mib, context_mib=context_mib, conf=conf):
                more = (0, 100)[seed // 2 % 2]
                recorded = self.check(arguments, pool_mib, context_mib, conf, (more,))["at_end"]
                retries += recorded["num_alloc_retries"] - recorded["num_ooms"]
                ooms += recorded["num_ooms"]
        self.assertGreater(min(retries, ooms), 5, "too few requests were refused to show anything")


if __name__ == "__main__":
    real_process.main()
