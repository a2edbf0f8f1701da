"""What fraganalyze predicts from the traces of a job, and what the same job does when it runs again.

test_job_predictions.py does it for an unequal pipeline, scripts/job-predictions for all ways of
memory_ranks.py.
"""

import json
import pathlib
import re

from real_process import ANALYZER, MIB, TORCH_PYTHON, environment, run, traces

PROGRAM = pathlib.Path(__file__).with_name("programs") / "memory_ranks.py"
CONTEXT_MIB = 64
RANKS = {"ddp": 2, "zero_1": 2, "fsdp_1": 2, "fsdp_2": 2, "hsdp": 4, "pipeline": 4}
SETTINGS = ("", "expandable_segments:True")


def run_job(way, folder, card_mib, setting=""):
    """Records a job into a new folder. Returns the finished process."""
    folder.mkdir(parents=True)
    env = environment(
        f"{card_mib}MiB,count={RANKS[way]},context={CONTEXT_MIB}MiB",
        folder,
        OMP_NUM_THREADS=1,
        PYTORCH_CUDA_ALLOC_CONF=setting,
    )
    return run([TORCH_PYTHON, PROGRAM, way, RANKS[way]], env=env)


def view(folder):
    """The job view as text and as JSON."""
    file = folder.with_suffix(".json")
    text = run([ANALYZER, folder, "--json", file]).stdout
    return text, json.loads(file.read_text(encoding="utf-8"))


def least_cards(folder):
    """By setting: the least card on which all ranks fit, in MiB, and the ranks that need it."""
    by_setting = {setting: {} for setting in SETTINGS}
    for trace in traces(folder):
        rank = int(re.search(r"\.rank(\d+)\.", trace.name).group(1))
        report = json.loads(run([ANALYZER, "whatif", trace, "--json", "-"]).stdout)
        for scan in report["capacity_scans"]:
            if scan["config"] in by_setting and scan["remedy"] == "settings" and scan["class"] == "exact":
                by_setting[scan["config"]][rank] = scan["least_fits_bytes"] // MIB
    return {
        setting: (
            max(needs.values()) + CONTEXT_MIB,
            [rank for rank, need in sorted(needs.items()) if need == max(needs.values())],
        )
        for setting, needs in by_setting.items()
        if len(needs) == len(traces(folder))
    }


class Predictions:
    """Reruns of one way. Each check is a line in `confirmed` or in `wrong`."""

    def __init__(self, way, folder):
        self.way = way
        self.folder = pathlib.Path(folder)
        self.confirmed = []
        self.wrong = []

    def check(self, holds, what):
        (self.confirmed if holds else self.wrong).append(f"{self.way}: {what}")
        return holds

    def run_on(self, name, card_mib, setting=""):
        """Whether the job ran to its end."""
        self.done = run_job(self.way, self.folder / name, card_mib, setting)
        return self.done.returncode == 0

    def check_all(self, settings=SETTINGS):
        if not self.check(self.run_on("recorded", 2048), "runs on a card of 2 GiB"):
            return
        _, recorded = view(self.folder / "recorded")
        card = recorded["card"]["enough_bytes"] // MIB
        self.check(self.run_on("enough", card), f"the card of the job view, {card} MiB, is enough")
        least = least_cards(self.folder / "recorded")
        for number, setting in enumerate(settings):
            if self.check(setting in least, f"exact least card with {setting or 'default settings'}"):
                self.check_least(f"{number}", setting, *least[setting])
        if "" in settings and "" in least and self.wrong == []:
            self.check_setting(least[""][0] - 2, least)

    def check_least(self, name, setting, card_mib, ranks):
        words = f"{card_mib} MiB with {setting or 'default settings'}"
        self.check(self.run_on(f"least-{name}", card_mib, setting), f"{words} is enough")
        failed = not self.run_on(f"fails-{name}", card_mib - 2, setting)
        first = view(self.folder / f"fails-{name}")[1]["first_failure"] if failed else None
        self.check(
            failed and first["out_of_memory"] and first["rank"] in ranks,
            f"2 MiB less than {words} fails on rank {' or '.join(map(str, ranks))}",
        )

    def check_setting(self, card_mib, least):
        """The setting that the view of the failed job recommends, on the same card."""
        _, job = view(self.folder / "fails-0")
        name = job["setting"]["name"] if job["setting"] else None
        if name is not None and least.get(name, (0, []))[0] <= card_mib:
            self.check(
                self.run_on("setting", card_mib, name),
                f"{name}, which the view recommends, on {card_mib} MiB",
            )
