"""The text of `fragtrace top --serve`, read by Prometheus' own Python client."""

import contextlib
import sys

import test_tools

FOLDER = test_tools.folder_of("prometheus-client")
if FOLDER is not None:
    sys.path += [str(path) for path in FOLDER.glob("lib/python3*/site-packages")]

import real_process
from metrics import get, recorded_process, server
from real_process import MIB


class Prometheus(real_process.RealProcessTest):
    def test_prometheus_reads_every_figure_with_its_labels(self):
        from prometheus_client.parser import text_string_to_metric_families

        with contextlib.ExitStack() as stack:
            recorded = recorded_process(self.folder, "alloc=4194304", "refused", RANK=1)
            process = stack.enter_context(recorded)
            _, port, _ = stack.enter_context(server(str(process.pid), "--serve", ":0"))
            families = {one.name: one for one in text_string_to_metric_families(get(port)[2])}
        gauges = {"allocated_bytes", "reserved_bytes", "largest_free_block_bytes", "headroom_bytes"}
        counters = {"retries", "ooms", "events", "events_lost"}
        self.assertEqual(set(families), {f"fragtrace_{name}" for name in gauges | counters})
        for name in gauges | counters:
            family = families[f"fragtrace_{name}"]
            self.assertEqual(family.type, "gauge" if name in gauges else "counter")
            self.assertTrue(family.documentation.endswith("."))
            (sample,) = family.samples
            labels = {"process": str(process.pid), "rank": "1"}
            if not name.startswith("events"):
                labels |= {"device": "0", "uuid": sample.labels["uuid"], "name": sample.labels["name"]}
                self.assertRegex(sample.labels["uuid"], r"\AGPU(-[0-9a-f]+){5}\Z")
                self.assertIn("1GiB", sample.labels["name"])
            self.assertEqual(sample.labels, labels)
        self.assertEqual(families["fragtrace_allocated_bytes"].samples[0].value, 4 * MIB)
        self.assertEqual(families["fragtrace_ooms"].samples[0].value, 1)


if __name__ == "__main__":
    if FOLDER is None:
        print(f"skipped: {test_tools.missing('prometheus-client')}")
        sys.exit(77)
    real_process.main()
