"""Compares forecasts of the rest of a step with real runs of the same step on larger cards."""

import json
import math
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "matrix"), str(HERE.parent / "support")]

import json_schema
from matrix import ANALYZER, CONTEXT_MIB, MIB

LARGE_MIB = 65536
# The steps of each program, of which the last should fail, and whether the size is a batch or a length.
PROGRAMS = {
    "batch_growth": (5, (8, 12)),
    "variable_lengths": (6, (224, 320)),
    "second_step": (2, (192, 288)),
    "checkpointing": (5, (208, 448)),
    "mixed_precision": (5, (320, 448)),
    "accumulation": (5, (256, 448)),
    "cnn_sizes": (5, (160, 208)),
    "two_models": (5, (256, 448)),
    "recurrent": (5, (24, 48)),
    "kept_losses": (6, None),
}
# The card has this share of the memory that the last step needs in addition to the earlier steps.
DEPTHS = (0.25, 0.75)


class Program:
    def __init__(self, name, plain, recording, folder):
        self.name, self.plain, self.recording, self.folder = name, plain, recording, folder
        self.steps, self.sizes = PROGRAMS[name]

    def run(self, process, card_mib, steps, *size):
        arguments = [self.name, str(steps), *map(str, size)]
        return process.run_file(HERE / "programs.py", f"{card_mib}MiB", "", self.folder, arguments=arguments)

    def peaks(self, steps):
        """Peak allocated and reserved in MiB on a card with enough memory."""
        statistics, _ = self.run(self.plain, LARGE_MIB, steps)
        if statistics["ended"] != "ok":
            raise RuntimeError(f"{self.name} does not fit {LARGE_MIB} MiB")
        at_end = statistics["at_end"]
        return tuple(at_end[f"{kind}_bytes.all.peak"] / MIB for kind in ("allocated", "reserved"))

    def fits(self, card_mib, *size):
        return self.run(self.plain, card_mib, self.steps, *size)[0]["ended"] == "ok"

    def least_card(self, fails, fits):
        """The smallest sufficient card, by bisection to one driver page. A smaller one may fit by chance."""
        while fits - fails > 2:
            middle = (fails + fits) // 4 * 2
            fails, fits = (fails, middle) if self.fits(middle) else (middle, fits)
        return fits

    def measure(self, depth):
        """One failing run, its forecast, and the real results with more or less memory."""
        in_use_before, before = self.peaks(self.steps - 1)
        allocated, reserved = self.peaks(self.steps)
        # If earlier steps reserve more than this step allocates, their allocated memory counts.
        floor = before if before < allocated else in_use_before
        card = CONTEXT_MIB + int(floor + depth * (allocated - floor)) // 2 * 2
        statistics, trace = self.run(self.recording, card, self.steps)
        if statistics["ended"] != "oom":
            raise RuntimeError(f"{self.name} fits {card} MiB")
        forecast = forecast_of(trace)
        if forecast["known"] and forecast["iteration"] != self.steps:
            raise RuntimeError(f"{self.name} fails in step {forecast['iteration']} on {card} MiB")
        row = {
            "program": self.name,
            "depth": depth,
            "card_mib": card,
            "forecast": forecast,
            "allocated_mib": allocated,
            "reserved_mib": reserved,
        }
        if forecast["known"]:
            row["least_card_mib"] = self.least_card(card, CONTEXT_MIB + -(-int(reserved + 2) // 2) * 2)
            if self.sizes and forecast["fitting_part"]:
                row["part_fits"], row["largest_part"] = self.parts(card, forecast["fitting_part"])
        return row

    def parts(self, card, part):
        """Whether the forecast size fits, and the largest size that really fits."""
        smaller, failed = self.sizes
        smaller_by = math.ceil(100 * (1 - part))  # percent, as the report says it
        size = max(1, failed * (100 - smaller_by) // 100)
        low, high = smaller, failed
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(card, middle) else (low, middle)
        largest = low if self.fits(card, low) else 0
        return self.fits(card, size), largest / failed


def forecast_of(trace):
    command = [str(ANALYZER), "report", str(trace), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"no report of {trace}: {done.stderr}")
    json_schema.check_command(command, 0, done.stdout)
    return json.loads(done.stdout)["devices"][0]["forecast"]


def errors(row):
    """Forecast relative to the real value in percent: peak allocated, peak reserved, smallest card."""
    forecast = row["forecast"]
    pairs = (
        (forecast["peak_allocated_bytes"] / MIB, row["allocated_mib"]),
        (forecast["peak_reserved_bytes"] / MIB, row["reserved_mib"]),
        (forecast["least_card_bytes"] / MIB, row["least_card_mib"]),
    )
    return [100 * (told / real - 1) for told, real in pairs]
