"""Checks every JSON document of fraganalyze against docs/schema in both directions.

A key that a schema lacks is found, and so is a property that no document has.
"""

import copy
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys

import json_schema
import real_process
from real_process import ANALYZER, SOURCE, environment

STEPS_CLIENT = pathlib.Path(__file__).with_name("client.py")
CONTROL_CLIENT = SOURCE / "tests" / "integration" / "control" / "client.py"
CARDS_CLIENT = real_process.BUILD / "tests" / "integration" / "vgpu" / "vgpu_cards_client"
MESSAGES = SOURCE / "tests" / "fuzz" / "corpus" / "explain"
APPROVED = SOURCE / "tests" / "golden" / "expected"
APPROVED_SUMMARIES = SOURCE / "tests" / "format" / "golden"
KEPT = pathlib.Path(os.environ["FRAGTRACE_KEPT_REPORTS"])
GOLDEN = pathlib.Path(os.environ["FRAGTRACE_GOLDEN_REPORTS"])

BFC_DUMP = """\
W bfc_allocator.cc:456] Allocator (GPU_0_bfc) ran out of memory trying to allocate 8.0KiB (rounded to 8192)
I bfc_allocator.cc:1046] InUse at 7f0000000000 of size 4096 next 1
I bfc_allocator.cc:1046] Free  at 7f0000001000 of size 4096 next 2
I bfc_allocator.cc:1058] total_region_allocated_bytes_: 8192 memory_limit_: 8192 available bytes: 0
Stats:
Limit:                        8192
InUse:                        4096
LargestFreeBlock:             4096
largest free chunk usable by lower end 4096
"""

# Objects may lack these: properties that only some runs or some rows have.
MAY_BE_ABSENT = {
    "report": {"fidelity", "config", "pool", "capacity_bytes"},
    "process_summaries": {"unreadable"},
    "process_summaries#/properties/process_summaries/items": {
        "alive_ns",
        "analyzer_version",
        "boot_id",
        "pid_namespace",
        "contexts",
        "end_ns",
        "signal_seen_ns",
    },
    "common#/$defs/request": {"released_bytes", "driver_ns", "holders"},
    "common#/$defs/whatif/items": {"empties_cache", "cost"},
    "explain#/properties/messages/items/properties/figures": "all",
}


def objects(value):
    """All objects of a document."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, (dict, list)):
            yield from objects(part)


class Documents(real_process.RealProcessTest):
    """The documents of all commands, from recorded traces, approved files and reports of C++ tests."""

    def check(self, *command, expected=0):
        """Runs fraganalyze with JSON on standard output; real_process.run() validates it."""
        return self.run_well([ANALYZER, *command, "--json", "-"], expected).stdout

    def record(self, client, *steps, card="1GiB,context=128MiB", **variables):
        before = real_process.traces(self.folder)
        self.run_well(
            [sys.executable, client, *steps],
            env=environment(card, self.folder, PYTHONPATH=SOURCE / "preload/python", **variables),
        )
        (new,) = set(real_process.traces(self.folder)) - set(before)
        return new

    def check_recorded(self):
        steps = self.record(STEPS_CLIENT, real_process.MIB, RANK=0, WORLD_SIZE=3)
        larger = self.record(STEPS_CLIENT, 2 * real_process.MIB, RANK=2, WORLD_SIZE=3)
        other = self.record(
            CONTROL_CLIENT,
            "alloc=4194304",
            "stop",
            "free",
            "alloc=8192",
            "start",
            "refused",
            RANK=1,
            WORLD_SIZE=3,
        )
        for trace in (steps, other):
            for command in ([], ["replay"], ["whatif"], ["summarize"], ["validate"]):
                self.check(*command, trace)
        self.check("compare", other, steps)
        self.check("compare", steps, larger)
        self.check("replay", larger, "--capacity", "64MiB")
        summary = self.folder / "summary.json"
        self.run_well([ANALYZER, "summarize", steps, "--json", summary])
        self.check("compare", summary, steps)
        self.check("check", steps, "--no-oom", "--baseline", summary, expected=1)
        self.check("list", self.folder)
        self.check(steps, other)
        (self.folder / "bad.ftrace").write_text("no trace")
        self.check(self.folder, expected=2)
        self.check("summarize", self.folder, expected=2)

    def check_pool(self):
        """PyTorch's pool, from the traces of simulated programs."""
        for name in ("stream_bound", "retry"):
            for command in ("replay", "whatif", "validate"):
                self.check(command, GOLDEN / f"{name}.ftrace")
        self.check(GOLDEN / "leak.ftrace", "--categories", "transformers")
        self.check("compare", GOLDEN / "leak.ftrace", GOLDEN / "leak_ahead.ftrace", "--batch", "8,16")

    def check_tried(self):
        """What `fragtrace try` keeps beside a trace."""
        trace = self.record(CONTROL_CLIENT, "alloc=4194304")
        lines = [{"what": "retries", "predicted": "none", "outcome": "1", "held": False}]
        kept = {
            "start_unix_ns": json.loads(self.check(trace))["source"]["start_unix_ns"],
            "trials": [
                {"device": 0, "change": "max_split_size_mb:20", "note": "", "lines": lines},
                {"device": 0, "change": "max_split_size_mb:64", "note": "another card", "lines": []},
            ],
        }
        pathlib.Path(f"{trace}.tried.json").write_text(json.dumps(kept))
        tried = json.loads(self.check(trace))["devices"][0]["tried"]
        self.assertEqual([one["held"] for one in tried], [None, False])
        self.assertEqual(tried[1]["outcome"], "retries 1, NOT none as predicted")

    def check_summaries(self):
        """A job of made-up processes, from the summary of a real one."""
        trace = self.record(CONTROL_CLIENT, "alloc=4194304", "refused", RANK=0, WORLD_SIZE=4)
        file = self.folder / "process.json"
        self.run_well([ANALYZER, "summarize", trace, "-o", file])
        document = json.loads(file.read_bytes())
        self.assertEqual(json_schema.schemas().problems("process_summaries", document), [])
        (first,) = document["process_summaries"]
        (device,) = first["devices"]
        self.assertTrue(device["failures"] and device["holders_at_peak"] and device["curve"])
        row = {"ooms": 0, "retries": 0, "peak_reserved_bytes": 8 << 20, "usable": True, "recorded": False}
        row |= {"gets_past": False, "rest_fits": None, "class": "exact"}
        device |= {
            "pool_blocks": True,
            "settings": [
                row | {"name": "recorded", "recorded": True, "ooms": 1, "total_bytes": None},
                row | {"name": "helps", "total_bytes": None},
            ],
            "cards": [row | {"name": "a card of 4 GiB", "total_bytes": 4 << 30}],
        }
        first |= {"replayed": True, "generation": 1, "ancestors": [[1, 2]], "job_id": "11"}
        well = device | {
            "ooms": 0,
            "first_oom_ns": None,
            "final_oom_ns": None,
            "near_end_oom_ns": None,
            "failures": [],
            "uuid": "GPU-other",
        }
        well["peak"] = dict.fromkeys(device["peak"], 40 << 20)
        well["holders_at_peak"] = [device["holders_at_peak"][0] | {"bytes": 40 << 20}]
        other = first | {"rank": 1, "process": 1, "file": "b.ftrace", "session": [1, 1]}
        killed = {"ended": "killed", "exit_code": None, "signal": 15}
        made = [
            first,
            other | {"devices": [well], **killed},
            other | {"host": "other", "rank": 2, "process": 2, "file": "c.ftrace", "session": [1, 2]},
            other | {"rank": 3, "process": 3, "file": "d.ftrace", "session": [1, 3]},
            other | {"process": 4, "file": "e.ftrace", "session": [1, 4], "job_id": "12"},
            # A process without a rank that failed before the out-of-memory.
            other
            | {"process": 5, "file": "f.ftrace", "session": [1, 5], "rank": None, "devices": [well]}
            | {"ended": "normal", "exit_code": 1, "last_event_ns": 0, "end_ns": 1},
            # One of another host, whose clock may differ.
            other
            | {
                "process": 6,
                "file": "g.ftrace",
                "session": [1, 6],
                "rank": 6,
                "devices": [well],
                "host": "far",
                "boot_id": "another",
            }
            | {"ended": "normal", "exit_code": 1, "last_event_ns": 0, "end_ns": 1},
        ]
        unreadable = [{"file": "bad.ftrace", "reason": "bad.ftrace: is not a trace"}]
        whole = {"schema": 1, "process_summaries": made, "unreadable": unreadable}
        self.assertEqual(json_schema.schemas().problems("process_summaries", whole), [])
        file.write_text(
            '{"schema":1,"process_summaries":[' + ",\n".join(json.dumps(one) for one in made) + "]}"
        )
        self.check(file)
        # Only one rank runs out of memory, and the others need less.
        failure = device["failures"][0] | {"requested_bytes": 60 << 20}
        made = [first | {"devices": [device | {"failures": [failure]}]}]
        for rank in range(1, 4):
            own = {"rank": rank, "process": rank, "file": f"{rank}.ftrace", "session": [1, rank]}
            made.append(other | own | {"devices": [well]})
        file.write_text(json.dumps({"schema": 1, "process_summaries": made}))
        self.check(file)

    def check_shared_card(self):
        """A job of three processes on one card: one holds memory, one only a context, the third fails."""
        folder = self.folder / "shared"
        folder.mkdir()
        env = environment(f"1GiB,shared=schema{os.getpid()}", folder)
        holder = subprocess.Popen(
            [sys.executable, CONTROL_CLIENT, "alloc=4194304", "write", "sleep=60"],
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        idle = subprocess.Popen(
            [CARDS_CLIENT, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        try:
            self.assertEqual(holder.stdout.readline(), "write 0\n")
            self.assertEqual(idle.stdout.readline(), "ready\n")
            self.run_well([sys.executable, CONTROL_CLIENT, "alloc=4194304", "refused"], env=env)
        finally:
            holder.kill()
            holder.communicate()
            idle.communicate()
        self.check(folder)

    def check_others(self):
        state = self.folder / "state.pickle"
        state.write_bytes(pickle.dumps({"segments": [], "device_traces": [], "allocator_settings": {}}))
        self.check("list", state)
        plan = self.folder / "plan.csv"
        plan.write_text("id,lower,upper,size,offset\na,0,2,10,0\nb,1,3,10,10\n")
        self.check("validate", plan)
        log = self.folder / "log"
        log.write_text(BFC_DUMP + "".join(file.read_text() for file in sorted(MESSAGES.iterdir())))
        self.check("explain", log)
        process = subprocess.Popen(
            [sys.executable, CONTROL_CLIENT, "alloc=4096", "write", "sleep=60"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment("1GiB", self.folder),
        )
        try:
            self.assertEqual(process.stdout.readline(), "write 0\n")
            self.run_well([ANALYZER, "top", process.pid, "--once", "--json"])
        finally:
            process.kill()
            process.communicate()

    def check_machine(self):
        self.run_well([real_process.LAUNCHER, "doctor", "--json", "--", "true"])

    def check_files(self):
        """Approved files, and the reports of C++ tests."""
        reports = [*APPROVED.glob("*.json"), *GOLDEN.glob("*.json"), *KEPT.glob("*.json")]
        self.assertGreater(len(reports), 100)
        summaries = list(APPROVED_SUMMARIES.glob("*.summary.json"))
        self.assertTrue(summaries)
        for kind, files in (("report", reports), ("summarize", summaries)):
            for file in files:
                document = json.loads(file.read_bytes())
                self.assertEqual(json_schema.schemas().problems(kind, document), [], file)

    def test_all_documents_are_valid_and_have_every_property(self):
        self.check_recorded()
        self.check_pool()
        self.check_tried()
        self.check_summaries()
        self.check_shared_card()
        self.check_others()
        self.check_machine()
        self.check_files()
        self.assertEqual(json_schema.schemas().unseen(), [])

    def test_every_command_with_json_is_known(self):
        commands = re.findall(
            r"^  ([a-z]+) ", self.run_well([ANALYZER, "--help"]).stdout.partition("Commands")[2], re.MULTILINE
        )
        self.assertGreater(len(commands), 10)
        with_json = {
            command for command in commands if "--json" in self.run_well([ANALYZER, command, "--help"]).stdout
        }
        self.assertEqual(with_json, set(json_schema.COMMANDS))


class Schemas(real_process.RealProcessTest):
    def test_each_schema_file_is_a_valid_schema(self):
        for name in [*json_schema.names(), "common"]:
            with self.subTest(name):
                json_schema.jsonschema.Draft202012Validator.check_schema(json_schema.load(name))
        shared = json_schema.load("common")["$defs"]
        for name in json_schema.names():
            self.assertEqual(shared.keys() & json_schema.load(name).get("$defs", {}).keys(), set())

    def test_every_object_is_closed_and_complete_and_every_property_is_described(self):
        found = {}
        for name in ["common", *json_schema.names()]:
            schema, described = json_schema.load(name), json_schema.whole(name)["$defs"]
            for place, known in json_schema.tables(schema):
                owner = schema
                for word in place.split("/")[1:-1]:
                    owner = owner[int(word) if isinstance(owner, list) else word]
                if "$ref" in owner:
                    continue  # of a shared object: some properties are not used here
                place = f"{name}#{place.rpartition('/')[0]}".rstrip("#")
                with self.subTest(place):
                    self.assertIs(owner["additionalProperties"], False)
                    optional = known.keys() - set(owner.get("required", ()))
                    found |= {place: optional} if optional else {}
                    for key, one in known.items():
                        reference = one.get("$ref", "").rpartition("/")[2]
                        text = one.get("description") or described[reference]["description"]
                        self.assertRegex(text, r"\.$", key)
        self.assertEqual(
            {place: "all" if MAY_BE_ABSENT.get(place) == "all" else keys for place, keys in found.items()},
            MAY_BE_ABSENT,
        )

    def test_an_extra_or_missing_key_is_found(self):
        whole = json.loads((APPROVED / "out_of_memory.json").read_bytes())
        del whole["whatif"][1:], whole["advice"][1:]  # all rows are alike
        maps = (whole["facts"], whole["symbols"]["unnamed_addresses"])  # their keys are arbitrary
        may_be_absent = set().union(*(keys for keys in MAY_BE_ABSENT.values() if keys != "all"))
        schemas = json_schema.Schemas()
        looked_at = set()
        for number, one in enumerate(objects(whole)):
            if frozenset(one) in looked_at or any(one is other for other in maps):
                continue  # objects with the same keys are alike
            looked_at.add(frozenset(one))
            needed = [key for key in one if key not in may_be_absent]
            for more, less in [("more", None), (None, needed[0]), (None, needed[-1])]:
                changed = copy.deepcopy(whole)
                at = list(objects(changed))[number]
                at.pop(less, None)
                at.update({more: 1} if more else {})
                with self.subTest(keys=list(one)[:4], more=more, less=less):
                    self.assertNotEqual(schemas.problems("report", changed), [])
        self.assertGreater(len(looked_at), 30)

    def test_a_property_that_no_document_has_is_named(self):
        known = json_schema.load("list")["properties"]
        known["never"] = {"type": "null"}
        self.addCleanup(known.pop, "never")
        schemas = json_schema.Schemas()
        self.assertEqual(schemas.problems("list", {"schema": 1, "traces": [], "unreadable": []}), [])
        unseen = schemas.unseen()
        self.assertIn("list#/properties/never", unseen)
        self.assertNotIn("list#/properties/traces", unseen)


if __name__ == "__main__":
    if json_schema.jsonschema is None:
        print(json_schema.MISSING)
        sys.exit(77)
    real_process.main()
