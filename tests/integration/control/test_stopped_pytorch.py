"""After a pause of the recording the memory of a real PyTorch is known again."""

import json

import real_process
from real_process import TORCH_PYTHON, environment, traces
from test_stopped import CLIENT, StoppedTest

TORCH_CLIENT = CLIENT.with_name("torch_stopped.py")


class PyTorch(StoppedTest):
    def run_torch(self, *steps, **variables):
        """Checks that the trace has PyTorch's own blocks, and that it replays exactly."""
        done = self.run_well(
            [TORCH_PYTHON, TORCH_CLIENT, *steps], env=environment("4GiB,context=0", self.folder, **variables)
        )
        segments = json.loads(done.stdout.splitlines()[-1])
        trace = self.only_trace()
        held = self.held(trace)
        self.assertEqual(
            sorted(held["block_alloc"].items()),
            sorted((address, size) for _, _, live in segments for address, size in live),
        )
        pages = {**held.get("device_alloc", {}), **held.get("map", {})}
        self.assertEqual(sum(pages.values()), sum(size for _, size, _ in segments))
        report = self.report(trace)
        self.assert_sound(report)
        fidelity = report["fidelity"]
        self.assertGreater(fidelity["placements"], 0)
        self.assertEqual(fidelity["placements_equal"], fidelity["placements"], fidelity)
        self.assertEqual(fidelity["segments_equal"], fidelity["segments"], fidelity)
        self.assertEqual(fidelity.get("not_judged") or "", "")
        return report

    STARTS = ((("start",), {}), (("signal", "wait=*.ftrace"), {"FRAGTRACE_SIGNAL": "USR2"}))

    def test_a_trace_with_a_late_start_replays_exactly(self):
        for steps, variables in self.STARTS:
            for conf in ("", "expandable_segments:True"):
                with self.subTest(steps=steps, conf=conf):
                    for old in traces(self.folder):
                        old.unlink()
                    self.run_torch(
                        "work=1",
                        *steps,
                        "work=2",
                        "empty_cache",
                        "work=3",
                        FRAGTRACE_START="off",
                        PYTORCH_CUDA_ALLOC_CONF=conf,
                        **variables,
                    )

    def test_a_trace_with_a_start_by_time_replays_exactly(self):
        self.run_torch("work=1", "wait=*.ftrace", "work=2", FRAGTRACE_START_AFTER=1)

    def test_a_trace_with_pauses_replays_exactly(self):
        for conf in ("", "expandable_segments:True"):
            with self.subTest(conf=conf):
                for old in traces(self.folder):
                    old.unlink()
                report = self.run_torch(
                    "work=1",
                    "stop",
                    "work=2",
                    "empty_cache",
                    "start",
                    "work=3",
                    "stop",
                    "start",
                    "work=4",
                    PYTORCH_CUDA_ALLOC_CONF=conf,
                )
                first, second = report["recording"]["gaps"]
                self.assertGreater(first["freed"], 0)
                self.assertGreater(first["made"], 0)
                self.assertEqual((second["freed"], second["made"]), (0, 0))

    def test_private_pools_made_during_a_gap_are_known_after_it(self):
        self.run_torch(
            "pool=1",
            "work=1",
            "start",
            "work=2",
            "pool=3",
            "stop",
            "pool=4",
            "work=4",
            "start",
            "work=5",
            "pool=6",
            FRAGTRACE_START="off",
        )


if __name__ == "__main__":
    real_process.main()
