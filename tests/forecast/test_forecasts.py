"""A sample of forecasts: the forecast need of a failed step is the real need."""

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
