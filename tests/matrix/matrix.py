"""The matrix: programs x settings x cards.

A trace is recorded under other settings. Its replay predicts each cell, a real run measures the cell, and
both are compared. docs/fidelity.md explains it.
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

import json_schema
from real_process import ANALYZER, MIB, TORCH_PYTHON, environment

PROGRAMS = sorted(path.stem for path in (HERE / "programs").glob("*.py") if path.stem != "models")
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:20",
    "max_split_size_mb:64",
    "max_split_size_mb:30,max_non_split_rounding_mb:50",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,4:4,16:2,>:1]",
    "large_segment_size_mb:64",
    "per_process_memory_fraction:0.8",
    "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9",
    "expandable_segments:True,roundup_power2_divisions:8",
    "max_split_size_mb:32,garbage_collection_threshold:0.6,per_process_memory_fraction:0.95",
    "throw_on_cudamalloc_oom:True",
    "expandable_segments:True,expandable_segments_reserve:0.5",
    "expandable_segments:True,large_segment_size_mb:32",
    "expandable_segments:True,per_process_memory_fraction:0.8",
    "expandable_segments:True,throw_on_cudamalloc_oom:True",
    "pinned_use_cuda_host_register:True,pinned_num_register_threads:2",
)
CARDS = ("tight", "enough", "roomy")
CONTEXT_MIB = 256  # on plain cards of the virtual GPU
SECONDS = 120  # limit for one program

# The compared figures: name in our tables, PyTorch's statistic, key of our JSON.
COMPARED = (
    ("peak reserved", "reserved_bytes.all.peak", ("peak", "reserved")),
    ("peak active", "active_bytes.all.peak", ("peak", "active")),
    ("peak allocated", "allocated_bytes.all.peak", ("peak", "allocated")),
    ("cudaMallocs", "num_device_alloc", ("segments_allocated",)),
    ("cudaFrees", "num_device_free", ("segments_freed",)),
    ("retries", "num_alloc_retries", ("num_alloc_retries",)),
)


class Torch:
    """A process that has imported torch and runs programs in forks of itself."""

    def __init__(self, recorded, python=TORCH_PYTHON, **variables):
        self.recorded = recorded
        env = environment("16GiB", record_to="/nonexistent" if recorded else None, **variables)
        self.process = subprocess.Popen(
            [python, HERE / "warm_torch.py"],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, program, card_mib, conf, folder):
        """Runs a program of the matrix. Returns its statistics, and the trace if it was recorded."""
        return self.run_file(HERE / "programs" / f"{program}.py", f"{card_mib}MiB", conf, folder)

    def run_file(self, path, card, conf, folder, **more):
        """The same for any program. `more`: other fields of the job (warm_torch.py)."""
        folder.mkdir(parents=True, exist_ok=True)
        statistics = folder / "statistics.json"
        job = {
            "program": str(path),
            "card": card,
            "conf": conf,
            "statistics": str(statistics),
            "seconds": SECONDS,
            **more,
        }
        if self.recorded:
            job["traces"] = str(folder)
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        done = json.loads(self.process.stdout.readline())
        if done["ended"] not in ("ok", "oom"):
            raise RuntimeError(f"{path} on {card} with '{conf}' {done['ended']}")
        trace = next(folder.glob(f"*.{done['process']}.ftrace")) if self.recorded else None
        return json.loads(statistics.read_text()), trace

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


def cards_of(statistics):
    """Three cards, based on the program's need under default settings with enough memory."""
    reserved = statistics["at_end"]["reserved_bytes.all.peak"] // MIB
    active = -(-statistics["at_end"]["active_bytes.all.peak"] // MIB)
    tight = active + (reserved - active) // 3
    return {
        "tight": CONTEXT_MIB + tight // 2 * 2,
        "enough": CONTEXT_MIB + reserved,
        "roomy": CONTEXT_MIB + 2 * reserved,
    }


def replayed(trace, *arguments):
    command = [ANALYZER, "replay", trace, *arguments, "--json", "-"]
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed: {done.stderr}")
    json_schema.check_command(command, 0, done.stdout)
    return json.loads(done.stdout)


class Prediction:
    """The prediction of a trace for other settings, and for cards with `more_mib` more or less."""

    def __init__(self, trace):
        self.trace = trace
        self.capacity = replayed(trace)["capacity_bytes"]

    def of(self, conf, more_mib=0):
        answer = replayed(self.trace, "--conf", conf, "--capacity", self.capacity + more_mib * MIB)
        device = answer["devices"][0]
        keep = ("peak", "segments_allocated", "segments_freed", "num_alloc_retries", "ooms")
        return {
            "class": answer["class"],
            "reason": answer["class_reason"],
            "parting": answer["parting"],
            "fidelity": answer["fidelity"],
            "all": {key: device[key] for key in keep},
        }


def values(of):
    """The figures of a prediction, in the order of COMPARED."""
    found = []
    for _, _, path in COMPARED:
        at = of
        for key in path:
            at = at[key]
        found.append(at)
    return found


def measured(statistics):
    return [statistics.get(name, 0) for _, name, _ in COMPARED]


def judge(prediction, recorded_ended, real):
    """(kind of the cell, whether the prediction is right, the prediction, the real values).

    Kinds: "exact" - the whole run; "until" - exact up to an out-of-memory that the recorded run did not have;
    "at least" - the trace ends in an out-of-memory that does not happen here; "estimate".
    """
    parting = prediction["parting"]
    whole = [recorded_ended, *values(prediction["all"])]
    if prediction["class"] == "exact":
        seen = [real["ended"], *measured(real["at_end"])]
        return "exact", whole == seen, whole, seen
    if prediction["class"] == "bound" and parting["kind"] == "fails":
        number = parting["failed_requests"] - 1
        at = real["at_ooms"][number] if number < len(real["at_ooms"]) else None
        if at is None and real["at_end"]["num_oom_rejections"] and number == 0:
            at = real["at_end"]  # throw_on_cudamalloc_oom: only the program learns of it
        wanted = ["oom", *values(parting)]
        seen = ["oom", *measured(at)] if at else [real["ended"], *measured(real["at_end"])]
        return "until", wanted == seen, wanted, seen
    if prediction["class"] == "bound":
        wanted = values(parting)
        seen = measured(real["at_end"])
        # Peaks and counts only grow, and until the OOM everything was equal.
        return "at least", all(a <= b for a, b in zip(wanted, seen, strict=True)), wanted, seen
    seen = [real["ended"], *measured(real["at_end"])]
    return "estimate", whole == seen, whole, seen


def pairs(cards):
    """Recorded cards, and the cards predicted from them: the same and larger ones."""
    names = list(cards)
    return [(source, target) for i, source in enumerate(names) for target in names[i:]]


def rows_of(program, cards, records, reals, jobs=1):
    """Predicts every cell of a program.

    `records`: (card, conf) -> (statistics, trace); `reals`: (card, conf) -> statistics.
    """
    tasks = [
        ((source, recorded), target, conf)
        for source, target in pairs(cards)
        for card, recorded in records
        if card == source
        for conf in SETTINGS
        if (target, conf) in reals
    ]
    predictors = {record: Prediction(trace) for record, (_, trace) in records.items()}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        predictions = pool.map(
            lambda task: predictors[task[0]].of(task[2], cards[task[1]] - cards[task[0][0]]), tasks
        )
        for (source, target, conf), prediction in zip(tasks, predictions, strict=True):
            kind, equal, wanted, seen = judge(prediction, records[source][0]["ended"], reals[target, conf])
            yield {
                "program": program,
                "from": source[0],
                "recorded": source[1],
                "on": target,
                "conf": conf,
                "kind": kind,
                "equal": equal,
                "predicted": wanted,
                "real": seen,
                "reason": prediction["reason"],
                "fidelity": prediction["fidelity"],
            }
