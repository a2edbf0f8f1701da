"""Checks that a report of fraganalyze has no contradictions, for any trace.

Sums and counts must agree, verdicts with the state that they follow from, remedies with their rows, and the
text and the page with the JSON.

    check_report.py FOLDER                      its reports, each NAME.json with its text, NAME.txt
    check_report.py --analyzer PATH TRACE...    all reports of these traces and snapshots

It prints a line for each contradiction and exits with 1 if there is one. Tests call contradictions().
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import check_report_text
import json_schema
from check_report_common import Findings, fidelity_of, has_pool, is_exact, of_device
from check_report_failures import check_holders, check_trouble

SUMMARY = ("peak", "waste_at_peak", "segments_allocated", "segments_freed", "retries", "ooms", "violations")
KINDS_OF_END = {
    "normal": {"exit"},
    "quick_exit": {"exit"},
    "exec": {"exec"},
    "killed": {"signal", "unknown"},
    "running": {"running"},
    "continued": {"continued"},
    "not_recorded": {"not_recorded"},
}
MOST_DIAGNOSES = 16  # per device: requests of the pool, and the first 16 of libraries
MOST_HELD_LINES = 10
ANOTHER_CARD = {"--capacity", "--context"}  # options


def recorded_row(report, device):
    """The replay of the recorded settings on the recorded capacity, or None."""
    return next((row for row in of_device(report.get("whatif", []), device) if row["recorded"]), None)


def requests(report, device):
    """The failed requests in the report's list. A call that is no allocation requested nothing."""
    return [oom for oom in of_device(report["ooms"], device) if oom["verdict"] != "not_judged"]


def check_waste(found, peak_reserved, waste):
    """Checks the parts of reserved memory that were not requested."""
    found.rising(waste_in_all=sum(waste.values()), peak_reserved=peak_reserved)


def check_device(found, report, device, assumed):
    found.at = f"device {device['index']}"
    peak = device["peak"]
    if not device["violations"] and not device["violations_after_gaps"]:
        found.rising(
            requested=peak["requested"],
            allocated=peak["allocated"],
            active=peak["active"],
            reserved=peak["reserved"],
        )
    check_waste(found, peak["reserved"], device["waste_at_peak"])
    card_known = device["total_bytes"] is not None
    if card_known:
        found.equal(
            "capacity and what others have",
            device["capacity_bytes"] + device["others_bytes"],
            device["total_bytes"],
        )
    if card_known and not assumed:
        # A replay may have another card than the recorded run.
        total = max(device["total_bytes"], (report["capacity_bytes"] or 0) + device["others_bytes"])
        found.rising(peak_reserved=peak["reserved"], total=total + device["peak_unmapped_bytes"])
    found.rising(
        segments_freed_beside_gaps=device["segments_freed"] * (not gaps(report)),
        segments_ever=device["segments_allocated"] + held_before(report),
    )
    if "holders_at_peak" in device and has_pool(report, device):
        held = sum(line["bytes"] for line in device["holders_at_peak"])
        waste = device["waste_at_peak"]
        in_use = peak["reserved"] - waste["releasable"] - waste["inactive_split"]
        if is_exact(fidelity_of(report, device)):
            found.rising(held_at_peak=held, in_use_at_peak=in_use)
            if 0 < len(device["holders_at_peak"]) < MOST_HELD_LINES:
                found.equal("what lines hold at the peak", held, in_use)


def gaps(report):
    return bool(report.get("recording", {}).get("gaps"))


def held_before(report):
    """Larger than any count, if a trace begins in mid-life: earlier segments were not counted."""
    recording = report.get("recording", {"checkpoints": 1, "gaps": [1]})
    snapshot = "snapshot.entries" in report.get("facts", {})
    return 2**62 if recording["checkpoints"] or recording["gaps"] or snapshot else 0


def check_counts(found, report):
    """Devices, lists and phases must have equal counts (docs/metrics.md, Failed requests and retries)."""
    for device in report["devices"]:
        found.at = f"device {device['index']}"
        for key in ("ooms", "retries"):
            if key == "retries" and device["limit_bytes"] is not None:
                continue  # only the replay shows retries after a refusal by the memory fraction
            listed = of_device(report[key], device)
            found.rising(**{f"{key} listed": len(listed), f"{key} counted": device[key]})
            in_all = device["ooms"] + device["retries"]
            replays_alike = is_exact(fidelity_of(report, device)) or not has_pool(report, device)
            if in_all <= MOST_DIAGNOSES and replays_alike:
                found.equal(f"{key} of the list", len(listed), device[key])
    found.at = ""
    listed_devices = {device["index"] for device in report["devices"]}
    for key in ("ooms", "retries"):
        rows = report[key]
        events = [row["event"] for row in rows if row["device"] in listed_devices]
        found.equal(f"events of {key} that occur once", len(events), len(set(events)))
        counted = sum(device[key] for device in report["devices"])
        counted += sum(row["device"] not in listed_devices for row in rows)
        for phase in report.get("phases", []):
            named = sum(row["phase"] == phase["name"] for row in rows)
            found.at = f"phase {phase['name']}"
            found.holds(phase["count"] > 1 or phase[key] <= counted, f"{phase[key]} {key} of {counted}")
            found.rising(**{f"{key} in it": named, f"{key} counted": phase[key]})
        found.at = ""
    for phase in report.get("phases", []):
        found.at = f"phase {phase['name']}"
        for part in ("allocated", "reserved"):
            found.rising(
                peak=phase[f"peak_{part}_bytes"],
                peaks_of_devices=sum(d["peak"][part] for d in report["devices"]),
            )
    found.at = ""


def check_row(found, report, device, row, recorded):
    found.at = f"what-if row '{row['name']}' of device {device['index']}"
    fidelity = fidelity_of(report, device)
    if row["class"] == "exact":
        # A report without fidelity (whatif) makes no statement about it.
        found.holds(fidelity is None or is_exact(fidelity), "exact, and the fidelity is not 100 %")
        found.equal("valid until", row["valid_until_event"], None)
        found.holds(
            row["ooms"] == 0 or recorded is None or recorded["ooms"],
            "exact, and runs out of memory where the recorded run does not",
        )
    found.holds(row["class"] == "exact" or row["class_reason"], f"{row['class']} without a reason")
    found.holds(row["usable"] or row["usable_reason"], "not usable without a reason")
    found.rising(least=row["least_peak_reserved_bytes"], peak=row["peak_reserved_bytes"])
    if row["pool"] not in ("live", "compact", "pages", "offline"):
        check_waste(found, row["peak_reserved_bytes"], row["waste_at_peak"])
        if row["pool"] == "pytorch":
            found.rising(allocated=row["peak_allocated_bytes"], reserved=row["peak_reserved_bytes"])
    if "devices" in report:
        found.equal("saves", row["saves_bytes"], device["peak"]["reserved"] - row["peak_reserved_bytes"])
    if recorded is not None and "cost" in row:
        cost = row["cost"]
        for part, key in (
            ("driver_allocs", "segments_allocated"),
            ("driver_frees", "segments_freed"),
            ("retries", "retries"),
        ):
            found.equal(f"cost, {part}", cost[part], row[key] - recorded[key])
    if row["recorded"] and row["class"] == "exact" and "devices" in report:
        for key in ("segments_allocated", "segments_freed", "retries", "waste_at_peak"):
            if key != "retries" or device["limit_bytes"] is None:  # otherwise they are not recorded
                found.equal(f"as recorded: {key}", row[key], device[key])
        for part in ("allocated", "reserved"):
            found.equal(f"as recorded: peak {part}", row[f"peak_{part}_bytes"], device["peak"][part])
        calls = len(of_device(report["ooms"], device)) - len(requests(report, device))
        found.equal("as recorded: ooms", row["ooms"], device["ooms"] - calls)


def check_advice(found, report, device, recorded):
    rows = {row["name"]: row for row in of_device(report["whatif"], device)}
    for advice in of_device(report["advice"], device):
        found.at = f"advice {advice['name']}"
        if not advice["row"]:
            continue
        row = rows.get(advice["row"])
        found.holds(row is not None, f"no row '{advice['row']}'")
        if row is None or recorded is None:
            continue
        found.equal("class", advice["class"], row["class"])
        found.equal("ooms left", advice["ooms_left"], row["ooms"])
        found.equal(
            "saved", advice["saved_bytes"], recorded["peak_reserved_bytes"] - row["peak_reserved_bytes"]
        )
        for key in ("ooms", "retries"):
            found.equal(key, advice[key], row[key] - recorded[key])


def check_bounds(found, report, device):
    """Checks the order of the bounds (docs/metrics.md, Bounds)."""
    least = {
        row["pool"]: row["peak_reserved_bytes"]
        for row in of_device(report["whatif"], device)
        if row["pool"] in ("live", "compact", "pages", "offline")
        and row["class"] == "bound"
        and not row["ooms"]
    }
    found.at = f"bounds of device {device['index']}"
    for small, large in (("live", "compact"), ("live", "pages"), ("compact", "offline")):
        if small in least and large in least:
            found.rising(**{small: least[small], large: least[large]})


def check_iterations(found, device):
    peaks = device["iterations"]["peaks"]
    found.at = f"iterations of device {device['index']}"
    if peaks is not None and not device["violations"]:
        for part in ("allocated", "reserved"):
            found.equal(
                f"the larger peak {part}",
                max(peaks[f"warmup_{part}"], peaks[f"steady_{part}"]),
                device["peak"][part],
            )


def check_near_misses(found, report, device):
    for near in of_device(report["near_misses"], device):
        found.at = f"near misses of device {device['index']}"
        found.equal("headroom", near["headroom_bytes"], device["capacity_bytes"] - device["peak"]["reserved"])
        found.rising(looked_at=near["looked_at"], requests=near["requests"])


def check_conclusion(found, report, device, recorded):
    """A remedy that is a setting is a row of the table, with the same class and figures."""
    found.at = f"conclusion of device {device['index']}"
    for key in ("culprit", "remedy"):
        if not is_exact(fidelity_of(report, device)):
            sentence = device["conclusion"][key]
            found.holds("(exact" not in sentence, f"{key} says exact, the fidelity is not 100 %")
    remedy = device["conclusion"]["remedy"]
    remedy = remedy[max(0, remedy.find(check_report_text.SETTING)) :]
    rows = of_device(report["whatif"], device)
    named = device["conclusion"].get("row", "")
    row = next((row for row in rows if row["name"] == named), None) or (
        check_report_text.row_named(rows, remedy)
    )
    found.holds(not named or row is not None, f"no row '{named}', of which the remedy speaks")
    is_setting = remedy.startswith(check_report_text.SETTING)
    found.holds(row is not None or not is_setting, f"no row of the remedy '{remedy}'")
    if row is not None:
        found.holds(row["usable"], f"the remedy '{row['name']}' is not usable")
        found.holds(not row["recorded"], f"the remedy '{row['name']}' is what was recorded")
        certain = re.search(r"\((exact|at least|at most|estimate)( until[^)]*)?\)", remedy)
        words = certain[0].strip("()") if certain else "nothing"
        gets_past = row["gets_past"] and re.search(r"gets past .*\(exact up to this request\)", remedy)
        found.holds(
            gets_past or row["class_text"].startswith(words),
            f"the remedy is '{words}', the row '{row['class_text']}'",
        )
        # The rest of the text is about costs, and about facts that are not in the trace.
        check_report_text.check_figures(
            found, remedy[: certain.end()] if certain else "", [row, recorded, device]
        )


def check_source(found, source):
    ended, ending = source["ended"], source["ending"]
    found.holds(ending["kind"] in KINDS_OF_END[ended], f"ended '{ended}', by '{ending['kind']}'")
    found.holds(ending["code"] is None or ending["kind"] == "exit", "a code without an exit")
    found.equal("a signal", ending["signal"] is not None, ending["kind"] == "signal")


def check_side_memory(found, report):
    """Checks the holders of pinned and managed memory: each line occurs once, and their sum is at most the
    peak."""
    for kind in ("pinned", "managed"):
        memory = report.get("memory", {}).get(kind, {"peak_bytes": 0, "holders": []})
        labels = [holder["label"] for holder in memory["holders"]]
        found.equal(f"lines of {kind} memory that occur once", len(labels), len(set(labels)))
        found.rising(
            **{
                f"{kind} memory of lines": sum(holder["bytes"] for holder in memory["holders"]),
                "its peak": memory["peak_bytes"],
            }
        )


def check_main(found, report, assumed):
    check_source(found, report["source"])
    check_side_memory(found, report)
    for device in report["devices"]:
        check_device(found, report, device, assumed)
        recorded = recorded_row(report, device)
        for key in ("ooms", "retries"):
            for trouble in of_device(report[key], device):
                check_trouble(found, report, device, trouble, key == "retries")
        for row in of_device(report.get("whatif", []), device):
            check_row(found, report, device, row, recorded)
        if "advice" not in report:
            continue  # a single replay
        check_advice(found, report, device, recorded)
        check_bounds(found, report, device)
        check_iterations(found, device)
        check_near_misses(found, report, device)
        check_conclusion(found, report, device, recorded)
        most = device["holders"]
        if most is not None:
            # The trace does not contain the rounding of blocks, but a replay computes it.
            same = is_exact(fidelity_of(report, device)) or not has_pool(report, device)
            check_holders(
                found, most, most["event"], device["peak"]["allocated"] if same else most["allocated_bytes"]
            )
    if "phases" in report:
        check_counts(found, report)
    found.at = ""


def check_summary(found, report, summary):
    """Checks `summarize` of the same trace: nothing is replayed, and nothing may differ."""
    found.at = "summarize"
    found.equal("ended", summary["ended"], report["source"]["ended"])
    found.equal("ending", summary.get("ending"), report["source"].get("ending"))
    if summary["events_left_out"] or summary["ended"] == "running":
        return
    found.equal("events", summary["events"], report["source"]["events"])
    found.equal(
        "devices",
        [device["index"] for device in summary["devices"]],
        [device["index"] for device in report["devices"]],
    )
    for ours, theirs in zip(summary["devices"], report["devices"]):
        for key in SUMMARY:
            found.equal(f"device {ours['index']}, {key}", ours[key], theirs[key])


def check_process(found, report, process):
    """Checks the line of the same trace in the view of a job."""
    found.at = "job"
    devices = report["devices"]
    for part in ("allocated", "reserved"):
        found.equal(
            f"peak {part}", process[f"peak_{part}_bytes"], sum(device["peak"][part] for device in devices)
        )
    found.equal("retries", process["retries"], sum(device["retries"] for device in devices))
    listed = {device["index"] for device in devices}
    ooms = sum(device["ooms"] for device in devices)
    ooms += sum(oom["device"] not in listed for oom in report["ooms"])
    # The state at one moment shows no failures.
    unknown = ooms == 0 and any(device["state_only"] for device in devices)
    found.equal("ooms", process["ooms"], None if unknown else ooms)
    found.equal("ended", process["ended"], report["source"]["ended"])
    found.equal("ending", process.get("ending"), report["source"].get("ending"))


def check_replay(found, report, replay):
    """Checks that `replay` under the recorded settings equals the row 'as recorded'."""
    found.at = "replay"
    device = replay["devices"][0]
    recorded = recorded_row(report, device)
    if recorded is None:
        return
    found.equal("class", replay["class"], recorded["class"])
    for key in ("segments_allocated", "segments_freed", "retries", "waste_at_peak", "ooms"):
        found.equal(key, device[key], recorded[key])
    for part in ("allocated", "reserved"):
        found.equal(f"peak {part}", device["peak"][part], recorded[f"peak_{part}_bytes"])


def check_comparison(found, report, comparison):
    """Checks `compare` of the trace with itself: each figure is the report's, and nothing differs."""
    found.at = "compare"
    for line in comparison["devices"]:
        found.equal("what differs", (line["a"], line["holders_at_peak"]), (line["b"], []))
    for line in comparison["phases"]:
        found.equal(f"phase {line['name']}", (line["a"], line["parting"]), (line["b"], None))
    found.equal("requests that differ", comparison["first_different_requests"], [])
    found.equal("settings that differ", comparison["settings"], [])
    ours = {line["index"]: line["a"] for line in comparison["devices"] if line["a"] is not None}
    for device in report["devices"]:
        if device["index"] not in ours:
            found.equal("devices", sorted(ours), [one["index"] for one in report["devices"]])
            continue
        for key in (
            "name",
            "peak",
            "segments_allocated",
            "segments_freed",
            "retries",
            "ooms",
            "waste_at_peak",
        ):
            found.equal(f"device {device['index']}, {key}", ours[device["index"]][key], device[key])


def contradictions(
    report, text=None, page=None, summary=None, process=None, replay=None, comparison=None, arguments=()
):
    """Sentences. `report` is the JSON of a report or of a replay; the others, where given, are of
    the same trace: the report's text, its page, and the JSON of summarize, of the process in a job,
    of a replay under the recorded settings, and of the comparison of the trace with itself.
    `arguments`: what the report was asked with."""
    found = Findings()
    check_main(found, report, not ANOTHER_CARD.isdisjoint(map(str, arguments)))
    if text is not None:
        check_report_text.check_text(found, report, text)
    if page is not None:
        check_report_text.check_page(found, report, page)
    for check, other in (
        (check_summary, summary),
        (check_process, process),
        (check_replay, replay),
        (check_comparison, comparison),
    ):
        if other is not None:
            check(found, report, other)
    return list(found)


def all_reports(analyzer, trace, *options):
    """All reports of a trace that contradictions() needs. `options` are those of the report."""
    with tempfile.TemporaryDirectory(prefix="fragtrace-reports-") as folder:

        def asked(*command):
            done = subprocess.run(
                [str(word) for word in (analyzer, *command)], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                raise RuntimeError(f"{command}: exit status {done.returncode}\n{done.stderr}")
            json_schema.check_command((analyzer, *command), 0, done.stdout)
            return done.stdout

        file, html = pathlib.Path(folder, "report.json"), pathlib.Path(folder, "page.html")
        text = asked(trace, "--json", file, "--html", html, "--color", "never", *options)
        report = json.loads(file.read_text(errors="replace"))
        found = {"report": report, "text": text, "page": html.read_text(errors="replace")}
        found["summary"] = json.loads(asked("summarize", trace, "--json", "-"))
        found["process"] = json.loads(asked(trace, trace, "--json", "-"))["processes"][0]
        found["comparison"] = json.loads(asked("compare", trace, trace, "--json", "-"))
        if report["devices"] and has_pool(report, report["devices"][0]):
            found["replay"] = json.loads(
                asked("replay", trace, "--pool", "pytorch", "--conf", report["config"], "--json", "-")
            )
        return found


def main(arguments):
    analyzer = None
    if arguments[:1] == ["--analyzer"]:
        analyzer, arguments = arguments[1], arguments[2:]
    if not arguments:
        sys.exit(__doc__)
    if analyzer is None:
        arguments = sorted(pathlib.Path(arguments[0]).glob("*.json"))
    wrong = 0
    for name in arguments:
        if analyzer is not None:
            told = contradictions(**all_reports(analyzer, name))
        else:
            told = contradictions(
                json.loads(name.read_text(errors="replace")),
                name.with_suffix(".txt").read_text(errors="replace"),
            )
        for line in told:
            print(f"{name}: {line}")
        wrong += bool(told)
    print(f"{len(arguments)} checked, {wrong} with contradictions")
    sys.exit(1 if wrong or not arguments else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
