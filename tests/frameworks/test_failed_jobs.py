"""Two of the random jobs of failing_job.py: the view names rank, request, verdict and culprit.

scripts/job-trials runs any number of them.
"""

import failing_job
import real_process

# Fragmentation, after another rank has caught an out-of-memory; a leak, after which the rank ends normally.
SEEDS = (1, 2)


class FailedJobs(real_process.RealProcessTest):
    def test_the_first_lines_say_which_rank_failed_and_why(self):
        for seed in SEEDS:
            with self.subTest(seed=seed, plan=failing_job.plan_of(seed)):
                folder = self.folder / str(seed)
                folder.mkdir()
                wrong, output = failing_job.trial(seed, folder)
                self.assertEqual(wrong, [], output)


if __name__ == "__main__":
    real_process.main()
