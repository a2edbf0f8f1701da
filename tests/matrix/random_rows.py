"""Compares random programs with their predictions.

Each program is recorded on one card under one setting. The analyzer predicts other rows (setting, card) from
the trace, and each row is run for real (docs/fidelity.md).
"""

import random
import shutil

import matrix
import random_plan

PROGRAM = matrix.HERE / "random_program.py"
ROWS = 12  # per program
SETTINGS = matrix.SETTINGS


def cards_of(statistics):
    """The three cards of the matrix, and one on which the program runs out of memory under any setting."""
    cards = matrix.cards_of(statistics)
    live = statistics["at_end"]["active_bytes.all.peak"] // matrix.MIB
    cards = {"short": matrix.CONTEXT_MIB + live * 4 // 5, **cards}
    return {name: max(matrix.CONTEXT_MIB + 4, size) for name, size in cards.items()}


def loses_pool(folder):
    """Whether PyTorch lost count of a private pool in a run, which may crash it (docs/metrics.md)."""
    for trace in folder.glob("*.ftrace"):
        parting = matrix.replayed(trace)["parting"]
        if parting and parting["kind"] == "pool_lost":
            return True
    return False


class Checker:
    """Two warm processes that run programs, with and without the recorder."""

    def __init__(self, features=None):
        self.features = list(features or random_plan.FEATURES)
        self.plain = matrix.Torch(recorded=False)
        self.recording = matrix.Torch(recorded=True)

    def close(self):
        self.plain.close()
        self.recording.close()

    def check(self, seed, folder, rows=ROWS):
        """Checks one program. `folder` is emptied first, and then has the trace.

        Raises RuntimeError if a run ends in another way than normally or out of memory.
        """
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        arguments = [str(seed), ",".join(self.features)]

        def run(process, card, conf, into=folder):
            return process.run_file(
                PROGRAM, f"{card}MiB", conf, into, arguments=arguments, output=str(folder / "printed.txt")
            )

        choice = random.Random(f"rows {seed}")
        cards = cards_of(run(self.plain, 16384, "")[0])
        card, conf = choice.choice(list(cards)), choice.choice(SETTINGS)
        try:
            recorded, trace = run(self.recording, cards[card], conf)
        except RuntimeError as failed:
            if loses_pool(folder):
                return {"seed": seed, "features": self.features, "lost_pool": str(failed)}
            raise
        others = [(on, under) for on in cards for under in SETTINGS if (on, under) != (card, conf)]
        predictor, found = matrix.Prediction(trace), []
        for on, under in [(card, conf), *choice.sample(others, rows - 1)]:
            more = cards[on] - cards[card]
            if predictor.capacity + more * matrix.MIB <= 0:
                continue  # memory allocated outside the pool at the end leaves no room on this card
            prediction = predictor.of(under, more)
            row = {
                "card": on,
                "conf": under,
                "kind": "estimate",
                "equal": None,
                "reason": prediction["reason"],
                "fidelity": prediction["fidelity"]["reason"],
            }
            real = None
            if prediction["class"] != "estimate":
                real = self.run_row(run, cards[on], under, folder)
                row["lost_pool"] = real is None
            if real is not None:
                kind, equal, wanted, seen = matrix.judge(prediction, recorded["ended"], real)
                row.update(kind=kind, equal=equal, ended=seen[0] if kind != "at least" else "")
                if not equal:
                    row.update(predicted=wanted, real=seen)
            found.append(row)
        return {
            "seed": seed,
            "features": self.features,
            "uses": self.uses(seed),
            "cards": cards,
            "card": card,
            "conf": conf,
            "ended": recorded["ended"],
            "trace": str(trace),
            "rows": found,
        }

    def run_row(self, run, card, conf, folder):
        """A real run without the recorder. None if PyTorch loses a private pool and crashes."""
        try:
            return run(self.plain, card, conf)[0]
        except RuntimeError:
            crashed = folder / "crashed"
            shutil.rmtree(crashed, ignore_errors=True)
            try:
                run(self.recording, card, conf, crashed)
            except RuntimeError:
                if loses_pool(crashed):
                    shutil.rmtree(crashed)
                    return None
            raise

    def uses(self, seed):
        plan = random_plan.Plan(seed, self.features)
        return [name for name in random_plan.FEATURES if name in plan.has]
