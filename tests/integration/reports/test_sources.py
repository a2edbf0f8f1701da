"""`--sources` copies source code into the page of a trace and of a folder; without it nothing is copied."""

import json
import re
import sys

import real_process
from real_process import ANALYZER

PROGRAM = """\
import ctypes

def allocate(driver):
    pointer = ctypes.c_ulonglong()
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(64 << 20)) == 0

driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
context = ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
allocate(driver)
"""


class Sources(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        self.program = self.folder / "held.py"
        self.program.write_text(PROGRAM)
        env = real_process.environment("2GiB", record_to=self.folder)
        self.run_well([sys.executable, self.program], env=env)
        self.trace = self.only_trace()

    def header(self, *arguments):
        """The page's own data."""
        page = self.folder / "page.html"
        self.run_well([ANALYZER, *arguments, "--html", page, "--force"])
        (header,) = re.findall(
            r'<script [^>]*type="application/json"[^>]*>(\{.*?"fragtrace-page".*?)</script>',
            page.read_text(),
            re.DOTALL,
        )
        return json.loads(header)

    def assert_has_source(self, header):
        (source,) = (one for one in header["sources"] if header["strings"][one["file"]] == str(self.program))
        self.assertEqual(
            source["lines"], PROGRAM.splitlines()[source["first_line"] - 1 :][: len(source["lines"])]
        )
        self.assertIn("    assert driver.cuMemAlloc_v2", "\n".join(source["lines"]))
        self.assertFalse(source["changed"])
        (process,) = header["processes"]
        self.assertRegex("\n".join(process["notes"]), r"this page has source lines of \d+ files?")

    def test_the_page_of_a_trace_and_of_a_folder(self):
        self.assert_has_source(self.header(self.trace, "--sources"))
        self.assert_has_source(self.header(self.folder, "--sources"))

    def test_nothing_is_copied_unasked(self):
        header = self.header(self.trace)
        self.assertEqual(header["sources"], [])
        self.assertNotIn("cuMemAlloc_v2(ctypes", json.dumps(header))

    def test_a_program_that_changed_since_is_called_so(self):
        self.program.write_text("# new\n" + PROGRAM)
        sources = self.header(self.trace, "--sources")["sources"]
        self.assertTrue(any(source["changed"] for source in sources))

    def test_sources_need_a_page(self):
        done = real_process.run([ANALYZER, self.trace, "--sources"])
        self.assert_status([ANALYZER, "--sources"], done, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "fraganalyze: --sources copies into a page: add --html FILE\n")


if __name__ == "__main__":
    real_process.main()
