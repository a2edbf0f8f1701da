"""Holders of memory, differences between iterations, and growth, of real programs."""

import json
import pathlib
import re

import real_process
from real_process import ANALYZER, MIB, environment
from torch_process import GPT, TorchTest

PROGRAMS = pathlib.Path(__file__).with_name("programs")


class Holders(TorchTest):
    def trace_of(self, card, *command, expected=0):
        env = environment(card, record_to=self.folder)
        self.said = self.run_training(command, expected, env=env).stdout
        return self.only_trace()

    def assert_adds_up(self, holders, allocated):
        self.assertEqual(holders["allocated_bytes"], allocated)
        self.assertEqual(sum(one["bytes"] for one in holders["categories"]), allocated)
        if holders["places_left_out"] == 0:
            self.assertEqual(sum(one["bytes"] for one in holders["places"]), allocated)

    def test_a_gpt_that_fails_in_its_second_step_has_its_holders_named(self):
        trace = self.trace_of("6GiB", GPT, "--steps", 8, "--layers", 6, expected=1)
        report = self.report(trace)
        (oom,) = report["ooms"]
        self.assertEqual(oom["verdict"], "genuine")
        holders = oom["holders"]
        self.assert_adds_up(holders, oom["allocated_bytes"])
        held = {one["category"]: one["bytes"] for one in holders["categories"]}
        # 120.6 million parameters in float32, and two AdamW moments for each.
        self.assertAlmostEqual(held["parameters"] / MIB, 460, delta=5)
        self.assertAlmostEqual(held["optimizer_state"] / MIB, 920, delta=10)
        self.assertEqual(max(held, key=held.get), "activations")
        self.assertLess(held.get("other", 0), MIB)
        iterations = report["devices"][0]["iterations"]
        self.assertEqual((iterations["source"], iterations["count"]), ("recurrence", 2))
        self.assertEqual(iterations["begins_with"], "demos/gpt.py:107 main")
        difference = holders["difference"]
        self.assertEqual((difference["iteration"], difference["against"]), (2, 1))
        self.assertEqual(difference["bytes"], sum(one["bytes"] for one in difference["places"]))
        self.assertEqual(difference["places"][0]["category"], "optimizer_state")
        self.assertGreater(difference["asked_bytes"], 2 * difference["asked_bytes_then"])

    def test_the_steps_of_a_training_are_found(self):
        trace = self.trace_of("16GiB", GPT, "--steps", 8, "--layers", 6)
        (device,) = self.report(trace)["devices"]
        iterations = device["iterations"]
        self.assertEqual(iterations["count"], 8)
        self.assertGreater(iterations["match_rate"], 0.9)
        self.assertLess(iterations["size_match_rate"], iterations["match_rate"])
        peaks = iterations["peaks"]
        for name in ("allocated", "reserved"):
            self.assertEqual(max(peaks[f"warmup_{name}"], peaks[f"steady_{name}"]), device["peak"][name])
        self.assertLess(peaks["warmup_allocated"], peaks["steady_allocated"])
        self.assertEqual(iterations["growth"]["places"], [])
        told = json.loads(self.run_well([ANALYZER, "summarize", trace, "--json", "-"]).stdout)
        self.assertEqual(device["holders_at_peak"], told["devices"][0]["holders_at_peak"])
        holders = device["holders"]
        self.assert_adds_up(holders, holders["allocated_bytes"])

    def test_losses_kept_with_their_graphs_grow_with_every_step(self):
        trace = self.trace_of("16GiB", PROGRAMS / "keeps_losses.py")
        (device,) = self.report(trace)["devices"]
        iterations = device["iterations"]
        self.assertEqual(iterations["count"], 20)
        growth = iterations["growth"]
        first = growth["places"][0]
        self.assertEqual(first["label"], "programs/keeps_losses.py:12 <module>")
        self.assertEqual(first["category"], "activations")
        # Each of the six layers keeps the input and the output of GELU, 2 MiB each.
        steps = growth["last"] - growth["first"]
        self.assertEqual(first["bytes"], steps * 24 * MIB)
        text = self.run_well([ANALYZER, trace, "--no-whatif"]).stdout
        self.assertRegex(text, r"grows +by 26 MiB per step .* never shrinks: \+408 MiB")

    def test_losses_kept_without_graphs_are_not_blamed_for_a_wasteful_run(self):
        trace = self.trace_of("4GiB,context=0", PROGRAMS / "leaks.py", "bare", 24)
        report = json.loads(self.run_well([ANALYZER, trace, "--json", "-"]).stdout)
        (device,) = report["devices"]
        growth = device["iterations"]["growth"]
        self.assertEqual(growth["forecast"]["bytes_per_iteration"], 512)
        self.assertFalse(growth["forecast"]["matters"])
        # The card is full only after thousands of times the recorded steps. A later line says so.
        self.assertGreater(growth["forecast"]["at_iteration"], 10_000 * growth["last"])
        conclusion = device["conclusion"]
        self.assertNotIn("with each iteration", conclusion["culprit"])
        self.assertIn("leaks.py", conclusion["culprit"])
        named = next(row for row in report["whatif"] if row["name"] == conclusion["row"])
        self.assertEqual(named["rank"], 1)
        self.assertGreater(named["saves_bytes"], device["peak"]["reserved"] // 5)
        full = self.run_well([ANALYZER, trace]).stdout
        self.assertRegex(full, r"grows +by 512 B per step")
        self.assertRegex(full, r"out of memory at about step [0-9,]+ at this rate \(estimate")
        # The summary printed after a run names the same line and the same remedy.
        brief = self.run_well([ANALYZER, trace, "--summary"]).stdout
        for start in ("  main line ", "  remedy "):
            lines = [[line for line in text.splitlines() if line.startswith(start)] for text in (full, brief)]
            self.assertEqual(len(lines[0]), 1)
            self.assertEqual(*lines)

    def test_a_leak_is_forecast_to_the_step_that_really_runs_out(self):
        card = "1GiB,context=0"
        trace = self.trace_of(card, PROGRAMS / "leaks.py", "graph", 24)
        (device,) = self.report(trace)["devices"]
        forecast = device["iterations"]["growth"]["forecast"]
        self.assertTrue(forecast["matters"])
        self.assertRegex(
            device["conclusion"]["culprit"], r"leaks\.py:\d+ train_step: grows by 8 MiB per step"
        )
        to_the_end = self.folder / "to_the_end"
        to_the_end.mkdir()
        done = self.run_training(
            [PROGRAMS / "leaks.py", "graph", 400], 1, env=environment(card, record_to=to_the_end)
        )
        real = int(re.search(r"failed in step (\d+)", done.stdout)[1])
        self.assertGreater(real, 3 * 24)
        self.assertAlmostEqual(forecast["at_iteration"], real, delta=real // 20)
        text = self.run_well([ANALYZER, trace]).stdout
        self.assertIn(
            f"out of memory at about step {forecast['at_iteration']} at this rate", text.splitlines()[1]
        )
        failed = self.only_trace(to_the_end)
        (oom,) = self.report(failed)["devices"]
        self.assertIn("per step, never shrinks", oom["conclusion"]["culprit"])
        self.assertIn("free what that line accumulates", oom["conclusion"]["remedy"])

    def test_a_too_large_batch_is_compared_with_the_previous_one(self):
        trace = self.trace_of("6GiB", PROGRAMS / "large_batch.py")
        report = self.report(trace)
        (oom,) = report["ooms"]
        self.assert_adds_up(oom["holders"], oom["allocated_bytes"])
        difference = oom["holders"]["difference"]
        self.assertEqual((difference["iteration"], difference["against"]), (6, 5))
        self.assertGreater(difference["asked_bytes"], 15 * difference["asked_bytes_then"])
        self.assertEqual(difference["places"][0]["category"], "activations")
        self.assertEqual(report["devices"][0]["iterations"]["survivors"], [])

    def test_a_kept_exception_is_reported_with_the_batch_that_it_keeps(self):
        trace = self.trace_of("6GiB", PROGRAMS / "large_batch.py", "keep")
        cached = int(self.said)
        (survivors,) = self.report(trace)["devices"][0]["iterations"]["survivors"]
        self.assertEqual(survivors["iteration"], 6)
        self.assertGreater(survivors["bytes"], 4096 * MIB)
        self.assertEqual(survivors["places"][0]["category"], "activations")
        self.assertGreater(cached, 0)
        self.assertEqual(survivors["cached_bytes"], cached)
        text = self.run_well([real_process.ANALYZER, trace, "--no-whatif"]).stdout
        self.assertRegex(text, r"survived .*; the pool then also kept [\d.]+ .iB cached, which it can return")


if __name__ == "__main__":
    real_process.main()
