"""Compares what-if rows of a scenario's trace with real runs under the rows' conditions."""

import collections
import dataclasses
import json
import math
import re

from scenario_runner import HERE

MIB = 2**20
# Keys of a what-if row, and PyTorch's names for them.
STATISTICS = (
    ("peak_reserved_bytes", "reserved_bytes.all.peak"),
    ("peak_allocated_bytes", "allocated_bytes.all.peak"),
    ("segments_allocated", "num_device_alloc"),
    ("segments_freed", "num_device_free"),
)
EMPTYING_SECONDS = 900  # upper limit: each line of the program is traced (emptying.py)
PEAKS = ("peak_reserved_bytes", "peak_allocated_bytes", "segments_allocated")


class Confirmer:
    """The what-if rows of one scenario's default run."""

    def __init__(self, runner, scenario, python):
        from matrix import Torch  # after the environment is set, which it reads

        self.runner, self.scenario, self.run = runner, scenario, scenario.runs[0]
        self.folder = runner.folder / "confirmed"
        self.processes = {
            recorded: Torch(recorded, python, **runner.variables()) for recorded in (False, True)
        }
        self.not_run = collections.Counter()  # rows by class

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.close()

    def confirm(self, pattern=""):
        recorded, self.trace = self.runner.run(self.scenario, 0, self.run)
        self.ended = "ok" if recorded["ended"] else "oom"
        # If the run ended out of memory, the events after its last OOM belong to its end.
        self.end_event = math.inf if recorded["ended"] else recorded["report"]["ooms"][-1]["event"]
        self.others = recorded["device"]["others_bytes"]
        told = json.loads(self.runner.analyzer("whatif", self.trace, "--json", "-"))
        self.capacity = next(row["capacity_bytes"] for row in told["whatif"] if row["recorded"])
        for row in told["whatif"]:
            if not re.search(pattern, row["name"]):
                continue
            result = self.confirm_row(row)
            if result is None:
                self.not_run[row["class"]] += 1
            else:
                yield result
        for scan in told["capacity_scans"]:
            if re.search(pattern, scan["name"]):
                yield from self.confirm_scan(scan)

    def confirm_row(self, row):
        """Compares a row with a real run. Returns None for rows that cannot be compared, as estimates."""
        bound = (
            row["class"] == "bound"
            and row["pool"] == "pytorch"
            and row["remedy"] in ("settings", "empty_cache")
        )
        if row["class"] != "exact" and not bound:
            return None
        if row["remedy"] == "caching_off":
            measured = self.run_uncached()
        elif row["pool"] == "pytorch" and row["remedy"] in ("settings", "empty_cache"):
            measured = self.run_row(row, row["capacity_bytes"])
        else:
            raise SystemExit(f"{row['name']}: an exact row that no real run can have")
        predicted = {key: row[key] for key, _ in STATISTICS} | {
            "ooms": row["ooms"],
            "retries": row["retries"],
        }
        if bound:
            equal = holds(row, predicted, measured)
        else:  # every figure equals the row's, and the run ends as the recorded one did
            equal = predicted == {key: measured[key] for key in predicted} and measured["ended"] == self.ended
        equal = equal and not self.left_out(row, measured)
        return {
            "name": row["name"],
            "class": row["class"],
            "equal": equal,
            "predicted": text_of(predicted),
            "measured": text_of(measured),
        }

    def confirm_scan(self, scan):
        """Compares the smallest capacity that fits and the largest that fails."""
        if scan["class"] != "exact":
            self.not_run[scan["class"]] += 1
            return
        for what, capacity, fits in (
            ("fits", scan["least_fits_bytes"], True),
            ("fails", scan["largest_fails_bytes"], False),
        ):
            if capacity == 0:
                continue
            measured = self.run_row(scan, capacity)
            yield {
                "name": f"{scan['name']}: {capacity / MIB:,.0f} MiB",
                "class": "exact",
                "equal": (measured["ooms"] == 0) == fits and (not fits or not self.left_out(scan, measured)),
                "predicted": what,
                "measured": text_of(measured),
            }

    def card(self, capacity):
        size, *options = (self.run.card or self.scenario.card).split(",")
        if capacity != self.capacity:
            size = f"{(capacity + self.others) // MIB}MiB"
        return ",".join([size, *options])

    def run_file(self, recorded, card, conf, **more):
        printed = self.folder / "printed.txt"
        try:
            return self.processes[recorded].run_file(
                HERE / self.scenario.program,
                card,
                conf,
                self.folder,
                output=str(printed),
                arguments=self.run.arguments.split(),
                **more,
            )
        except RuntimeError as failure:
            raise SystemExit(f"{failure}\n{printed.read_text(errors='replace')[-3000:]}") from None

    def run_row(self, row, capacity):
        more = {}
        if row["remedy"] == "empty_cache":
            more["empty_cache_at"] = [list(instant) for instant in self.instants(row)]
            more["seconds"] = EMPTYING_SECONDS
        # PyTorch also counts the retry of a request that then failed. It does not count a retry that only had
        # to release blocks larger than max_split_size. For such rows the trace is used.
        by_record = "max_split_size_mb" in row["config"]
        statistics, trace = self.run_file(by_record, self.card(capacity), row["config"], **more)
        at_end = statistics["at_end"]
        ooms = at_end["num_ooms"]
        retries = self.recorded(trace)["retries"] if by_record else at_end["num_alloc_retries"] - ooms
        return {key: at_end.get(name, 0) for key, name in STATISTICS} | {
            "ended": statistics["ended"],
            "ooms": ooms,
            "retries": retries,
            "not_emptied_at": statistics.get("not_emptied_at", []),
        }

    def recorded(self, trace):
        return json.loads(self.runner.analyzer("report", trace, "--no-whatif", "--json", "-"))["devices"][0]

    def run_uncached(self):
        """Without a cache PyTorch has no statistics. So this run is recorded. Its trace reaches to the
        interpreter's end, which frees the remaining memory."""
        run = dataclasses.replace(self.run, environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
        row, _ = self.runner.run(self.scenario, "uncached", run)
        device = row["device"]
        return {
            "peak_reserved_bytes": device["peak"]["reserved"],
            "peak_allocated_bytes": device["peak"]["allocated"],
            "segments_allocated": device["segments_allocated"],
            "segments_freed": device["segments_freed"],
            "ended": "ok" if row["ended"] else "oom",
            "ooms": device["ooms"],
            "retries": device["retries"],
            "not_emptied_at": [],
        }

    def instants(self, row):
        """Where the row empties the cache, as {(allocations, frees before it): number of the event}."""
        if "empties_cache" not in row:  # a scan: the row of the same name has them
            told = json.loads(self.runner.analyzer("whatif", self.trace, "--no-scan", "--json", "-"))
            row = next(one for one in told["whatif"] if one["name"] == row["name"])
        empties = row["empties_cache"]
        if empties["calls"] != len(empties["after_events"]):
            raise SystemExit(f"{row['name']}: more calls than are listed")
        wanted, found, come, gone = set(empties["after_events"]), {}, 0, 0
        for line in self.runner.analyzer("dump", self.trace, "--no-stacks").splitlines():
            number, _, device, kind, *_ = line.split()
            come += (device, kind) == ("gpu0", "block_alloc")
            gone += (device, kind) == ("gpu0", "block_free")
            if int(number) in wanted:
                found.setdefault((come, gone), int(number))
        return found

    def left_out(self, row, measured):
        """Points that the real run did not reach, although the row is valid beyond them."""
        missed = [tuple(instant) for instant in measured["not_emptied_at"]]
        if not missed:
            return []
        until = row.get("valid_until_event")
        until = self.end_event if until is None else min(until, self.end_event)
        events = self.instants(row)
        return [instant for instant in missed if events[instant] < until]


def holds(row, predicted, measured):
    """Whether a bound holds, as far as the replay agrees with the recorded run."""
    if row["bound_kind"] == "at_least":
        return all(measured[key] >= predicted[key] for key in PEAKS)
    return row["bound_kind"] == "until_failure" and measured["ooms"] > 0


def text_of(figures):
    outcome = f"{figures['ooms']} OOM, " if figures["ooms"] else ""
    retries = f", {figures['retries']} retried" if figures["retries"] else ""
    return (
        f"{outcome}{figures['peak_reserved_bytes'] / MIB:,.1f} MiB, "
        f"+{figures['segments_allocated']} -{figures['segments_freed']}{retries}"
    )
