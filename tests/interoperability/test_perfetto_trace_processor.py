"""fraganalyze export --to perfetto, read with Perfetto's trace processor.

The program is a download (https://get.perfetto.dev/trace_processor). FRAGTRACE_TRACE_PROCESSOR names it, or
it is on the path as trace_processor_shell.
"""

import os
import pathlib
import shutil

import perfetto_trace
import real_process
from real_process import ANALYZER, SOURCE

RECORDING = SOURCE / "tests" / "format" / "golden" / "v1-killed.ftrace"
PROGRAM = os.environ.get("FRAGTRACE_TRACE_PROCESSOR") or shutil.which("trace_processor_shell")


class TraceProcessor(real_process.RealProcessTest):
    def test_the_trace_processor_finds_the_peaks_of_the_report(self):
        if perfetto_trace.protos is None:
            self.skipTest(perfetto_trace.MISSING)
        if not PROGRAM or not pathlib.Path(PROGRAM).is_file():
            self.skipTest("Perfetto's trace processor is not there (FRAGTRACE_TRACE_PROCESSOR)")
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

        file = self.folder / "exported.perfetto-trace"
        self.run_well([ANALYZER, "export", RECORDING, "--to", "perfetto", "--blocks", "-o", file])
        report = self.report(RECORDING)
        with TraceProcessor(trace=str(file), config=TraceProcessorConfig(bin_path=PROGRAM)) as processor:
            peaks = processor.query(
                "select t.name as name, max(c.value) as most from counter c"
                " join track t on c.track_id = t.id group by t.name"
            )
            most = {row.name: int(row.most) for row in peaks}
            for what, peak in report["devices"][0]["peak"].items():
                self.assertEqual(most[f"GPU 0 {what}"], peak)
            start = report["source"]["start_unix_ns"]
            (row,) = processor.query("select min(ts) as first, count(*) as number from slice")
            self.assertGreaterEqual(row.first, start)
            self.assertGreater(row.number, 0)
            problems = processor.query(
                "select name from stats where severity in ('error', 'data_loss') and value > 0"
            )
            self.assertEqual([row.name for row in problems], [])


if __name__ == "__main__":
    real_process.main()
