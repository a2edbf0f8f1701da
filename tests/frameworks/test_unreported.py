"""Events that PyTorch reports to no observer, although they decide the outcome.

These are captures that other pools serve, rejected requests, and requests while caching is off.
"""

import json
import pathlib

import real_process
from real_process import MIB, TORCH_PYTHON, environment
from torch_process import PEAKS, TorchTest

PROGRAMS = pathlib.Path(__file__).with_name("programs")
CONTEXT = 256 * MIB  # on plain cards of the virtual GPU


class Unreported(TorchTest):
    runs = 0

    def play(self, capacity_mib, program, *arguments, record=False, expected=0, **variables):
        """Runs a program on a card with so much memory for the pool: statistics, trace, output."""
        self.runs += 1
        folder = self.folder / str(self.runs)
        folder.mkdir()
        env = environment(
            f"{capacity_mib + CONTEXT // MIB}MiB", record_to=folder if record else None, **variables
        )
        done = self.run_well(
            [TORCH_PYTHON, PEAKS, folder / "statistics.json", PROGRAMS / f"{program}.py", *arguments],
            expected,
            env=env,
        )
        statistics = json.loads((folder / "statistics.json").read_text())
        return statistics, self.only_trace(folder) if record else None, done.stdout

    def on_card(self, trace, capacity_mib, conf=""):
        return self.replay(trace, conf, "--capacity", f"{capacity_mib}MiB")

    def assert_replayed(self, report):
        fidelity = report["fidelity"]
        self.assertEqual(fidelity["placements_equal"], fidelity["placements"], fidelity)
        self.assertEqual(fidelity["segments_equal"], fidelity["segments"], fidelity)

    def test_a_capture_served_by_another_pool_releases_no_cache(self):
        for kind in ("handle", "mem_pool", "raw"):
            with self.subTest(kind):
                _, trace, _ = self.play(4096, "fails_in_capture", kind, record=True)
                real, failed, _ = self.play(1792, "fails_in_capture", kind, record=True, expected=1)
                self.assertEqual((real["num_ooms"], real["num_alloc_retries"]), (1, 0))
                predicted = self.on_card(trace, 1792)
                self.assertEqual(predicted["parting"]["kind"], "fails", predicted["class_reason"])
                self.assertEqual(predicted["parting"]["peak"]["reserved"], real["reserved_bytes.all.peak"])
                self.assertEqual(predicted["parting"]["retries"], 0)
                report = self.report(failed)
                self.assert_replayed(report)
                self.assertEqual(report["devices"][0]["ooms"], 1)
                self.assertEqual(self.on_card(failed, 1792)["class"], "exact")

    def test_a_rejected_request_is_an_out_of_memory(self):
        conf = "throw_on_cudamalloc_oom:True"
        real, trace, said = self.play(1024, "rejected", record=True, PYTORCH_CUDA_ALLOC_CONF=conf)
        self.assertEqual(said, "rejected\n")
        self.assertEqual((real["num_ooms"], real["num_oom_rejections"]), (0, 1))
        report = self.report(trace)
        self.assert_replayed(report)
        self.assertEqual(report["devices"][0]["ooms"], 1)
        self.assertEqual(report["devices"][0]["peak"]["reserved"], real["reserved_bytes.all.peak"])
        rejected = [line for line in self.events(trace) if " block_out_of_memory " in line]
        self.assertEqual([" rejected" in line for line in rejected], [True])
        same = self.on_card(trace, 1024, conf)
        self.assertEqual(same["class"], "exact", same["class_reason"])
        self.assertEqual(same["devices"][0]["peak"]["reserved"], real["reserved_bytes.all.peak"])
        # Without the setting the request is served, and the program continues differently.
        self.assertEqual(self.play(1024, "rejected")[2], "served\n")
        self.assertEqual(self.on_card(trace, 1024)["parting"]["kind"], "goes_on")

    def test_requests_while_caching_is_off_count_in_the_report_and_in_replays(self):
        real, trace, _ = self.play(2048, "caching_off", record=True)
        device = self.report(trace)["devices"][0]
        self.assertEqual(device["past_pool"], {"peak": 300 * MIB, "peak_with_reserved": 800 * MIB})
        self.assertEqual(device["peak"]["reserved"], real["reserved_bytes.all.peak"])
        self.assertEqual(device["segments_freed"], real["num_device_free"])
        self.assertEqual((device["capacity_bytes"], device["others_bytes"]), (2048 * MIB, CONTEXT))
        for capacity, fits in ((800, True), (700, False)):
            with self.subTest(capacity):
                predicted = self.on_card(trace, capacity)
                there, _, _ = self.play(capacity, "caching_off", expected=0 if fits else 1)
                self.assertEqual(predicted["class"] == "exact", fits, predicted["class_reason"])
                at = predicted["devices"][0] if fits else predicted["parting"]
                self.assertEqual(at["peak"]["reserved"], there["reserved_bytes.all.peak"])
        _, uncached, _ = self.play(2048, "caching_off", record=True, PYTORCH_NO_CUDA_MEMORY_CACHING=1)
        none = json.loads(
            self.run_well([real_process.ANALYZER, "replay", trace, "--pool", "none", "--json", "-"]).stdout
        )
        self.assertEqual(
            none["devices"][0]["peak"]["reserved"], self.report(uncached)["devices"][0]["peak"]["reserved"]
        )


if __name__ == "__main__":
    real_process.main()
