"""Names from a trace: no control character is printed, and anonymize leaves none of them.

Each test makes its file itself, so that the code shows why the file is hostile.
"""

import ctypes
import json
import pickle
import re
import struct
import unittest

from hostile import BASE, CARD, READING, SOURCE, Attacks, run
from trace_bytes import *


class Escapes(Attacks):
    """Text of a file reaches the terminal as text only."""

    EVIL = "x\x1b[31mRED\x1b]0;title\x07\nFAKE line\r\u202eturned\u2066\u0085\x9b1m"

    def evil_trace(self):
        trace = self.card()
        evil = self.EVIL
        trace.fact_lines(
            {
                "command_line": evil,
                "device.0.name": evil,
                "host": evil,
                "pool.1": evil,
                "text.1": evil,
                "torch_version": evil,
                "allocator_conf": evil,
                "allocator_backend": evil,
                "environment.PYTORCH_CUDA_ALLOC_CONF": evil,
                "executable": evil,
                "stacks.native": evil,
                "stacks.python": evil,
                "torch.pools": evil,
                "torch.captures": evil,
                "ring.storage": evil,
                "copy.reason": evil,
                "options.rejected": evil,
                "key" + evil: evil,
                "device.0.processes.1": evil,
                "cuda_driver_version": evil,
            }
        )
        trace.modules((0x1000, 0x2000, 0, "/lib/" + evil, b"id"))
        trace.code((1, 1, evil, evil))
        native = trace.stack_nodes([(0, 0x1800)])
        python = trace.stack_nodes([(0, 1 << 63 | 1 << 32)])
        trace.events(
            Event(64, size=1),
            Event(SETTINGS, size=1),
            Event(DEVICE_ALLOC, BASE, 20 << 20, flags=FROM_ALLOCATOR, native=native),
            Event(BLOCK_ALLOC, BASE, 5 << 20, 5 << 20, python=python, pool=1),
            Event(DEVICE_ALLOC, BASE + (40 << 20), 20 << 20, native=native),
            Event(55, size=1, extra=2),
            Event(65, size=1),
            Event(OUT_OF_MEMORY, size=40 << 30, extra=0, python=python),
        )
        return trace

    def check(self, *command, **options):
        result = run(*command, **options)
        with self.subTest(command=" ".join(map(repr, command[:1]))):
            for text in (result.out, result.err):
                self.assertNotIn(b"\x1b", text)
                self.assertNotIn(b"\x07", text)
                self.assertNotIn(b"\r", text)
                self.assertNotIn("\u202e".encode(), text)
                self.assertNotIn("\u2066".encode(), text)
                for line in text.split(b"\n"):
                    self.assertFalse(line.startswith(b"FAKE"), line)
                text.decode()
            self.assertNotIn(b"internal error", result.err)

    def test_no_control_character_of_a_trace_or_its_name_is_printed(self):
        path = self.evil_trace().save(self.folder / "evil\x1b[31m\nFAKE \u202e.ftrace")
        for command in READING:
            self.check(command[0], path, *command[1:])
        self.check(path)
        self.check(path, "--summary")
        self.check(self.folder)
        self.check("compare", path, path)
        self.check("summarize", self.folder)
        self.check("replay", path, "--pool", "none")

    def test_errors_quote_names_as_text(self):
        for name in ("no\x1b[31m\nFAKE", "no\u202e"):
            for command in (
                ["dump"],
                ["list"],
                ["check", "--no-oom"],
                ["plan"],
                ["validate"],
                ["explain"],
                [],
            ):
                self.check(*command, self.folder / name)
            self.check(name, name)
            self.check("--" + name)
            self.check("replay", self.folder / "x", "--pool", name)
            self.check("replay", self.folder / "x", "--capacity", name)

    def test_control_characters_in_a_log_are_not_printed_by_explain(self):
        log = self.folder / "log"
        log.write_text(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
            "of 15.00 GiB of which 1.00 GiB is free. " + self.EVIL + "\n"
        )
        self.check("explain", log)


class Anonymous(Attacks):
    SECRETS = ("alice", "/home/alice/secret", "gpu-node-17", "model_x", "train_gpt.py", "AKIA", "deadbeef")

    def named(self):
        trace = Trace(pid=4194303)
        trace.fact_lines(
            {
                "command_line": "python /home/alice/secret/train_gpt.py --key AKIA123",
                "executable": "/home/alice/secret/bin/python",
                "host": "gpu-node-17",
                "host.kernel": "6.1 alice",
                "working_directory": "/home/alice/secret",
                "environment.FRAGTRACE_OUTPUT": "/home/alice/secret",
                "environment.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
                "allocator_conf": "max_split_size_mb:64",
                "torch_version": "2.6.0+alice",
                "device.0.total_bytes": str(CARD),
                "device.0.name": "card of alice",
                "device.0.uuid": "GPU-deadbeef",
                "device.0.pci_bus_id": "deadbeef:00",
                "options.rejected": "alice",
                "stacks.native": "off: alice",
                "text.1": "model_x forward",
                "text.2": "model_x forward",
                "text.3": "garbage_collection_threshold:0.5",
                "pool.1": "pytorch 1,0",
                "pool.1.allocator": "/home/alice/secret/pool.so alice",
                "lost.ring_full": "3",
                "end.code": "0",
                "alice": "alice",
                "options.alice": "3",
                "torch.alice": "on /home/alice",
            }
        )
        trace.modules((0x1000, 0x2000, 0, "/home/alice/secret/lib.so", b"deadbeef"))
        trace.code(
            (1, 7, "model_x.forward", "/home/alice/secret/train_gpt.py"),
            (2, 8, "model_x.backward", "/home/alice/secret/train_gpt.py"),
            (3, 9, "alice", "/home/alice/venv/lib/python3.11/site-packages/torch/nn/x.py"),
        )
        native = trace.stack_nodes([(0, 0x1800)])
        python = trace.stack_nodes([(0, 1 << 63 | 1 << 32), (2, 1 << 63 | 2 << 32)])
        trace.events(
            Event(64, size=1, python=python),
            Event(DEVICE_ALLOC, BASE, 20 << 20, flags=FROM_ALLOCATOR, native=native),
            Event(BLOCK_ALLOC, BASE, 5000000, 5 << 20, python=python + 1, pool=1),
            Event(65, size=1),
            Event(SETTINGS, size=3),
            Event(OUT_OF_MEMORY, size=40 << 30, extra=0, python=python),
        )
        return trace.end()

    def raw(self, data):
        """The file with decompressed chunks."""
        library = ctypes.CDLL("libzstd.so.1")
        library.ZSTD_decompress.restype = ctypes.c_size_t
        result, at = data[:512], 512
        while at < len(data):
            _, _, compression, stored, raw = struct.unpack("<IHHII", data[at : at + 16])
            payload = data[at + 32 : at + 32 + stored]
            if compression:
                room = ctypes.create_string_buffer(raw)
                library.ZSTD_decompress(room, ctypes.c_size_t(raw), payload, ctypes.c_size_t(stored))
                payload = room.raw
            result += payload
            at += (32 + stored + 7) // 8 * 8
        return result

    def test_no_name_is_left_and_the_figures_stay(self):
        path = self.named().save(self.folder / "named.ftrace")
        sent = self.folder / "sent.ftrace"
        self.bounded("anonymize", path, sent, statuses=(0,))
        raw = self.raw(sent.read_bytes())
        for secret in self.SECRETS + (str(self.folder),):
            self.assertNotIn(secret.encode(), raw)
        for kept in (
            b"max_split_size_mb:64",
            b"pytorch 1,0",
            b"lost.ring_full",
            b"2.6.0",
            b"garbage_collection_threshold:0.5",
        ):
            self.assertIn(kept, raw)
        before, after = (
            json.loads(run("summarize", file, "--json", "-", "--no-stacks").out) for file in (path, sent)
        )
        self.assertEqual(before["devices"][0]["peak"], after["devices"][0]["peak"])
        columns = [
            [line.split(b" | ")[0] for line in run("dump", file).out.splitlines()] for file in (path, sent)
        ]
        self.assertEqual([line.replace(b"model_x forward", b"text_1") for line in columns[0]], columns[1])
        # Stacks keep their shape: each name has its own number.
        dump = run("dump", sent).out.decode()
        self.assertEqual(dump.count("program_1.py:7 function_1"), 2)
        self.assertIn("program_1.py:8 function_2", dump)

    def test_contents_that_only_the_ring_has_are_anonymized_too(self):
        ring = self.folder / "t.ring"
        trace = self.card(ring_path=ring)
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20))
        ring.write_bytes(
            trace.ring(
                [Event(DEVICE_ALLOC, BASE + (2 << 20), 2 << 20)],
                tail=1,
                facts=b"host\tgpu-node-17\nlost.ring_full\t5\n",
            )
        )
        path = trace.save(self.folder / "t.ftrace")
        before = path.read_bytes()
        sent = self.folder / "sent.ftrace"
        self.bounded("anonymize", path, sent, statuses=(0,))
        self.assertEqual(run("dump", sent).out.count(b"device_alloc"), 2)
        raw = self.raw(sent.read_bytes())
        self.assertNotIn(b"gpu-node-17", raw)
        self.assertIn(b"lost.ring_full\t5", raw)
        self.assertEqual(path.read_bytes(), before)
        self.assertTrue(ring.exists())

    def test_every_kind_of_loss_stays_in_an_anonymous_copy(self):
        page = (SOURCE / "docs" / "trace-format.md").read_text()
        keys = sorted(set(re.findall(r"`((?:lost|held|stacks)\.[a-z_]+|trace\.write_errors)`", page)))
        self.assertGreater(len(keys), 12)
        trace = self.card()
        facts = {key: str(number) for number, key in enumerate(keys, 3)}
        trace.facts(**{key.replace(".", "__"): value for key, value in facts.items()})
        trace.events(Event(DEVICE_ALLOC, BASE, 2 << 20))
        path, sent = trace.save(self.folder / "t.ftrace"), self.folder / "sent.ftrace"
        self.bounded("anonymize", path, sent, statuses=(0,))
        told = dict(
            line.split("\t")
            for line in run("dump", "--facts", sent).out.decode().splitlines()
            if "\t" in line
        )
        self.assertEqual({key: told.get(key) for key in facts}, facts)

    def test_a_snapshot_and_a_foreign_file_are_refused(self):
        path = self.folder / "s.pickle"
        path.write_bytes(pickle.dumps({"segments": [], "device_traces": []}, 4))
        self.refused("anonymize", path, self.folder / "o", saying=b"snapshot")
        path.write_bytes(b"hello")
        self.refused("anonymize", path, self.folder / "o")


if __name__ == "__main__":
    unittest.main()
