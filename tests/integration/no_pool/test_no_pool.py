"""Programs without a framework's pool: all device memory of every kind is in every sum.

A shortage is a genuine one.
"""

import json

import real_process
from real_process import ANALYZER, BUILD, GIB, MIB, environment

CLIENT = BUILD / "tests" / "integration" / "no_pool" / "no_pool_client"
HELD = 28 * 64 * MIB
CARD = "2GiB"  # the context uses 256 MiB, so 28 pieces fit and no more


class NoPool(real_process.RealProcessTest):
    def record(self, kind):
        done = self.run_well([CLIENT, kind], env=environment(CARD, record_to=self.folder))
        self.assertEqual(done.stdout, f"held {HELD if kind not in ('managed', 'host') else 0}\n")
        return self.only_trace()

    def assert_all_is_counted(self, kind, blocks=28, culprit="1.75 GiB"):
        trace = self.record(kind)
        report = self.report(trace)
        (device,) = report["devices"]
        all_of_it = dict.fromkeys(("requested", "allocated", "active", "reserved"), HELD)
        self.assertEqual(device["peak"], all_of_it)
        self.assertEqual(device["ooms"], 1)
        self.assertEqual(device["others_bytes"], 256 * MIB)
        (failure,) = report["ooms"]
        self.assertEqual((failure["verdict"], failure["requester"]), ("genuine", "program"))
        self.assertEqual(failure["allocated_bytes"], HELD)
        self.assertEqual(failure["reserved_bytes"], HELD)
        places = failure["holders"]["places"]
        self.assertEqual(sum(place["bytes"] for place in places), HELD)
        self.assertEqual(sum(place["blocks"] for place in places), blocks)
        # With debug information a file and a line, otherwise the program.
        line = rf"(in no_pool_client|no_pool/client\.c:\d+ \w+) holds {culprit}"
        self.assertRegex(device["conclusion"]["culprit"], line)
        # The other commands agree.
        (summary,) = json.loads(self.run_well([ANALYZER, "summarize", trace, "--json", "-"]).stdout)[
            "devices"
        ]
        self.assertEqual(summary["peak"], all_of_it)
        self.assertEqual(sum(line["bytes"] for line in summary["holders_at_peak"]), HELD)
        text = self.run_well([ANALYZER, trace]).stdout
        self.assertIn("1.75 GiB allocated, 1.75 GiB reserved", text)
        self.assertNotIn("No GPU memory", text)
        page = self.folder / "page.html"
        self.run_well([ANALYZER, trace, "--html", page])
        return device

    def test_unmapped_physical_memory_counts(self):
        self.assert_all_is_counted("created")

    def test_mapped_physical_memory_counts(self):
        self.assert_all_is_counted("mapped")

    def test_released_memory_counts_while_it_is_mapped(self):
        self.assert_all_is_counted("released")

    def test_a_second_mapping_does_not_count_again(self):
        self.assert_all_is_counted("mapped_twice")

    def test_unmapped_memory_counts_while_a_handle_is_retained(self):
        self.assert_all_is_counted("retained")

    def test_one_unmap_of_several_pieces_frees_each_of_them(self):
        device = self.assert_all_is_counted("unmapped", culprit="1.5 GiB of the 1.75 GiB")
        self.assertEqual(device["segments_freed"], 4)

    def test_arrays_count(self):
        self.assert_all_is_counted("arrays")

    def test_stream_ordered_memory_counts(self):
        self.assert_all_is_counted("stream_ordered")

    def test_linear_memory_counts(self):
        self.assert_all_is_counted("linear")

    def test_a_reset_ends_all_earlier_memory(self):
        self.assert_all_is_counted("reset")

    def test_a_program_with_only_managed_memory_is_reported_as_such(self):
        text = self.run_well([ANALYZER, self.record("managed")]).stdout
        self.assertIn("This process allocated no device memory, only managed memory: at most 64 MiB", text)

    def test_physical_host_memory_does_not_count_as_device_memory(self):
        text = self.run_well([ANALYZER, self.record("host")]).stdout
        self.assertIn("This process allocated no GPU memory.", text)

    def test_a_slightly_larger_card_serves_the_refused_request(self):
        """The same program is not refused on a card with room for one more piece."""
        done = real_process.run([CLIENT, "mapped"], env=environment("2112MiB"))
        self.assertEqual((done.returncode, done.stdout), (1, "one more request: 0\n"))
        self.assertLess(HELD, 2 * GIB)


if __name__ == "__main__":
    real_process.main()
