"""The report says so where the replay of the recorded settings is not exact. Differences have one base."""

import json
import pickle
import re

import real_process
from real_process import ANALYZER

BASE, MIB = 0x7F0000000000, 1 << 20


def snapshot():
    """Blocks of 8 MiB and 512 B in one segment. PyTorch's pool takes another for small blocks."""
    frames = [[{"filename": "train.py", "line": line, "name": "step"}] for line in (1, 2)]
    blocks = [(BASE, 8 * MIB, frames[0]), (BASE + 8 * MIB, 512, frames[1])]
    used = sum(size for _, size, _ in blocks)
    events = [("segment_alloc", BASE, 20 * MIB, frames[0])]
    events += [("alloc", *block) for block in blocks]
    keys = ("action", "addr", "size", "frames")
    trace = [dict(zip(keys, event), stream=0, time_us=time) for time, event in enumerate(events, 1)]
    state = [
        {"address": at, "size": size, "requested_size": size, "state": "active_allocated", "frames": stack}
        for at, size, stack in blocks
    ]
    free = {"address": BASE + used, "size": 20 * MIB - used, "requested_size": 0}
    state.append(free | {"state": "inactive", "frames": []})
    segment = dict.fromkeys(("allocated_size", "active_size", "requested_size"), used) | {
        "device": 0,
        "address": BASE,
        "total_size": 20 * MIB,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": state,
    }
    return {"segments": [segment], "device_traces": [trace], "allocator_settings": {}}


class ReplayNotExact(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "snapshot.pickle"
        self.file.write_bytes(pickle.dumps(snapshot()))

    def test_the_report_compares_replays_with_replays(self):
        text = self.run_well([ANALYZER, self.file]).stdout
        self.assertIn("peaks      requested 8 MiB, allocated 8 MiB, active 8 MiB, reserved 20 MiB", text)
        self.assertRegex(text, r"default settings +fits +22 MiB +replayed +2 ")
        self.assertNotIn("as recorded", text)
        self.assertIn("the recorded run reserved 20 MiB; all differences are to the replay", text)
        # In the table of remedies and in the table of advice.
        self.assertRegex(text, r"\n  PYTORCH_NO_CUDA_MEMORY_CACHING=1 +fits +8 MiB +-14 MiB ")
        self.assertRegex(text, r"PYTORCH_NO_CUDA_MEMORY_CACHING=1 +helped: reserved -14 MiB")

    def test_the_page_gives_the_memory_of_the_run_beside_the_replay(self):
        page = self.folder / "page.html"
        self.run_well([ANALYZER, self.file, "--html", page])
        (header,) = re.findall(
            r'<script [^>]*type="application/json"[^>]*>(\{.*?"fragtrace-page".*?)</script>',
            page.read_text(),
            re.DOTALL,
        )
        (recorded,) = (row for row in json.loads(header)["devices"][0]["whatif"] if row["as_run"])
        self.assertEqual(
            recorded["name"], "recorded settings, replayed (the run reserved 20 MiB): default settings"
        )


if __name__ == "__main__":
    real_process.main()
