"""A trace of the default settings predicts the memory of real runs under other settings, to the byte."""

import real_process
from real_process import DEMOS
from torch_process import GPT, TorchTest

SMALL = [GPT, "--layers", "3", "--width", "256", "--batch", "4", "--max-length", "512"]
FULL = [GPT]
CARD = "16GiB"
SETTINGS = ("expandable_segments:True", "roundup_power2_divisions:4")


class Predictions(TorchTest):
    def compare(self, program):
        statistics, trace, _ = self.train(program, CARD)
        report = self.report(trace)
        device = report["devices"][0]
        with self.subTest("the recording agrees with PyTorch's own statistics"):
            self.assertEqual(device["peak"]["reserved"], statistics["reserved_bytes.all.peak"])
            self.assertEqual(device["peak"]["allocated"], statistics["allocated_bytes.all.peak"])
            self.assertEqual(device["peak"]["requested"], statistics["requested_bytes.all.peak"])
            self.assertEqual(device["segments_allocated"], statistics["segment.all.allocated"])
            self.assertEqual(device["retries"], statistics["num_alloc_retries"])
            self.assertEqual(device["violations"], 0)
            self.assertEqual(report["source"]["events_lost"], 0)
        with self.subTest("every placement is replayed"):
            fidelity = report["fidelity"]
            self.assertEqual(fidelity["placements"], statistics["allocation.all.allocated"])
            self.assertEqual(fidelity["placements_equal"], fidelity["placements"], fidelity)
            self.assertEqual(fidelity["segments"], statistics["segment.all.allocated"])
            self.assertEqual(fidelity["segments_equal"], fidelity["segments"], fidelity)
        for conf in SETTINGS:
            with self.subTest(conf):
                real, _, _ = self.train(program, CARD, conf=conf, record=False)
                predicted = self.replay(trace, conf)["devices"][0]["peak"]
                self.assertEqual(predicted["reserved"], real["reserved_bytes.all.peak"])
                self.assertEqual(predicted["allocated"], real["allocated_bytes.all.peak"])
                self.assertNotEqual(
                    real["reserved_bytes.all.peak"],
                    statistics["reserved_bytes.all.peak"],
                    "this setting changes nothing: nothing is shown by it",
                )

    def test_other_settings_are_predicted_for_a_small_gpt(self):
        self.compare(SMALL)

    def test_other_settings_are_predicted_for_a_small_gpt_in_bf16(self):
        self.compare([*SMALL, "--bf16"])

    def test_other_settings_are_predicted_for_the_gpt_of_the_demo(self):
        self.compare(FULL)


if __name__ == "__main__":
    assert DEMOS.is_dir()
    real_process.main()
