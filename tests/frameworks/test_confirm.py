"""Exact what-if rows agree with real runs: scripts/scenarios/confirm on its shortest scenarios."""

import json
import os
import pathlib
import re
import sys
import types

import real_process
from real_process import BUILD, SOURCE, TORCH_PYTHON

SCENARIOS = SOURCE / "scripts/scenarios"
SHORT = ("three_pieces", "pinned_loader")
sys.path[:0] = [str(SCENARIOS), str(SOURCE / "tests/matrix")]

from confirm_rows import Confirmer
from scenario_runner import Runner
from scenario_table import SCENARIOS as TABLE


class WrongByOneBlock(Runner):
    """An analyzer that reports one row with an error of 512 bytes."""

    CONF = "large_segment_size_mb:64"

    def analyzer(self, *arguments):
        said = super().analyzer(*arguments)
        if arguments[0] != "whatif":
            return said
        told = json.loads(said)
        # The other rows are confirmed by the other test.
        told["whatif"] = [row for row in told["whatif"] if row["recorded"] or row["config"] == self.CONF]
        told["capacity_scans"] = []
        for row in told["whatif"]:
            row["peak_reserved_bytes"] += 512 * (row["config"] == self.CONF)
        return json.dumps(told)


class NeverEmptied(Runner):
    """An analyzer whose dump has more blocks than a run ever has, so no instant is met."""

    ROW = "empty_cache() before each step"

    def analyzer(self, *arguments):
        said = super().analyzer(*arguments)
        if arguments[0] == "dump":
            return 1000 * "0 0 gpu0 block_alloc\n" + said
        if arguments[0] != "whatif":
            return said
        told = json.loads(said)
        told["whatif"] = [row for row in told["whatif"] if row["recorded"] or row["name"] == self.ROW]
        told["capacity_scans"] = []
        return json.dumps(told)


class Confirm(real_process.RealProcessTest):
    def test_exact_rows_agree_with_real_runs(self):
        said = self.run_well(
            [sys.executable, SCENARIOS / "confirm", *SHORT, "--python", TORCH_PYTHON, "--build", BUILD],
            timeout=800,
            env=dict(os.environ),
        ).stdout
        judged = re.findall(r"^(ok|WRONG) +(exact|bound) .* {3}(\S.*)$", said, re.MULTILINE)
        self.assertGreater(len(judged), 40, said)
        names = {name for _, _, name in judged}
        for kind in (
            "default settings",
            "expandable_segments:True",
            "a card of 4 GiB",
            "PYTORCH_NO_CUDA_MEMORY_CACHING=1",
            "empty_cache() before each step",
        ):
            self.assertIn(kind, names)
        self.assertTrue({kind for _, kind, _ in judged} == {"exact", "bound"})

    def test_a_row_with_an_error_of_512_bytes_is_found(self):
        self.assertEqual(
            self.judged(WrongByOneBlock), {"default settings": True, WrongByOneBlock.CONF: False}
        )

    def test_a_row_whose_instants_are_not_met_is_found(self):
        self.assertEqual(self.judged(NeverEmptied), {"default settings": True, NeverEmptied.ROW: False})

    def judged(self, kind):
        """The rows of the shortest scenario as reported by an analyzer, and whether they are right."""
        runner = kind(
            types.SimpleNamespace(python=TORCH_PYTHON, build=BUILD, install=False), pathlib.Path(self.folder)
        )
        with Confirmer(runner, TABLE["three_pieces"], TORCH_PYTHON) as confirmer:
            return {row["name"]: row["equal"] for row in confirmer.confirm()}


if __name__ == "__main__":
    real_process.main()
