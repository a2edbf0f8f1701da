"""Checks the failed requests and retries of a report, and the free memory at that time (check_report.py)."""

from check_report_common import fidelity_of, is_exact

# The verdicts that are not fragmentation (docs/metrics.md, Verdict).
NOT_DESPITE = ("genuine", "limit", "outside_pool", "unexplained")
LADDER = (
    "pending",
    "releasable",
    "granularity",
    "limit",
    "stream_bound",
    "other_pool",
    "stitchable",
    "compaction_only",
    "rounding",
    "outside_pool",
    "genuine",
)
MOST_CULPRITS = 20


def check_steps(found, trouble):
    """Checks the steps of the verdict: the last one serves the request and is the verdict, no earlier one
    does."""
    verdict, steps = trouble["verdict"], trouble["steps"]
    if verdict == "unexplained":
        found.equal("rungs of an unexplained failure", len(steps), 0)
        return
    found.holds(steps, "a verdict without a rung")
    if not steps:
        return
    found.equal(
        "the rungs that serve", [step["serves"] for step in steps], [False] * (len(steps) - 1) + [True]
    )
    found.equal("the last rung", (steps[-1]["id"], steps[-1]["page_bytes"]), (verdict, trouble["page_bytes"]))
    order = [LADDER.index(step["id"]) for step in steps]
    found.holds(order == sorted(order), f"rungs out of order: {[step['id'] for step in steps]}")
    found.holds(verdict not in trouble["also_served_by"], f"{verdict} is the verdict, and served it 'also'")


def check_state(found, report, device, trouble):
    """Compares the verdict with the free memory."""
    pool, on_device = trouble["free_bytes"], trouble["device_free_bytes"] or 0  # null: unknown
    asked = trouble["requested_bytes"]
    found.rising(largest_hole=trouble["largest_free_bytes"], free=pool)
    found.rising(allocated_and_free=trouble["allocated_bytes"] + pool, reserved=trouble["reserved_bytes"])
    found.equal("despite_free_memory", trouble["despite_free_memory"], trouble["verdict"] not in NOT_DESPITE)
    if trouble["requester"] == "library":
        found.rising(device_free=on_device, asked_less_one=asked - 1)
    elif trouble["verdict"] != "unexplained" and trouble["requester"] == "pool":
        found.rising(asked=asked, rounded=trouble["rounded_bytes"])
        waits = any(step["id"] == "pending" and step["frees_bytes"] for step in trouble["steps"])
        found.holds(
            trouble["largest_usable_bytes"] < trouble["rounded_bytes"] or waits,
            f"{trouble['rounded_bytes']} asked, and a usable block of {trouble['largest_usable_bytes']}",
        )
    freed = sum(step["frees_bytes"] for step in trouble["steps"])
    if trouble["verdict"] in ("genuine", "outside_pool"):
        found.rising(free_in_all=pool + on_device, asked=max(asked, trouble["rounded_bytes"]))
        found.holds(
            pool + on_device < max(asked, trouble["rounded_bytes"]),
            "more was free than was asked, and the verdict is a shortage",
        )
    if trouble["verdict"] in ("stitchable", "compaction_only", "stream_bound"):
        found.rising(asked=asked, what_could_serve=pool + on_device + freed)
    # The capacity is that of the driver's last report. At the failure others may have held more or less.
    known = device["capacity_bytes"] is not None
    card = known and max(device["capacity_bytes"], report.get("capacity_bytes") or 0) + device["others_bytes"]
    if trouble["verdict"] == "outside_pool" and known:
        found.rising(
            what_others_give=trouble["steps"][-1]["frees_bytes"],
            others=max(
                device["others_bytes"] + device["past_pool"]["peak"],
                card - trouble["reserved_bytes"] - on_device,
            ),
        )
    if is_exact(fidelity_of(report, device)) and "holders_at_peak" in device:
        found.rising(reserved_then=trouble["reserved_bytes"], peak=device["peak"]["reserved"])
        found.rising(allocated_then=trouble["allocated_bytes"], peak=device["peak"]["allocated"])
    if known and "capacity_bytes" in report and trouble["reserved_bytes"] <= device["capacity_bytes"]:
        found.rising(reserved_and_free=trouble["reserved_bytes"] + on_device, card=card)


def check_places(found, trouble):
    places = trouble["free_places"]
    if places is None:
        return
    found.holds(
        trouble["verdict"] in ("stream_bound", "other_pool"),
        f"free places of the verdict {trouble['verdict']}",
    )
    found.rising(own_largest=places["own"]["largest_free_bytes"], own=places["own"]["free_bytes"])
    listed = sum(place["free_bytes"] for place in places["elsewhere"])
    found.rising(listed=listed, elsewhere=places["elsewhere_free_bytes"])
    if not places["places_left_out"]:
        found.equal("free elsewhere", listed, places["elsewhere_free_bytes"])
        found.equal(
            "largest block elsewhere",
            max((place["largest_free_bytes"] for place in places["elsewhere"]), default=0),
            places["elsewhere_largest_free_bytes"],
        )


def check_culprits(found, trouble):
    cheapest = trouble["cheapest_set"]
    sizes = [cheapest[key] for key in ("bytes_to_free", "blocks", "segments", "pages")]
    found.holds(cheapest["kind"] != "none" or not any(sizes), f"no cheapest set, and {sizes}")
    found.equal("blocks of a cheapest set", cheapest["blocks"] > 0, cheapest["bytes_to_free"] > 0)
    rows = trouble["culprits"]
    for by in ("culprits_by_phase", "culprits_by_age"):
        if max(len(rows), len(trouble[by])) < MOST_CULPRITS:
            for key in ("held_open_bytes", "live_bytes", "blocks"):
                found.equal(
                    f"{key} of {by}", sum(row[key] for row in trouble[by]), sum(row[key] for row in rows)
                )
    found.rising(held_open=sum(row["held_open_bytes"] for row in rows), free=trouble["free_bytes"])
    found.rising(
        live=sum(row["live_bytes"] for row in rows), in_use=trouble["reserved_bytes"] - trouble["free_bytes"]
    )


def check_holders(found, holders, event, allocated):
    """Checks that the categories and lines of the live memory add up to allocated."""
    if holders is None:
        return
    found.equal("event of the holders", holders["event"], event)
    found.equal("what holders hold", holders["allocated_bytes"], allocated)
    kinds = holders["categories"]
    found.equal("the sum of the kinds", sum(kind["bytes"] for kind in kinds), holders["allocated_bytes"])
    places = sum(place["bytes"] for place in holders["places"])
    found.rising(places=places, allocated=holders["allocated_bytes"])
    if not holders["places_left_out"]:
        found.equal("the sum of the places", places, holders["allocated_bytes"])
    for kind in kinds:
        found.rising(old=kind["old_bytes"], all_of_the_kind=kind["bytes"])


def check_trouble(found, report, device, trouble, retry):
    found.at = f"{'retry' if retry else 'out-of-memory'} at event {trouble['event']}"
    found.rising(event=trouble["event"], events=report["source"]["events"] - 1)
    if trouble["verdict"] == "not_judged":
        return
    check_steps(found, trouble)
    check_state(found, report, device, trouble)
    check_places(found, trouble)
    check_culprits(found, trouble)
    check_holders(found, trouble.get("holders"), trouble["event"], trouble["allocated_bytes"])
    if retry and "released_bytes" in trouble:
        found.rising(released=trouble["released_bytes"], reserved=trouble["reserved_bytes"])
