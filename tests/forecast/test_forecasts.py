"""A sample of forecasts: the forecast need of a failed step is the real need."""

import re

import forecasts
import matrix
import real_process
from real_process import RealProcessTest

# Program, where its last step fails, and the allowed error in percent.
SAMPLE = (("batch_growth", 0.25, 5), ("variable_lengths", 0.75, 5), ("kept_losses", 0.25, 5))


class Forecasts(RealProcessTest):
    def test_the_forecast_need_of_a_failed_step_is_close_to_the_real_need(self):
        plain, recording = matrix.Torch(recorded=False), matrix.Torch(recorded=True)
        self.addCleanup(plain.close)
        self.addCleanup(recording.close)
        for name, depth, borne in SAMPLE:
            with self.subTest(name):
                program = forecasts.Program(name, plain, recording, self.folder)
                row = program.measure(depth)
                self.assertTrue(row["forecast"]["known"], row)
                self.assertEqual(row["forecast"]["class"], "estimate")
                self.assertEqual(row["forecast"]["iteration"], program.steps, row)
                self.assertLess(max(map(abs, forecasts.errors(row))), borne, row)
                self.assertTrue(row.get("part_fits", True), row)

    def test_a_step_too_large_for_the_card_is_told_as_that_although_its_failed_request_met_free_memory(self):
        """The recommended setting serves the failed request, and the step fails later: so it really does."""
        plain, recording = matrix.Torch(recorded=False), matrix.Torch(recorded=True)
        self.addCleanup(plain.close)
        self.addCleanup(recording.close)
        program = forecasts.Program("batch_growth", plain, recording, self.folder)
        row = program.measure(0.5)
        _, trace = program.run(recording, row["card_mib"], program.steps)
        text = self.run_well([matrix.ANALYZER, trace]).stdout
        headline = text.splitlines()[1]
        self.assertTrue(headline.startswith("Out of memory: "), headline)
        self.assertRegex(headline, r"The whole step is forecast to need .* more: .* \(estimate\)\. ")
        self.assertRegex(headline, r" gets past this request only \(exact up to this request\)\.$")
        self.assertRegex(
            text, r"\n  culprit    \S+ \S+ holds .* in use.*, .* more than at the same point of step \d+\n"
        )
        self.assertRegex(text, r"\n  remedy     the whole step is forecast .*; for this request only: ")
        said = re.search(
            r"\n  error .* (\d+) PyTorch programs a card from (\S+) % too small to (\S+) % too large", text
        )
        self.assertEqual(tuple(map(float, said.groups())), self.documented_errors())
        setting = re.search(r"PYTORCH_CUDA_ALLOC_CONF=(\S+):", text).group(1)
        statistics, _ = plain.run_file(
            forecasts.HERE / "programs.py",
            f"{row['card_mib']}MiB",
            setting,
            self.folder,
            arguments=[program.name, str(program.steps)],
        )
        self.assertEqual(statistics["ended"], "oom")

    def documented_errors(self):
        """Programs with a forecast, and how far it was too small and too large, in percent."""
        text = (forecasts.HERE.parents[1] / "docs" / "fidelity.md").read_text()
        table = text.partition("| program | fails at | scale |")[2]
        rows = [row.split(" | ") for row in table.partition("\n\n")[0].splitlines()[2:]]
        errors = [(row[0], float(row[5].removesuffix(" %"))) for row in rows if not row[2].startswith("none")]
        cards = [error for _, error in errors]
        return len({name for name, _ in errors}), -min(cards), max(cards)

    def test_the_first_step_has_no_forecast(self):
        plain, recording = matrix.Torch(recorded=False), matrix.Torch(recorded=True)
        self.addCleanup(plain.close)
        self.addCleanup(recording.close)
        program = forecasts.Program("second_step", plain, recording, self.folder)
        _, reserved = program.peaks(1)
        _, trace = program.run(recording, matrix.CONTEXT_MIB + int(reserved * 0.6) // 2 * 2, 1)
        forecast = forecasts.forecast_of(trace)
        self.assertFalse(forecast["known"])
        self.assertIn("complete", forecast["why_not"])


if __name__ == "__main__":
    real_process.main()
