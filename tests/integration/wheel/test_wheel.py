"""A wheel that scripts/build-wheels made: it needs RHEL 8's C library alone, and works when installed.

FRAGTRACE_WHEEL names the wheel. Without it the newest wheel in dist/ for the processor
FRAGTRACE_WHEEL_PROCESSOR is tested, for this machine's by default. Skipped if there is none. The files of a
wheel for another processor are only read: scripts/prove-wheel runs them.
"""

import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
# For each processor: its name in the files, the dynamic linker, and the oldest version of glibc for it.
PROCESSORS = {
    "x86_64": ("X86-64", "ld-linux-x86-64.so.2", "GLIBC_2.2.5"),
    "aarch64": ("AArch64", "ld-linux-aarch64.so.1", "GLIBC_2.17"),
}
GLIBC = (2, 28)
# Names of libraries that the files contain as text: NVIDIA's and fragtrace's stand-ins for them, and those
# that the recorder compares with the names of loaded objects.
NAMES = re.compile(
    r"lib(cuda|cudart|cublas|cublasLt|nccl|nvidia-ml|fragtrace(-vgpu-torch)?|c10(_cuda)?|torch\w*"
    r"|asan|c|dl|tcmalloc\w*|jemalloc)\.so"
)


def find_wheel():
    """The wheel, or None, and its processor."""
    named = os.environ.get("FRAGTRACE_WHEEL")
    if named:
        found = re.search(r"_2_28_(\w+)\.whl$", named)
        return pathlib.Path(named), found[1] if found else platform.machine()
    processor = os.environ.get("FRAGTRACE_WHEEL_PROCESSOR", platform.machine())
    wheels = (SOURCE / "dist").glob(f"fragtrace-*_{processor}.whl")
    return max(wheels, key=lambda path: path.stat().st_mtime, default=None), processor


WHEEL, PROCESSOR = find_wheel()
MACHINE, LINKER, OLDEST = PROCESSORS[PROCESSOR]
TAG = f"py3-none-manylinux_2_28_{PROCESSOR}"
# The parts of glibc 2.28, which every distribution with it has.
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", LINKER}


def output(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def setUpModule():
    if WHEEL is None:
        print(f"skipped: no wheel for {PROCESSOR} in dist/ (scripts/build-wheels makes it)")
        sys.exit(77)


class Content(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        with zipfile.ZipFile(WHEEL) as wheel:
            cls.names = set(wheel.namelist())
            wheel.extractall(cls.folder)
        cls.elf = [
            path
            for path in cls.folder.rglob("*")
            if path.is_file() and path.read_bytes().startswith(b"\x7fELF")
        ]

    def read(self, pattern):
        (found,) = self.folder.glob(pattern)
        return found.read_text()

    def test_the_tag_is_manylinux_2_28(self):
        self.assertIn(f"-{TAG}.whl", WHEEL.name)
        self.assertEqual(re.findall(r"^Tag: (.*)$", self.read("*.dist-info/WHEEL"), re.MULTILINE), [TAG])

    def test_extras_and_the_pytest_plugin_are_declared(self):
        extras = re.findall(r"^Provides-Extra: (.*)$", self.read("*.dist-info/METADATA"), re.MULTILINE)
        self.assertEqual(sorted(extras), ["data", "demo", "job"])
        self.assertIn("fragtrace.pytest_plugin", self.read("*.dist-info/entry_points.txt"))

    def test_everything_that_a_user_runs_or_reads_is_in_it(self):
        suffixes = [
            ".data/scripts/fragtrace",
            ".data/scripts/fraganalyze",
            ".data/data/lib/libfragtrace.so",
            ".data/data/lib/libfraganalyze.so",
            ".data/data/share/fragtrace/demo/gpt.py",
            ".data/data/share/fragtrace/job/analyze.py",
            ".data/data/share/fragtrace/slurm/analyze-job",
            ".data/data/share/man/man1/fragtrace.1",
            ".data/data/share/man/man1/fraganalyze.1",
            ".data/data/share/bash-completion/completions/fragtrace",
            ".data/data/share/zsh/site-functions/_fraganalyze",
            ".data/data/share/fish/vendor_completions.d/fragtrace.fish",
            ".dist-info/licenses/LICENSE",
            ".dist-info/licenses/LICENSE.third-party",
            "licences/elfutils/COPYING-LGPLV3",
            "licences/libcxx/LICENSE.TXT",
        ]
        for suffix in suffixes:
            with self.subTest(suffix=suffix):
                self.assertEqual(len([name for name in self.names if name.endswith(suffix)]), 1)
        self.assertIn("fragtrace/__init__.py", self.names)
        (preload,) = self.folder.glob("*.data/data/lib/**/vgpu/preload.list")
        for name in [*preload.read_text().split(), "libcuda.so.1", "libcudart.so.12", "libnvidia-ml.so.1"]:
            self.assertTrue((preload.parent / name).is_file(), name)

    def test_files_need_glibc_2_28_and_nothing_else(self):
        self.assertGreaterEqual(len(self.elf), 10)
        versions = set()
        for path in self.elf:
            with self.subTest(file=path.name):
                self.assertRegex(output("readelf", "-h", path), rf"Machine: .*{MACHINE}\n")
                dynamic = output("readelf", "-dW", path)
                needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
                self.assertLessEqual(needed, LIBRARIES)
                self.assertNotRegex(dynamic, r"\((RPATH|RUNPATH)\)")
                # The versions that a file needs of other libraries. The virtual GPU also defines some.
                symbols = output("readelf", "-VW", path)
                wanted = re.findall(r"Name: (\S+)\s+Flags", symbols.partition("Version needs section")[2])
                versions |= set(wanted)
                for version in wanted:
                    self.assertRegex(version, r"^GLIBC_\d+(\.\d+)+$")
                    numbers = tuple(map(int, version.partition("_")[2].split(".")))
                    self.assertLessEqual(numbers, GLIBC, version)
        self.assertIn(OLDEST, versions)

    def test_segments_fit_the_largest_pages_of_the_processor(self):
        largest = {"x86_64": 0x1000, "aarch64": 0x10000}[PROCESSOR]
        for path in self.elf:
            aligned = re.findall(r"^ +LOAD .* (0x[0-9a-f]+)$", output("readelf", "-lW", path), re.MULTILINE)
            with self.subTest(file=path.name):
                self.assertTrue(aligned)
                self.assertEqual([place for place in aligned if int(place, 16) % largest], [])

    def test_no_library_is_opened_by_name_but_nvidias(self):
        for path in self.elf:
            with self.subTest(file=path.name):
                if "dlopen" not in output("readelf", "--dyn-syms", "-W", path):
                    continue
                # A text with a space is a message, not a name that is opened.
                texts = re.findall(rb"[\x20-\x7e]*lib[\w.+-]+\.so[\x20-\x7e]*\x00", path.read_bytes())
                names = [text.rstrip(b"\0").decode() for text in texts if b" " not in text]
                others = [name for name in names if name not in LIBRARIES and not NAMES.match(name)]
                self.assertEqual(others, [])
        # The analyzer opens no library at all. The launcher asks NVIDIA's about the cards.
        (program,) = self.folder.glob("*.data/scripts/fraganalyze")
        self.assertNotRegex(output("readelf", "--dyn-syms", "-W", program), r"\bdlm?open\b")


@unittest.skipUnless(PROCESSOR == platform.machine(), "made for another processor")
class Installed(unittest.TestCase):
    """The wheel in an empty virtual environment."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        output(sys.executable, "-m", "venv", cls.folder / "venv")
        cls.bin = cls.folder / "venv" / "bin"
        output(cls.bin / "pip", "install", "--no-index", "--no-deps", WHEEL)

    def run_installed(self, name, *arguments):
        env = {name: value for name, value in os.environ.items() if not name.startswith("FRAGTRACE_")}
        env.pop("PYTHONPATH", None)
        return output(self.bin / name, *arguments, cwd=self.folder, env=env)

    def test_the_programs_have_the_version_of_the_project(self):
        project = (SOURCE / "CMakeLists.txt").read_text()
        version = re.search(r"project\(fragtrace VERSION ([\d.]+)", project)[1]
        self.assertTrue(WHEEL.name.startswith(f"fragtrace-{version}-"), WHEEL.name)
        for name in ("fragtrace", "fraganalyze"):
            self.assertEqual(self.run_installed(name, "--version"), f"{name} {version}\n")

    def test_a_program_is_recorded_on_the_virtual_gpu_and_analysed(self):
        client = SOURCE / "tests" / "integration" / "process_life" / "client.py"
        command = [self.bin / "python", client, self.folder / "log", 300, "return"]
        self.run_installed("fragtrace", "run", "--virtual-gpu", "1GiB", "--quiet", "--", *command)
        (trace,) = self.folder.glob("*.ftrace")
        logged = len((self.folder / "log").read_text().splitlines())
        dumped = self.run_installed("fraganalyze", "dump", trace)
        self.assertEqual((logged, dumped.count(" device_alloc ")), (300, 300))
        self.run_installed("fraganalyze", trace, "--html", "page.html")
        self.assertGreater((self.folder / "page.html").stat().st_size, 100_000)
        program = f"import fragtrace; print(len(fragtrace.load({str(trace)!r}).ooms))"
        self.assertEqual(self.run_installed("python", "-c", program), "0\n")

    def test_the_package_knows_the_recorder_of_its_process(self):
        program = "import fragtrace; print(fragtrace.recorder_is_present())"
        self.assertEqual(self.run_installed("python", "-c", program), "False\n")
        told = self.run_installed("fragtrace", "run", "--quiet", "--", self.bin / "python", "-c", program)
        self.assertTrue(told.startswith("True\n"), told)


if __name__ == "__main__":
    unittest.main()
