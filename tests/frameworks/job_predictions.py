"""What fraganalyze predicts from the traces of a job, and what the same job does when it runs again.

test_job_predictions.py does it for an unequal pipeline, scripts/job-predictions for all ways.
"""

import dataclasses
import json
import pathlib

from real_process import ANALYZER, MIB, TORCH_PYTHON, environment, run
from torch_jobs import PROGRAMS, beside_torch, differences, torchrun

CONTEXT_MIB = 64
EXPANDABLE = "expandable_segments:True"


@dataclasses.dataclass(frozen=True)
class Way:
    ranks: int
    program: tuple  # and its arguments
    options: tuple = None  # of torchrun; without them the program starts its ranks itself
    module: str = None  # which the program needs beside PyTorch

    def command(self):
        program = [PROGRAMS / self.program[0], *self.program[1:]]
        if self.options is None:
            return [TORCH_PYTHON, *program]
        return torchrun(self.ranks, *self.options, *program)


def with_pytorch(ranks, *ways):
    return {way: Way(ranks, ("memory_ranks.py", way, ranks)) for way in ways}


def with_module(module, program, *arguments):
    return Way(2, (program, *arguments), (), module)


WAYS = {
    **with_pytorch(2, "ddp", "zero_1", "fsdp_1", "fsdp_2"),
    **with_pytorch(4, "hsdp", "tp_fsdp_2", "tp_dp", "context_parallel"),
    **with_pytorch(4, "pipeline_1f1b", "pipeline_gpipe", "pipeline_interleaved"),
    "deepspeed_zero_1": with_module("deepspeed", "deepspeed_ranks.py", 1),
    "deepspeed_zero_2": with_module("deepspeed", "deepspeed_ranks.py", 2),
    "deepspeed_zero_3": with_module("deepspeed", "deepspeed_ranks.py", 3),
    "lightning_ddp": with_module("lightning", "lightning_ranks.py", "ddp"),
    "lightning_fsdp": with_module("lightning", "lightning_ranks.py", "fsdp"),
    "accelerate": with_module("accelerate", "accelerate_ranks.py"),
    "spawned": Way(2, ("spawned_ranks.py",)),
    "restarted": Way(2, ("restarted_ranks.py",), ("--max-restarts", 1)),
}


def run_job(way, folder, card_mib, setting=""):
    """Records a job into a new folder. Returns the finished process."""
    folder.mkdir(parents=True)
    env = environment(
        f"{card_mib}MiB,count={way.ranks},context={CONTEXT_MIB}MiB",
        folder,
        OMP_NUM_THREADS=1,
        PYTORCH_CUDA_ALLOC_CONF=setting,
        # A new store per generation. In a shared one, rank 1 may find the unique id of the killed generation.
        TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1,
        **(beside_torch(way.module) if way.module else {}),
    )
    return run(way.command(), env=env)


def view(folder):
    """The job view as text and as JSON."""
    file = folder.with_suffix(".json")
    text = run([ANALYZER, folder, "--json", file]).stdout
    return text, json.loads(file.read_text(encoding="utf-8"))


def ranks_of(folder):
    """By trace: the rank of its process. A restarted job has several traces of a rank."""
    return {folder / process["file"]: process["rank"] for process in view(folder)[1]["processes"]}


def least_cards(folder):
    """By setting: the least card for all ranks in MiB, the ranks that need it, and whether it is exact.

    fraganalyze tries the recorded settings and the best of the others.
    """
    ranks = ranks_of(folder)
    by_setting = {}
    for trace in ranks:
        report = json.loads(run([ANALYZER, "whatif", trace, "--json", "-"]).stdout)
        for scan in report["capacity_scans"]:
            if scan["remedy"] == "settings":
                by_setting.setdefault(scan["config"], {})[trace] = scan
    least = {}
    for setting, scans in by_setting.items():
        needs = {trace: scan["least_fits_bytes"] // MIB for trace, scan in scans.items()}
        most = max(needs.values())
        if len(needs) == len(ranks):
            least[setting] = (
                most + CONTEXT_MIB,
                sorted({ranks[trace] for trace, need in needs.items() if need == most}),
                all(scan["class"] == "exact" for scan in scans.values()),
            )
    return least


def recorded_exactly(folder, ranks):
    """Whether all ranks have a trace without losses, whose replay equals the recording."""
    found = ranks_of(folder)
    reports = [json.loads(run([ANALYZER, trace, "--no-whatif", "--json", "-"]).stdout) for trace in found]
    return set(found.values()) == set(range(ranks)) and not any(map(differences, reports))


class Predictions:
    """Reruns of one way. Each check is a line in `confirmed` or in `wrong`."""

    def __init__(self, way, folder):
        self.name = way
        self.way = WAYS[way]
        self.folder = pathlib.Path(folder)
        self.confirmed = []
        self.wrong = []

    def check(self, holds, what):
        (self.confirmed if holds else self.wrong).append(f"{self.name}: {what}")
        return holds

    def run_on(self, name, card_mib, setting=""):
        """Whether the job ran to its end."""
        self.done = run_job(self.way, self.folder / name, card_mib, setting)
        return self.done.returncode == 0

    def check_all(self, others=True):
        """With others: also another setting than the recorded one."""
        if not self.check(self.run_on("recorded", 2048), "runs on a card of 2 GiB"):
            return
        self.check(
            recorded_exactly(self.folder / "recorded", self.way.ranks), "all ranks have 100 % fidelity"
        )
        _, recorded = view(self.folder / "recorded")
        card = recorded["card"]["enough_bytes"] // MIB
        self.check(self.run_on("enough", card), f"the card of the job view, {card} MiB, is enough")
        least = least_cards(self.folder / "recorded")
        if not self.check("" in least, "a least card with default settings is named"):
            return
        self.check_least("0", "", *least[""])
        other = EXPANDABLE if EXPANDABLE in least else next((name for name in least if name), None)
        if others and self.check(other is not None, "a least card with another setting is named"):
            self.check_least("1", other, *least[other])
        if self.wrong == []:
            self.check_setting(least[""][0] - 2)

    def check_least(self, name, setting, card_mib, ranks, exact):
        words = f"{card_mib} MiB with {setting or 'default settings'}"
        self.check(exact, f"{words} is exact")
        self.check(self.run_on(f"least-{name}", card_mib, setting), f"{words} is enough")
        failed = not self.run_on(f"fails-{name}", card_mib - 2, setting)
        first = view(self.folder / f"fails-{name}")[1]["first_failures"][-1] if failed else None
        self.check(
            failed and first["out_of_memory"] and first["rank"] in ranks,
            f"2 MiB less than {words} fails on rank {' or '.join(map(str, ranks))}",
        )

    def check_setting(self, card_mib):
        """The setting that the view of the failed job recommends, on the same card."""
        _, job = view(self.folder / "fails-0")
        name = job["setting"]["name"] if job["setting"] else None
        if name is not None:
            self.check(
                self.run_on("setting", card_mib, name),
                f"{name}, which the view recommends, on {card_mib} MiB",
            )
