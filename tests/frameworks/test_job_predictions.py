"""An unequal pipeline that runs out of memory: its view leads to the rank, the line and the remedy.

Runs confirm the remedy, the least card, and that one size less fails. scripts/job-predictions does it for
other ways.
"""

import re

import job_predictions
import real_process


class Pipeline(real_process.RealProcessTest):
    def test_the_view_of_a_failed_unequal_pipeline_leads_to_the_fix(self):
        predictions = job_predictions.Predictions("pipeline_1f1b", self.folder)
        predictions.check_all(others=False)
        self.assertEqual(predictions.wrong, [], predictions.done.stderr)
        self.assertIn("which the view recommends", predictions.confirmed[-1])
        text, _ = job_predictions.view(self.folder / "fails-0")
        at = r"programs/\w+\.py:\d+ "
        first = text.splitlines()[0]
        self.assertRegex(first, rf"^rank 2 of 4 ran out of memory first, .* after the job began, at {at}")
        self.assertIn("\n  others     3 of the others failed otherwise, most likely", text)
        self.assertIn("\n  equal      ranks 0-1, 3 (3): peak ", text)
        differs = re.search(r"\n  differs    rank 2: .* more than ranks 0-1, 3[^:]*: (.*)", text).group(1)
        self.assertRegex(differs, rf"\+[\d.]+ MiB {at}(pipeline|Block)")
        self.assertRegex(text, r"\n  balance    rank 2 needed at least .* in equal shares each would need ")
        self.assertIn("\n  setting    expandable_segments:True", text)


if __name__ == "__main__":
    real_process.main()
