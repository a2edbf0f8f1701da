"""Facts about devices, contexts and other processes, and the events that they belong to."""

import os
import sys

import real_process
from real_process import GIB, MIB, environment

PROGRAM = real_process.SOURCE / "tests" / "integration" / "hooks" / "families.py"


class Facts(real_process.RealProcessTest):
    def facts_of(self, scene, card="4GiB", **variables):
        self.run_well(
            [sys.executable, PROGRAM, scene, "driver"],
            env=environment(card, record_to=self.folder, **variables),
        )
        trace = self.only_trace()
        lines = self.run_well([real_process.ANALYZER, "dump", trace, "--facts"]).stdout.splitlines()
        return dict(line.split("\t", 1) for line in lines if "\t" in line), trace

    def test_a_device_is_recorded_with_its_identity(self):
        facts, _ = self.facts_of("device")
        self.assertRegex(facts["device.0.uuid"], r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertRegex(facts["device.0.pci_bus_id"], r"^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:")
        self.assertRegex(facts["device.0.compute_capability"], r"^\d+\.\d+$")
        self.assertEqual(facts["device.0.mig"], "0")

    def test_the_memory_of_the_context_is_measured_and_the_method_named(self):
        facts, _ = self.facts_of("device")
        self.assertEqual(facts["device.0.context_bytes"], str(256 * MIB))
        self.assertEqual(facts["device.0.context_bytes.measured"], "NVML before and after its creation")

    def test_contexts_and_pools_beyond_the_tables_are_counted_and_reported(self):
        facts, trace = self.facts_of("full_tables", card="4GiB,context=0")
        self.assertEqual(facts["tables.without_room"], str(259 - 256 + 300 - 256))
        self.assertIn("47 contexts, pools, allocators", "\n".join(self.report(trace)["warnings"]))

    def test_other_processes_do_not_change_the_measure_of_the_context(self):
        facts, _ = self.facts_of("device", FRAGTRACE_VIRTUAL_GPU_CARDS=f"facts-{os.getpid()}")
        self.assertEqual(facts["device.0.context_bytes"], str(256 * MIB))
        measured = "NVML for this process, after its creation"
        self.assertEqual(facts["device.0.context_bytes.measured"], measured)

    def test_a_refusal_records_the_memory_of_other_processes(self):
        facts, trace = self.facts_of("device", FRAGTRACE_VIRTUAL_GPU_PROCESSES=f"4242:{GIB},77:{MIB}")
        said = facts["device.0.processes.1"]
        words = said.split()
        self.assertEqual(words[0], "event")
        refused = [line for line in self.events(trace) if "alloc_refused" in line]
        self.assertEqual(len(refused), 1)
        self.assertIn(f"used {GIB + MIB + 256 * MIB} ", said)
        self.assertTrue(said.endswith(f", 4242 {GIB}, 77 {MIB}"), said)

    def test_a_burst_of_refusals_records_other_processes_only_now_and_then(self):
        facts, _ = self.facts_of("refusals", FRAGTRACE_VIRTUAL_GPU_PROCESSES=f"4242:{GIB}")
        self.assertIn("device.0.processes.1", facts)
        self.assertLess(len([key for key in facts if key.startswith("device.0.processes.")]), 50)

    def test_without_other_processes_none_is_listed(self):
        facts, _ = self.facts_of("device")
        self.assertNotIn(", ", facts["device.0.processes.1"])


if __name__ == "__main__":
    real_process.main()
