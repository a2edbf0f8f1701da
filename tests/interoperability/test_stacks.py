"""Folded stacks and speedscope files have the report's bytes, and speedscope reads both.

speedscope runs in Chromium. The figures are those of the file that speedscope saves.
"""

import json
import pathlib
import re
import shutil
import unittest

import real_process
import recordings
from real_process import ANALYZER, MIB, TORCH_PYTHON

SPEEDSCOPE = pathlib.Path(__file__).resolve().parent / "speedscope.mjs"
HELD, WASTE, ALL = "held", "free memory that cannot be released", "allocated in all"


def stack_sums(profile, frames):
    """Bytes per stack of a profile that speedscope saved: a tuple of names, the outermost first."""
    sums, stack, last = {}, [], 0
    for event in profile["events"]:
        if stack and event["at"] > last:
            sums[tuple(stack)] = sums.get(tuple(stack), 0) + event["at"] - last
        last = event["at"]
        name = frames[event["frame"]]["name"]
        if event["type"] == "O":
            stack.append(name)
        else:
            assert stack.pop() == name, event
    assert not stack, stack
    return sums


def in_speedscope(test, file):
    """The profiles that speedscope has read from the file, by name: bytes per stack."""
    node = shutil.which("node")
    if node is None:
        test.skipTest("node is missing: apt-get install nodejs npm")
    done = real_process.run([node, SPEEDSCOPE, file])
    if done.returncode == 77:
        test.skipTest(done.stdout.strip())
    test.assert_status("speedscope", done, 0)
    saved = json.loads(done.stdout)
    return {profile["name"]: stack_sums(profile, saved["shared"]["frames"]) for profile in saved["profiles"]}


class Stacks(real_process.RealProcessTest):
    def export(self, trace, to, *arguments):
        file = self.folder / f"{len(list(self.folder.iterdir()))}.{to}"
        self.run_well([ANALYZER, "export", trace, "--to", to, "-o", file, *arguments])
        return file

    def folded(self, trace, *arguments):
        """Bytes per stack. Stacks of several threads may have the same text."""
        lines = self.export(trace, "folded", *arguments).read_text().splitlines()
        sums = {}
        for line in lines:
            stack, size = re.fullmatch(r"(.*\S) (\d+)", line).groups()
            sums[stack] = sums.get(stack, 0) + int(size)
        return sums

    def per_device(self, trace, *arguments):
        sums = [0, 0]
        for stack, size in self.folded(trace, *arguments).items():
            sums[int(re.match(r"device (\d);", stack).group(1))] += size
        return [size // MIB for size in sums]

    def assert_speedscope_agrees(self, trace):
        """Checks that all three quantities in speedscope are the folded ones, stack by stack."""
        profiles = in_speedscope(self, self.export(trace, "speedscope"))
        for quantity, words in (("holders", HELD), ("waste", WASTE), ("allocations", ALL)):
            found = {}
            for name, stacks in profiles.items():
                if name.split(": ")[1].split(" at event ")[0] == words:
                    for stack, size in stacks.items():
                        first = (name.split(":")[0],) if len(profiles) > 3 else ()
                        frames = [frame.replace(";", ":") for frame in first + stack]
                        frames[-1] = re.sub(r" (\d+)$", r"_\1", frames[-1])
                        key = ";".join(frames)
                        found[key] = found.get(key, 0) + size
            self.assertTrue(found == self.folded(trace, "--of", quantity), quantity)  # too long to print
        return profiles

    def test_the_bytes_of_two_devices_are_right_at_four_moments(self):
        trace = recordings.two_devices(self)
        report = self.report(trace)
        self.assertEqual([device["peak"]["allocated"] // MIB for device in report["devices"]], [300, 50])
        self.assertEqual([failed["allocated_bytes"] // MIB for failed in report["ooms"]], [50])
        self.assertEqual(self.per_device(trace), [200, 50])
        self.assertEqual(self.per_device(trace, "--at", "oom"), [200, 50])
        self.assertEqual(self.per_device(trace, "--at", "peak"), [300, 0])
        self.assertEqual(self.per_device(trace, "--at", "end"), [0, 50])
        self.assertEqual(self.per_device(trace, "--at", "1000s"), [0, 50])
        self.assertEqual(self.per_device(trace, "--of", "allocations"), [400, 50])
        self.assertEqual(self.folded(trace, "--of", "waste"), {})

    def test_names_with_separators_stay_one_frame(self):
        stacks = "\n".join(self.folded(recordings.two_devices(self), "--of", "allocations"))
        self.assertIn(";first:of two (/made up/first:of two.py:", stacks)
        self.assertIn(';=HYPERLINK("a,b") (/made up/=HYPERLINK("a,b").py:', stacks)

    def test_speedscope_reads_two_devices(self):
        profiles = self.assert_speedscope_agrees(recordings.two_devices(self))
        self.assertEqual(len(profiles), 6)

    def test_speedscope_reads_folded_lines(self):
        file = self.export(recordings.two_devices(self), "folded", "--of", "allocations")
        ((_, stacks),) = in_speedscope(self, file).items()
        self.assertEqual(sum(stacks.values()), 450 * MIB)

    def test_a_block_of_a_snapshot_that_waits_for_a_stream_is_included(self):
        snapshot = recordings.snapshot(self)
        (device,) = self.report(snapshot)["devices"]
        self.assertEqual(device["peak"]["active"], 5 * MIB)
        self.assertEqual(
            self.folded(snapshot),
            {
                "main (/made up/train.py:34);allocate (/made up/model.py:12)": 3 * MIB,
                "unknown": 2 * MIB,
            },
        )
        self.assertEqual(sum(self.folded(snapshot, "--of", "waste").values()), 15 * MIB)
        self.assertEqual(device["waste_at_peak"]["inactive_split"], 15 * MIB)
        self.assertEqual(self.folded(snapshot, "--of", "allocations"), {})
        self.assert_speedscope_agrees(snapshot)

    @unittest.skipUnless(TORCH_PYTHON, recordings.NO_TORCH)
    def test_the_stacks_of_pytorch_and_its_snapshots_agree_with_the_report(self):
        trace, snapshots = recordings.torch_training(self)
        self.assert_pytorch(trace)
        self.assert_speedscope_agrees(trace)
        self.assertGreaterEqual(set(snapshots), {"whole", "state"})
        for snapshot in snapshots.values():
            self.assert_pytorch(snapshot)

    def assert_pytorch(self, trace):
        report = self.report(trace)
        (device,) = report["devices"]

        def all_bytes(*arguments):
            return sum(self.folded(trace, *arguments).values())

        if report["ooms"]:
            failed = report["ooms"][0]
            self.assertGreaterEqual(all_bytes(), failed["allocated_bytes"])
            self.assertLessEqual(all_bytes(), failed["reserved_bytes"] - failed["free_bytes"])
            culprits = failed["culprits"]
            if len(culprits) < 20:  # the report lists the first 20
                blocked = sum(one["held_open_bytes"] for one in culprits)
                self.assertEqual(all_bytes("--of", "waste", "--at", "oom"), blocked)
        at_peak = all_bytes("--at", "peak")
        self.assertGreaterEqual(at_peak, device["peak"]["allocated"])
        self.assertLessEqual(at_peak, device["peak"]["active"])
        self.assertEqual(all_bytes("--of", "allocations"), self.allocated_in_all(trace))

    def allocated_in_all(self, trace):
        """Bytes of all blocks that were allocated outside checkpoints, from the dump."""
        total, listed = 0, False
        for line in self.events(trace):
            kind = line.split()[3] if len(line.split()) > 3 else ""
            listed = (listed or " checkpoint_begin" in line) and " checkpoint_end" not in line
            if kind == "block_alloc" and not listed:
                total += int(re.search(r" bytes=(\d+)", line).group(1))
        return total

    def test_wrong_options_are_refused(self):
        snapshot = recordings.snapshot(self)
        for arguments, words in (
            (["--to", "no"], "--to no: is no format"),
            (["--to", "folded", "--of", "x"], "must be holders, waste or allocations"),
            (["--to", "folded", "--at", "soon"], "must be peak, oom, end or seconds"),
            (["--to", "folded", "--at", "oom"], "has no out-of-memory"),
        ):
            with self.subTest(arguments):
                done = self.run_well(
                    [ANALYZER, "export", snapshot, "-o", self.folder / "x", *arguments], expected=2
                )
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    real_process.main()
