"""Text, JSON, page, summary, job view and replay of each snapshot that others recorded agree."""

import os
import pathlib
import sys

import real_process

FOLDER = pathlib.Path(os.environ["FRAGTRACE_SHARED_TRACES"], "pytorch")


class Shared(real_process.RealProcessTest):
    def test_all_reports_of_each_snapshot_agree(self):
        snapshots = sorted(FOLDER.glob("*.pickle*"))
        self.assertTrue(snapshots)
        for snapshot in snapshots:
            with self.subTest(snapshot.name):
                self.assert_all_agree(snapshot)


if __name__ == "__main__":
    if not FOLDER.is_dir():
        print(f"skipped: snapshots by others: {FOLDER} is not here")
        sys.exit(77)
    real_process.main()
