"""The checker finds no contradiction in the approved reports, and finds each one that is planted in them."""

import copy
import json
import pathlib
import re
import unittest

import check_report

EXPECTED = pathlib.Path(__file__).resolve().parent / "expected"


def load(name):
    """Loads the JSON and the text of an approved report."""
    return json.loads((EXPECTED / f"{name}.json").read_text()), (EXPECTED / f"{name}.txt").read_text()


def page_of(report):
    """The data of a page that agrees with the report."""
    device = report["devices"][0]
    totals = [{"label": f"peak {part}", "value": value} for part, value in device["peak"].items()]
    totals += [
        {"label": part.replace("_", " "), "value": value} for part, value in device["waste_at_peak"].items()
    ]
    totals += [{"label": key, "value": device[key]} for key in ("retries", "ooms")]
    rows = [
        {
            "name": row["name"],
            "class": row["class"],
            "ooms": row["ooms"],
            "peak_reserved": row["peak_reserved_bytes"],
            "retries": row["retries"],
            "usable": row["usable"],
        }
        for row in report["whatif"]
    ]
    header = {
        "devices": [
            {
                "index": device["index"],
                "totals": totals,
                "whatif": rows,
                "markers": [{"kind": "oom"}] * device["ooms"],
            }
        ]
    }
    return f'<script id="ft-header">{json.dumps(header)}</script>'


def summary_of(report):
    """The summarize output of the same trace."""
    source, device = report["source"], report["devices"][0]
    summary = {key: source[key] for key in ("ended", "ending", "events") if key in source}
    keep = ("index", *check_report.SUMMARY)
    return summary | {"events_left_out": 0, "devices": [{key: device[key] for key in keep}]}


def process_of(report):
    """The trace's line in the view of a job."""
    device = report["devices"][0]
    line = {key: report["source"][key] for key in ("ended", "ending") if key in report["source"]}
    return line | {
        "peak_allocated_bytes": device["peak"]["allocated"],
        "peak_reserved_bytes": device["peak"]["reserved"],
        "retries": device["retries"],
        "ooms": device["ooms"],
    }


def setter(*path):
    """Sets the value at the path. The last word is the new value, or a function of the old one."""
    *keys, last, value = path

    def change(report):
        for key in keys:
            report = report[key]
        report[last] = value(report[last]) if callable(value) else value

    return change


def more(value):
    return value + 4096


DEVICE = ("devices", 0)
OOM = ("ooms", 0)
RECORDED = ("whatif", 0)
CHANGES = {
    "a peak of requested above that of allocated": setter(*DEVICE, "peak", "requested", 86 << 20),
    "a peak of active above that of reserved": setter(*DEVICE, "peak", "active", 91 << 20),
    "reserved above the card": setter(*DEVICE, "peak", "reserved", 97 << 20),
    "waste that does not add up": setter(*DEVICE, "waste_at_peak", "releasable", more),
    "a total that is not capacity and others": setter(*DEVICE, "others_bytes", 1 << 20),
    "more segments freed than there were": setter(*DEVICE, "segments_freed", 4),
    "an out-of-memory that is not listed": setter(*DEVICE, "ooms", 2),
    "a retry that is not listed": setter(*DEVICE, "retries", 1),
    "a listed out-of-memory that is not counted": setter(*DEVICE, "ooms", 0),
    "a line that holds more at the peak": setter(*DEVICE, "holders_at_peak", 0, "bytes", more),
    "a verdict that no rung gave": setter(*OOM, "verdict", "genuine"),
    "a rung that serves before the last": setter(*OOM, "steps", 2, "serves", True),
    "a last rung that does not serve": setter(*OOM, "steps", -1, "serves", False),
    "rungs out of order": setter(*OOM, "steps", lambda steps: [steps[1], steps[0], *steps[2:]]),
    "pages of another size than the rung's": setter(*OOM, "page_bytes", 20 << 20),
    "despite_free_memory of another verdict": setter(*OOM, "despite_free_memory", False),
    "a hole larger than what is free": setter(*OOM, "largest_free_bytes", 25 << 20),
    "a usable block as large as the request": setter(*OOM, "largest_usable_bytes", 20 << 20),
    "free memory that was allocated": setter(*OOM, "free_bytes", more),
    "more free on the device than it has": setter(*OOM, "device_free_bytes", more),
    "an unexplained failure with rungs": setter(*OOM, "verdict", "unexplained"),
    "a verdict that also served": setter(*OOM, "also_served_by", ["stitchable"]),
    "a cheapest set without blocks": setter(*OOM, "cheapest_set", "kind", "none"),
    "ages that add up to something else": setter(*OOM, "culprits_by_age", 0, "live_bytes", more),
    "phases that add up to something else": setter(*OOM, "culprits_by_phase", 0, "blocks", 3),
    "culprits that hold more than is free open": setter(*OOM, "culprits", 0, "held_open_bytes", more),
    "kinds that do not add up": setter(*OOM, "holders", "categories", 0, "bytes", more),
    "places that do not add up": setter(*OOM, "holders", "places", 0, "bytes", more),
    "holders of another event": setter(*OOM, "holders", "event", 3),
    "an event that the trace does not have": setter(*OOM, "event", 14),
    "an exact row below 100 % of fidelity": setter(*DEVICE, "fidelity", "placements_equal", 4),
    "an exact row that parts": setter(*RECORDED, "valid_until_event", 9),
    "a bound without a reason": lambda report: report["whatif"][0].update({"class": "bound"}),
    "a row that cannot be used and has no reason": setter(*RECORDED, "usable", False),
    "savings of another run": setter(*RECORDED, "saves_bytes", more),
    "recorded settings with another peak": lambda report: report["whatif"][0].update(
        peak_reserved_bytes=91 << 20, saves_bytes=-(1 << 20)
    ),
    "recorded settings with other waste": setter(*RECORDED, "waste_at_peak", "inactive_split", 4096),
    "recorded settings with another number of segments": setter(*RECORDED, "segments_allocated", 4),
    "recorded settings that fit": setter(*RECORDED, "ooms", 0),
    "a remedy that is no row": setter(
        *DEVICE,
        "conclusion",
        "remedy",
        "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:21: 90 MiB reserved (exact)",
    ),
    "a remedy of another class": setter(
        *DEVICE,
        "conclusion",
        "remedy",
        "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:20: 90 MiB reserved (bound)",
    ),
    "a remedy with figures of no row": setter(
        *DEVICE,
        "conclusion",
        "remedy",
        "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:20: 77 MiB reserved (exact)",
    ),
    "a remedy that is what was recorded": setter(
        *DEVICE, "conclusion", "remedy", "default settings: 90 MiB reserved (exact)"
    ),
    "an end of another kind": setter("source", "ended", "killed"),
    "a signal of a process that exited": setter("source", "ending", "signal", "SIGTERM"),
    "a line that held pinned memory twice": setter(
        "memory",
        "pinned",
        {"peak_bytes": 9, "holders": [{"label": "a.py:1", "bytes": 4}, {"label": "a.py:1", "bytes": 5}]},
    ),
    "lines that held more pinned memory than there was": setter(
        "memory", "pinned", "holders", [{"label": "a.py:1", "bytes": 4}]
    ),
    "bounds in the wrong order": lambda report: next(
        row for row in report["whatif"] if row["pool"] == "live"
    ).update(peak_reserved_bytes=87 << 20, least_peak_reserved_bytes=87 << 20, saves_bytes=3 << 20),
}

TEXTS = {
    "a headline of another state": (r"30 MiB free", "31 MiB free"),
    "a headline that denies it": (r"Out of memory despite free memory", "No out-of-memory"),
    "a headline of a shortage": (r"Out of memory despite free memory", "Out of memory"),
    "another verdict": (r"verdict    stitchable", "verdict    pending"),
    "another culprit": (r"culprit    train.py:10", "culprit    train.py:11"),
    "another state": (r"66 MiB allocated, 90", "67 MiB allocated, 90"),
    "another fidelity": (r"5 of 5 placements", "4 of 5 placements"),
    "less than 100 %": (r"100.00 %", "99.99 %"),
    "another peak": (r"active 82 MiB", "active 83 MiB"),
    "another capacity": (r"of 96 MiB", "of 95 MiB"),
    "other waste": (r"inactive split 8 MiB", "inactive split 9 MiB"),
    "other driver calls": (r"3 cudaMallocs", "4 cudaMallocs"),
    "a line that is missing": (r"  waste .*\n", ""),
    "a line that cannot be read": (r"  driver     3", "  driver     three"),
    "another number of events": (r"14 events", "15 events"),
    "another end": (r"ended normally", "exit code 3"),
}


class Checker(unittest.TestCase):
    def test_the_approved_reports_have_no_contradictions(self):
        for name in ("out_of_memory", "waste"):
            report, text = load(name)
            self.assertEqual(
                check_report.contradictions(
                    report, text, page_of(report), summary_of(report), process_of(report)
                ),
                [],
                name,
            )

    def test_each_planted_change_of_the_json_is_found(self):
        report, _ = load("out_of_memory")
        for what, change in CHANGES.items():
            with self.subTest(what):
                changed = copy.deepcopy(report)
                change(changed)
                self.assertNotEqual(changed, report)
                self.assertNotEqual(check_report.contradictions(changed), [])

    def test_each_planted_change_of_the_text_is_found(self):
        report, text = load("out_of_memory")
        for what, (old, new) in TEXTS.items():
            with self.subTest(what):
                changed = re.sub(old, new, text, count=1)
                self.assertNotEqual(changed, text)
                self.assertNotEqual(check_report.contradictions(report, changed), [])

    def test_different_figures_in_other_reports_of_the_trace_are_found(self):
        report, _ = load("out_of_memory")
        for key, other in (("summary", summary_of(report)), ("process", process_of(report))):
            for path in ("ooms", "retries", "ended"):
                changed = copy.deepcopy(other)
                where = changed if path in changed else changed["devices"][0]
                where[path] = "killed" if path == "ended" else where[path] + 1
                with self.subTest(f"{key}: {path}"):
                    self.assertNotEqual(check_report.contradictions(report, **{key: changed}), [])
        for old, new in (
            ('"label": "ooms", "value": 1', '"label": "ooms", "value": 0'),
            ('"class": "exact"', '"class": "bound"'),
            ('"oom"', '"retry"'),
        ):
            changed = page_of(report).replace(old, new, 1)
            self.assertNotEqual(changed, page_of(report))
            self.assertNotEqual(check_report.contradictions(report, page=changed), [], new)

    def test_a_replay_under_recorded_settings_must_equal_the_recorded_row(self):
        report, _ = load("waste")
        row = next(row for row in report["whatif"] if row["recorded"])
        device = {
            "index": 0,
            "device": 0,
            "peak": {"allocated": row["peak_allocated_bytes"], "reserved": row["peak_reserved_bytes"]},
        }
        device |= {
            key: row[key]
            for key in ("segments_allocated", "segments_freed", "retries", "waste_at_peak", "ooms")
        }
        replay = {"class": row["class"], "devices": [device]}
        self.assertEqual(check_report.contradictions(report, replay=replay), [])
        device["retries"] += 1
        self.assertNotEqual(check_report.contradictions(report, replay=replay), [])

    def test_a_comparison_with_itself_must_have_the_figures_of_the_report(self):
        report, _ = load("waste")
        lines = [
            {"index": device["index"], "holders_at_peak": [], "a": device, "b": device}
            for device in report["devices"]
        ]
        same = {"devices": lines, "phases": [], "first_different_requests": [], "settings": []}
        self.assertEqual(check_report.contradictions(report, comparison=same), [])
        for key in ("name", "retries"):
            other = report["devices"][0] | {key: "another"}
            changed = same | {"devices": [lines[0] | {"a": other, "b": other}, *lines[1:]]}
            self.assertNotEqual(check_report.contradictions(report, comparison=changed), [])
        for changed in (same | {"settings": [{}]}, same | {"devices": []}):
            self.assertNotEqual(check_report.contradictions(report, comparison=changed), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
