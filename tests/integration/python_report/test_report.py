"""fragtrace.load() in every installed interpreter, the C header, and the exported names."""

import json
import re
import subprocess
import sys

import package
import real_process
from real_process import ANALYZER, BUILD, LAUNCHER, MIB, SOURCE, environment, interpreters

LIBRARY = BUILD / "lib" / "libfraganalyze.so"
GOLDEN = sorted((SOURCE / "tests" / "format" / "golden").glob("*-ended.ftrace"))
PROGRAM = """
import json, sys, threading
import fragtrace
assert "ctypes" not in sys.modules or fragtrace.recorder_is_present() is False
trace, page = sys.argv[1:]
with fragtrace.load(trace) as report:
    found = {"json": report.json, "ooms": report.ooms, "verdict": report.verdict, "holders": report.holders,
             "devices": report.devices, "text": report.text, "repr": repr(report),
             "replay": report.replay(capacity="1 GiB"), "whatif": report.whatif()}
    report.html(page)
    report.html(page)  # again
    found["page is the same"] = open(page, encoding="utf-8").read() == report.page()
    threads = [threading.Thread(target=report.replay) for _ in range(4)]
    threads += [threading.Thread(target=getattr, args=(report, name)) for name in ("text", "verdict", "json")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
try:
    report.json
    report.replay()
except fragtrace.Error as error:
    found["closed"] = str(error)
print(json.dumps(found))
"""
ERRORS = """
import sys, fragtrace
for call in (
    lambda: fragtrace.load(sys.argv[1]),
    lambda: fragtrace.load(sys.argv[2]),
    lambda: fragtrace.load("no\\0such"),
    lambda: fragtrace.load(sys.argv[3], capacity="many"),
    lambda: fragtrace.load(sys.argv[3], capacity=0),
    lambda: fragtrace.load(sys.argv[3], torch_version="new"),
    lambda: fragtrace.load(sys.argv[3], events=0),
    lambda: fragtrace.load(sys.argv[3], events=99),
    lambda: fragtrace.load(sys.argv[3], events="most"),
    lambda: fragtrace.load(sys.argv[3]).replay(pool="no such pool"),
    lambda: fragtrace.load(sys.argv[3]).replay(device=7),
    lambda: fragtrace.load(sys.argv[3]).replay(device=-1),
    lambda: fragtrace.load(sys.argv[3]).replay(device=2**32),
    lambda: fragtrace.load(sys.argv[3]).replay(device=True),
    lambda: fragtrace.load(sys.argv[3]).html(sys.argv[3]),
    lambda: fragtrace.load(sys.argv[3]).html(sys.argv[2]),
    lambda: fragtrace.parse_size(-1),
    lambda: fragtrace.parse_size(1.5),
    lambda: fragtrace.parse_size("1.5 apples"),
    lambda: fragtrace.no_such_name,
):
    try:
        print("no error:", call())
    except (fragtrace.Error, AttributeError) as error:
        print(type(error).__name__, error)
print(fragtrace.parse_size("4 GiB"), fragtrace.parse_size("1.5kb"), fragtrace.parse_size(77))
"""


class Report(real_process.RealProcessTest):
    def record(self):
        self.run_well(
            [LAUNCHER, "run", "--virtual-gpu", "1GiB,context=0", "-o", self.folder / "run", "--quiet", "--",
             sys.executable, SOURCE / "tests/integration/python_report/allocates.py"],
            env=environment(),
        )  # fmt: skip
        return self.only_trace(self.folder / "run")

    def command(self, *arguments):
        return json.loads(self.run_well([ANALYZER, *arguments, "--json", "-"]).stdout)

    def test_every_interpreter_gets_what_the_commands_print(self):
        trace = self.record()
        expected = self.command(trace)
        replay = self.command("replay", trace, "--capacity", "1GiB")
        whatif = self.command("whatif", trace)
        for version, python in interpreters().items():
            with self.subTest(version):
                page = self.folder / f"{re.sub(chr(92) + 'W', '', version)}.html"
                done = self.run_well(
                    [python, "-c", PROGRAM, trace, page], env=environment(**package.variables())
                )
                self.assertEqual(done.stderr, "")
                found = json.loads(done.stdout)
                self.assertEqual(found["json"], expected)
                self.assertEqual(found["ooms"], expected["ooms"])
                self.assertEqual(found["devices"][0]["peak"]["reserved"], 250 * MIB + 50 * MIB)
                self.assertEqual(found["replay"], replay)
                self.assertEqual(found["whatif"], whatif)
                self.assertTrue(found["page is the same"])
                self.assertTrue(found["text"].startswith(found["text"].splitlines()[0]))
                self.assertIn(found["verdict"].splitlines()[0], found["text"])
                self.assertIn(found["verdict"], found["repr"])
                self.assertIn("this report is closed", found["closed"])

    def test_an_error_is_the_line_of_the_analyzer(self):
        trace = self.record()
        other = self.folder / "train.py"
        other.write_text("print('hello')\n")
        missing = self.folder / "missing.ftrace"
        done = self.run_well(
            [sys.executable, "-c", ERRORS, missing, other, trace], env=environment(**package.variables())
        )
        lines = done.stdout.splitlines()
        for number, path in ((0, missing), (1, other)):
            said = subprocess.run([ANALYZER, path], capture_output=True, text=True, check=False).stderr
            self.assertEqual("Error " + said.split(": ", 1)[1].rstrip("\n"), lines[number])
        for line, pattern in zip(
            lines[2:],
            (
                "Error 'no.x00such' has a null byte",
                "Error capacity: 'many' is not a size",
                "Error capacity: a card without memory",
                "Error 'new' is no release of PyTorch",
                "Error events: 0 is neither 'all' nor a number of events",
                "Error events: 99 is too few; give at least 100",
                "Error events: 'most' is neither 'all' nor a number of events",
                "Error .*no such pool",
                "Error .*: there is no device 7; devices of this recording: 0$",
                "Error .*: there is no device -1; devices of this recording: 0$",
                "Error .*: there is no device 4294967296; devices",
                "Error .*: there is no device True; devices",
                "Error .*: is the file of this report. Name another file.$",
                r"Error .*train.py: exists, and fraganalyze did not write it. Name another file\.$",
                "Error -1 is no size",
                "Error 1.5 is no size",
                "Error '1.5 apples' is not a size",
                "AttributeError module 'fragtrace' has no attribute 'no_such_name'",
                "4294967296 1500 77",
            ),
        ):
            self.assertRegex(line, pattern)
        self.assertEqual(len(lines), 21)
        self.assertEqual(done.stderr, "")

    def test_without_the_library_the_package_says_so(self):
        env = environment(**package.variables(FRAGTRACE_PREFIX=self.folder))
        program = "import fragtrace\nwith fragtrace.phase('x'): pass\nfragtrace.load('x.ftrace')"
        done = self.run_well([sys.executable, "-c", program], expected=1, env=env)
        self.assertRegex(done.stderr.splitlines()[-1], "Error: libfraganalyze.so is not installed beside .*")

    def test_importing_the_package_imports_no_more_than_before(self):
        program = "import sys, fragtrace; print([m for m in ('json', 'pyarrow', 'html') if m in sys.modules])"
        done = self.run_well([sys.executable, "-c", program], env=environment(**package.variables()))
        self.assertEqual(done.stdout, "[]\n")

    def test_a_c_program_uses_the_header(self):
        client = BUILD / "bin" / "analyze_client"
        trace = self.record()
        done = self.run_well([client, trace])
        self.assertEqual(json.loads(done.stdout), self.command(trace))
        missing = self.run_well([client, self.folder / "missing"], expected=2)
        self.assertRegex(missing.stderr, "missing: .*\n")
        self.assertEqual(missing.stdout, "")

    def test_the_library_exports_the_functions_of_the_header_alone(self):
        names = self.run_well(["nm", "-D", "--defined-only", LIBRARY]).stdout
        exported = {line.split()[-1] for line in names.splitlines()}
        header = (SOURCE / "analyzer/include/fragtrace/analyze.h").read_text()
        declared = set(re.findall(r"^[a-z][\w* ]*?\b(fraganalyze_\w+)\(", header, re.MULTILINE))
        self.assertGreater(len(declared), 10)
        self.assertEqual(exported, declared)

    def test_a_thread_may_close_a_report_that_others_use(self):
        program = (
            "import fragtrace, sys, threading\n"
            "for _ in range(20):\n"
            "    report = fragtrace.load(sys.argv[1], whatif=False)\n"
            "    def use():\n"
            "        try:\n"
            "            for _ in range(20): report.text\n"
            "        except fragtrace.Error as error:\n"
            "            assert 'closed' in str(error), error\n"
            "    threads = [threading.Thread(target=use) for _ in range(3)]\n"
            "    [thread.start() for thread in threads]\n"
            "    report.close()\n"
            "    [thread.join() for thread in threads]\n"
        )
        done = self.run_well(
            [sys.executable, "-c", program, self.record()], env=environment(**package.variables())
        )
        self.assertEqual(done.stdout + done.stderr, "")

    def test_an_installed_package_finds_everything(self):
        prefix = self.folder / "prefix"
        self.run_well(["cmake", "--install", BUILD, "--prefix", prefix], timeout=100)
        moved = prefix.rename(self.folder / "moved")
        trace = self.record()
        program = (
            "import fragtrace, sys; from fragtrace import _files; print(fragtrace.load(sys.argv[1]).verdict);"
            "print(fragtrace.__file__, _files.library('libfraganalyze.so'), _files.program('fragtrace'))"
        )
        done = self.run_well(
            [sys.executable, "-B", "-c", program, trace],
            env=environment(PYTHONPATH=moved / "share" / "fragtrace" / "python"),
        )
        self.assertIn("Out of memory", done.stdout)
        for place in done.stdout.splitlines()[-1].split():
            self.assertTrue(place.startswith(f"{moved}/"), place)
        (library,) = moved.glob("lib*/**/libfraganalyze.so")
        client = self.folder / "client"
        source = SOURCE / "tests/integration/python_report/analyze_client.c"
        self.run_well(
            [
                "cc",
                "-std=c99",
                "-I",
                moved / "include",
                source,
                library,
                f"-Wl,-rpath,{library.parent}",
                "-o",
                client,
            ]
        )
        self.assertEqual(json.loads(self.run_well([client, trace]).stdout), self.command(trace))

    def test_kept_traces_of_every_version_load(self):
        self.assertGreater(len(GOLDEN), 0)
        program = (
            "import fragtrace, json, sys; print(json.dumps([fragtrace.load(p).json for p in sys.argv[1:]]))"
        )
        done = self.run_well([sys.executable, "-c", program, *GOLDEN], env=environment(**package.variables()))
        for path, found in zip(GOLDEN, json.loads(done.stdout)):
            self.assertEqual(found, self.command(path))


if __name__ == "__main__":
    package.main()
