"""Compares the text and the page of a report with its JSON (check_report.py)."""

import json
import re

SETTING = "PYTORCH_CUDA_ALLOC_CONF="
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
SIZE = re.compile(r"(?<![\w.:])\d+(?:\.\d+)? (?:B|KiB|MiB|GiB|TiB|PiB)\b")
LABEL = re.compile(
    r"^  (verdict|retry|culprit|main line|remedy|state|fidelity|device \d+|peaks|waste|driver) "
    r" *(.*)$"
)
LABELS_OF_EVERY_DEVICE = ("fidelity", "peaks", "waste", "driver")
TITLE = re.compile(
    r"^(Who |What |Bounds|Process|Phases|Assumptions|Warnings|Next|Popular|Holders|"
    r"Near|\.\.\.)"
)


def size_text(size_bytes):
    """A size as analyzer/support/units.h prints it."""
    value, unit = float(size_bytes), 0
    while value >= 1023.5 and unit + 1 < len(UNITS):
        value /= 1024
        unit += 1
    if value >= 99.95:
        return f"{value:.0f} {UNITS[unit]}"
    text = f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    return f"{text.rstrip('0').rstrip('.')} {UNITS[unit]}"


def count(text):
    return int(text.replace(",", "").replace(" ", ""))


def figures(part):
    """All numbers of a part of the JSON."""
    if isinstance(part, dict):
        return {number for value in part.values() for number in figures(value)}
    if isinstance(part, list):
        return {number for value in part for number in figures(value)}
    return {part} if isinstance(part, int) and not isinstance(part, bool) else set()


def check_figures(found, sentence, parts, more=()):
    """Checks that each size in the sentence is a number in these parts of the JSON."""
    known = {size_text(abs(number)) for part in parts for number in figures(part)}
    known |= {size_text(number) for number in more}
    for size in SIZE.findall(sentence):
        found.holds(size in known, f"'{sentence}': where {size} comes from is not in the JSON")


def row_named(rows, sentence):
    """The what-if row that a sentence recommends, found by the name at its beginning."""
    for row in sorted(rows, key=lambda row: -len(row["name"])):
        is_setting = row["remedy"] == "settings" and row["config"] == row["name"]
        name = SETTING + row["config"] if is_setting else row["name"]
        if row["pool"] == "pytorch" and sentence.startswith((name + ":", name + " ")):
            return row
    return None


class Block:
    """The lines of one device: its headline, and the text after each label."""

    def __init__(self, headline):
        self.headline = headline
        self.lines = {}

    @property
    def index(self):
        names = [label for label in self.lines if label.startswith("device ")]
        return int(names[0].split()[1]) if names else None


def blocks_of(text):
    """The blocks of a report's text, in order."""
    blocks, headline = [], None
    for line in text.splitlines()[1:]:
        label = LABEL.match(line)
        if label and headline is not None:
            blocks.append(Block(headline))
            headline = None
        if label and blocks:
            blocks[-1].lines.setdefault(label[1], label[2])
        elif line and not line.startswith(" "):
            if TITLE.match(line):
                headline = None
                if blocks and blocks[-1].index is not None:
                    blocks.append(Block(line))  # later lines belong to no label above
            else:
                headline = line
    return [block for block in blocks if block.index is not None]


def numbers(found, label, line, pattern):
    """The groups of the pattern in that line. None, and a contradiction, if it does not match."""
    match = re.search(pattern, line)
    found.holds(match, f"the line '{label}' cannot be read: {line}")
    return match.groups() if match else None


def check_measures(found, device, lines):
    if device["state_only"]:
        return  # no run was measured
    read = numbers(
        found,
        "peaks",
        lines["peaks"],
        r"requested (.*), allocated (.*), active (.*), reserved (.*?) of (.*)$",
    )
    if read:
        for part, told in zip(("requested", "allocated", "active", "reserved"), read):
            found.equal(f"peak {part} in the text", told, size_text(device["peak"][part]))
        if not read[4].startswith("an unknown"):
            found.equal("capacity in the text", read[4], size_text(device["capacity_bytes"]))
    waste = device["waste_at_peak"]
    for part, told in re.findall(
        r"(rounding|slack|pending|releasable|inactive split) ([\d.]+ \w+)", lines["waste"]
    ):
        found.equal(f"{part} in the text", told, size_text(waste[part.replace(" ", "_")]))
    read = numbers(
        found,
        "driver",
        lines["driver"],
        r"^([\d,]+) cudaMallocs? or maps?, ([\d,]+) cudaFrees? or unmaps?, "
        r"([\d,]+) (?:retry|retries)",
    )
    if read:
        for told, key in zip(read, ("segments_allocated", "segments_freed", "retries")):
            found.equal(f"{key} in the text", count(told), device[key])


def check_fidelity(found, fidelity, line):
    if fidelity["reason"].startswith(("no caching pool", "not judged")):
        found.holds(line.startswith(("not measured", "not judged")), f"fidelity reads {line}")
        return
    read = numbers(
        found,
        "fidelity",
        line,
        r"^([\d.]+) %: the replay reproduces ([\d,]+) of ([\d,]+) placements? and "
        r"([\d,]+) of ([\d,]+) ",
    )
    if read:
        told = [count(number) for number in read[1:]]
        keys = ("placements_equal", "placements", "segments_equal", "segments")
        found.equal("fidelity in the text", told, [fidelity[key] for key in keys])
        found.equal("100 % in the text", read[0] == "100.00", told[0] == told[1] and told[2] == told[3])


def first_pool_failure(report, device):
    """The first failed request of the first pool of the program on this device that had one, or None."""
    for pool in report.get("program_pools", []):
        if pool["failures"] and pool["device"] in (device["index"], None):
            return pool["failures"][0]
    return None


def check_headline(found, report, device, block, first):
    """`first`: the device's reported out-of-memory, or None."""
    line = block.headline
    if device.get("state_only"):
        return  # no requests were recorded
    failed = first_pool_failure(report, device) if first is None and device["ooms"] == 0 else None
    found.equal(
        "'No out-of-memory' in the headline",
        line.startswith("No out-of-memory"),
        first is None and device["ooms"] == 0 and failed is None,
    )
    peak = device["peak"]
    parts = [device, *(row for row in report.get("whatif", []) if row["device"] == device["index"])]
    if failed is not None:
        found.equal(
            "'despite free memory' of a pool in the headline",
            line.startswith("Pool ") and "despite free memory" in line,
            failed["failure"] == "fragmentation",
        )
        parts.append(failed)
    more = [peak["reserved"] - min(peak["reserved"], peak["allocated"])]
    if first is not None:
        parts.append(first)
        more.append(first["free_bytes"] + (first["device_free_bytes"] or 0))
        if first["requester"] != "library":
            forecast = device.get("forecast") or {}
            needs_more = forecast.get("event") == first["event"] and not forecast["in_use_fits"]
            despite = first["despite_free_memory"] and more[-1] != 0 and not needs_more
            found.equal(
                "'despite free memory' in the headline",
                line.startswith("Out of memory despite free memory"),
                despite,
            )
        found.holds(
            size_text(first["requested_bytes"]) in line, f"the headline does not say what was asked: {line}"
        )
    found.holds(
        "(exact" not in line
        or "fidelity" not in device
        or device["fidelity"]["placements"] == device["fidelity"]["placements_equal"],
        f"the headline says exact, the fidelity is not 100 %: {line}",
    )
    check_figures(found, line, parts, more)


def check_failure(found, device, lines, first):
    found.equal("a verdict in the text", "verdict" in lines, first is not None)
    if first is None:
        return
    told = lines.get("verdict", "").partition(":")[0]
    found.equal("the verdict in the text", told, first["verdict"])
    more = [first["free_bytes"], first["device_free_bytes"] or 0]
    read = numbers(
        found,
        "state",
        lines.get("state", ""),
        r"^(.*) allocated, (.*) reserved; free: (.*) in the pool \(largest free block (.*)\), "
        r"(.*) on the device",
    )
    if read:
        values = [
            first["allocated_bytes"],
            first["reserved_bytes"],
            more[0],
            first["largest_free_bytes"],
            more[1],
        ]
        found.equal("the state in the text", list(read), [size_text(value) for value in values])


def check_ending(found, source, words):
    ending = source["ending"]
    told = (
        ending["signal"]
        if ending["signal"] is not None
        else {None: "", 0: "ended normally"}.get(ending["code"], f"exit code {ending['code']}")
    )
    found.holds(told in words.partition(";")[0], f"the end reads '{words}', and is '{told}'")


def is_plain(text):
    return text.isprintable() and "\\" not in text


def check_text(found, report, text):
    """Compares the text of `fraganalyze TRACE` with the JSON of the same run."""
    found.at = "text"
    blocks = blocks_of(text)
    found.equal(
        "devices of the text",
        sorted(block.index for block in blocks),
        [device["index"] for device in report["devices"]],
    )
    source = report["source"]
    first_line = text.splitlines()[0]
    if "snapshot.entries" not in report["facts"]:
        read = numbers(found, "process", first_line, r"([\d,]+) events?, (.*)$")
        if read:
            found.equal("events in the text", count(read[0]), source["events"])
            check_ending(found, source, read[1])
    by_index = {device["index"]: device for device in report["devices"]}
    for block in blocks:
        device = by_index.get(block.index)
        if device is None:
            continue
        found.at = f"text of device {block.index}"
        missing = [
            label for label in LABELS_OF_EVERY_DEVICE if label not in block.lines and not device["state_only"]
        ]
        found.equal("labels that are missing", missing, [])
        if missing:
            continue
        first = next(
            (
                oom
                for oom in report["ooms"]
                if oom["device"] == block.index and oom["event"] == device["conclusion"]["event"]
            ),
            None,
        )
        check_measures(found, device, block.lines)
        check_fidelity(found, device.get("fidelity", report["fidelity"]), block.lines["fidelity"])
        check_headline(found, report, device, block, first)
        check_failure(found, device, block.lines, first)
        for key in ("culprit", "remedy"):
            if is_plain(device["conclusion"][key]):
                # The culprit of a run in which nothing went wrong has another title.
                line = block.lines.get(key) or block.lines.get("main line" if key == "culprit" else "", "")
                found.equal(f"{key} in the text", line, device["conclusion"][key])


def check_page(found, report, html):
    """Checks the page of the same run."""
    found.at = "page"
    header = re.search(r'id="ft-header">(.*?)</script>', html, re.DOTALL)
    found.holds(header, "no data in it")
    if not header:
        return
    pages = {page["index"]: page for page in json.loads(header[1])["devices"]}
    for device in report["devices"]:
        found.at = f"page of device {device['index']}"
        page = pages.get(device["index"])
        found.holds(page, "the device is missing")
        if not page:
            continue
        totals = {total["label"]: total["value"] for total in page["totals"]}
        one_moment = device["state_only"]  # it has no peaks, and nothing before it is known
        for part, value in device["peak"].items():
            label = part if one_moment else f"peak {part}"
            found.equal(label, totals.get(label), value)
        for part, value in device["waste_at_peak"].items():
            found.equal(part, totals.get(part.replace("_", " ")), value)
        for key in ("retries", "ooms"):
            found.equal(key, totals.get(key), None if one_moment else device[key])
        marks = [marker["kind"] for marker in page["markers"]]
        for kind, key in (("oom", "ooms"), ("retry", "retries")):
            if device["ooms"] + device["retries"] <= 2000:
                found.equal(f"markers of {key}", marks.count(kind), device[key])
        rows = {row["name"]: row for row in report["whatif"] if row["device"] == device["index"]}
        for row in page["whatif"]:
            name = row["name"].removeprefix("as recorded: ")
            found.holds(name in rows, f"row '{name}' is not in the JSON")
            if name in rows:
                for key, theirs in (
                    ("ooms", "ooms"),
                    ("peak_reserved", "peak_reserved_bytes"),
                    ("retries", "retries"),
                    ("usable", "usable"),
                ):
                    found.equal(f"row '{name}': {key}", row[key], rows[name][theirs])
                found.holds(
                    row["class"] in (rows[name]["class"], rows[name]["class_text"]),
                    f"row '{name}': class: {row['class']} is not {rows[name]['class']}",
                )
