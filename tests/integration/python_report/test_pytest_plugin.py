"""The pytest plugin, in a real pytest: tests pass, fail, run out of memory, crash and are skipped."""

import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree

import package
import real_process
from real_process import MIB, TORCH_PYTHON, environment, run

PROJECT = pathlib.Path(__file__).with_name("pytest_project")
PASSED = {
    "test_plain", "test_at_the_limit", "test_allowed_oom", "test_parameters[1-3]", "test_parameters[2-3]",
    "test_parameters[1-4]", "test_parameters[2-4]", "TestClass::test_overrides",
    "test_warns_and_gets_options", "test_plain_again",
}  # fmt: skip
FAILED = {
    "test_above_the_limit", "test_caught_oom", "test_uncaught_oom", "test_crashes", "test_exits",
    "test_unexpectedly_within", "test_another_failure_is_expected", "test_parameters[1-5]",
    "test_parameters[2-5]", "TestClass::test_inherits",
}  # fmt: skip
ERRORS = {"test_broken_fixture", "test_mistyped", "test_no_size", "test_no_card", "test_broken_teardown"}
TRAINING = """
import pytest, torch

def step(batch):
    model = torch.nn.Linear(1024, 1024, device="cuda")
    model(torch.zeros(batch, 1024, device="cuda")).sum().backward()

@pytest.mark.gpu_memory(max_reserved="1 GiB", no_oom=True, card="2GiB")
def test_small():
    step(64)
    assert torch.cuda.get_device_properties(0).total_memory == 2 << 30

@pytest.mark.gpu_memory(max_reserved="1 GiB", card="24GiB")
def test_large():
    step(1 << 18)

@pytest.mark.gpu_memory(no_oom=True, card="2GiB")
def test_too_large():
    step(1 << 20)
"""
# Each test would pass if what was not recorded counted as 0 bytes.
UNMEASURED = """
import ctypes, os, subprocess, sys
import fragtrace, pytest

def allocate(mib, times=1):
    cuda = ctypes.CDLL("libcudart.so.13")
    for _ in range(times):
        assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20)) == 0

@pytest.mark.gpu_memory(max_reserved="1 MiB")
def test_above():
    allocate(10)

@pytest.mark.gpu_memory(max_allocated="1 MiB")
def test_small_blocks():
    torch = pytest.importorskip("torch")
    kept = [torch.empty(1 << 19, dtype=torch.uint8, device="cuda") for _ in range(20)]

@pytest.mark.gpu_memory(max_reserved="1 MiB")
def test_without_caching():
    script = "import torch; torch.empty(10 << 20, dtype=torch.uint8, device='cuda')"
    env = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    subprocess.run([sys.executable, "-c", script], env=env, check=True)

@pytest.mark.gpu_memory(max_reserved="20 MiB")
def test_stops_the_recording():
    allocate(1)
    assert fragtrace.stop()
    allocate(10)

@pytest.mark.gpu_memory(max_reserved="20 MiB")
def test_continues_the_recording():
    allocate(1)
    fragtrace.stop()
    allocate(10)
    fragtrace.start()

@pytest.mark.gpu_memory(no_oom=True)
@pytest.mark.xfail
def test_an_expected_failure_does_not_hide_it():
    allocate(1)
    fragtrace.stop()

@pytest.mark.gpu_memory(max_reserved="20 MiB")
def test_a_process_still_runs():
    script = "import ctypes, time; ctypes.CDLL('libcudart.so.13').cudaFree(None); "
    script += "ctypes.CDLL('libcudart.so.13').cudaMalloc(ctypes.byref(ctypes.c_void_p()), 1 << 20); "
    script += "print(flush=True); time.sleep(30)"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    child.stdout.readline()

@pytest.mark.gpu_memory(card="2GiB")
def test_without_limits_is_not_judged():
    allocate(1)
    fragtrace.stop()

@pytest.mark.gpu_memory(max_reserved="20 MiB")
def test_complete():
    allocate(10)
"""


class Plugin(real_process.RealProcessTest):
    def pytest(self, *arguments, expected=1, **variables):
        shutil.copytree(PROJECT, self.folder, dirs_exist_ok=True)
        env = environment(**package.variables("pytest-tools", **variables))
        done = self.run_well(
            [TORCH_PYTHON, "-m", "pytest", "-p", "fragtrace.pytest_plugin", "-p", "no:cacheprovider",
             "--strict-markers", *arguments],
            expected,
            env=env,
            cwd=self.folder,
        )  # fmt: skip
        self.assertEqual(done.stderr, "")
        return done.stdout

    def outcomes(self, text, word):
        """The tests that the summary (-rA) lists with this word."""
        found = re.findall(rf"^{word} \S+?\.py::(\S+)", text, re.MULTILINE)
        self.assertEqual(len(set(found)), len(found))
        return set(found)

    def part(self, text, name):
        """What is printed about one test."""
        return re.search(rf"_ {re.escape(name)} _+\n(.*?)(?=\n_{{5}}|\n=====)", text, re.DOTALL)[1]

    def test_outcomes_and_what_is_printed(self):
        text = self.pytest("-rA", "--word=given", "--junitxml=results.xml")
        self.assertEqual(self.outcomes(text, "PASSED") - {"test_broken_teardown"}, PASSED)
        self.assertEqual(self.outcomes(text, "FAILED"), FAILED)
        self.assertEqual(self.outcomes(text, "ERROR"), ERRORS)
        self.assertEqual(
            self.outcomes(text, "XFAIL"), {"test_expected_to_exceed", "test_expected_to_exceed_strictly"}
        )
        self.assertRegex(text, r"SKIPPED \[1\] test_limits.py:\d+: not today")
        self.assertRegex(text, r"SKIPPED \[1\] test_limits.py:\d+: never")
        self.assertRegex(text, r"test_limits.py:\d+: DeprecationWarning: be careful")

        above = self.part(text, "test_above_the_limit")
        self.assertIn("peak reserved 104,857,600 B, 1,048,576 B above max_reserved=103,809,024 B", above)
        self.assertIn("No out-of-memory", above)
        self.assertRegex(above, r"Captured stdout call -+\nsome output")
        caught = self.part(text, "test_caught_oom")
        self.assertIn("1 out-of-memory, although no_oom=True", caught)
        uncaught = self.part(text, "test_uncaught_oom")
        self.assertIn(">           raise MemoryError", uncaught)
        self.assertIn("E           MemoryError: no 2017 MiB", uncaught)
        self.assertIn("GPU memory", uncaught)
        crashed = self.part(text, "test_crashes")
        self.assertIn("The process of the test was ended by signal 11 (SIGSEGV).", crashed)
        self.assertIn("in test_crashes", crashed)  # of the fault handler
        self.assertIn("ended with exit code 3 before the test was over", self.part(text, "test_exits"))
        self.assertIn("[XPASS(strict)]", self.part(text, "test_unexpectedly_within"))
        self.assertIn("RuntimeError: no fixture", text)
        self.assertIn("RuntimeError: no teardown", text)
        self.assertIn(
            "unknown argument 'max_reserve'; use one of max_reserved, max_allocated, no_oom, card", text
        )
        self.assertIn("gpu_memory: max_reserved: 'many' is not a size", text)
        self.assertIn("24 apples", self.part(text, "ERROR at setup of test_no_card"))
        self.assertIn("doubled ends", self.part(text, "test_parameters[1-5]"))
        self.assertNotIn(" GPU memory ===", text)

        results = xml.etree.ElementTree.parse(self.folder / "results.xml")
        peaks = {
            case.get("name"): int(value.get("value"))
            for case in results.iter("testcase")
            for value in case.iter("property")
            if value.get("name") == "gpu_peak_reserved_bytes"
        }
        self.assertEqual(peaks["test_parameters[1-4]"], 4 * MIB)
        self.assertEqual(peaks["test_crashes"], 10 * MIB)
        self.assertNotIn("test_plain", peaks)

    def test_what_was_not_measured_completely_does_not_pass(self):
        (self.folder / "test_unmeasured.py").write_text(UNMEASURED)
        above = {"test_above", "test_small_blocks", "test_without_caching"}
        stopped = {
            "test_stops_the_recording",
            "test_continues_the_recording",
            "test_an_expected_failure_does_not_hide_it",
        }
        for variables in (
            {},
            {"FRAGTRACE_OFF": "1"},
            {"FRAGTRACE_MIN_BYTES": "1GiB", "FRAGTRACE_FLIGHT": "1MiB", "FRAGTRACE_START": "off"},
        ):
            with self.subTest(variables):
                only = [] if not variables else ["-k", "above or small or without or complete"]
                text = self.pytest("-rA", "test_unmeasured.py", "--gpu-memory", *only, **variables)
                failed = self.outcomes(text, "FAILED")
                self.assertEqual(failed & above, above, text)
                self.assertEqual(
                    self.outcomes(text, "PASSED"), {"test_without_limits_is_not_judged", "test_complete"}
                )
                if not variables:
                    self.assertEqual(failed, above | stopped | {"test_a_process_still_runs"})
                    for name in stopped:
                        self.assertIn("recording was stopped for a part of the test", self.part(text, name))
                    self.assertIn("still runs", self.part(text, "test_a_process_still_runs"))
                self.assertRegex(text, r"test_without_limits_is_not_judged \(at least: recording was stopped")

    def test_a_process_that_the_recorder_is_not_in_fails(self):
        (self.folder / "test_unmeasured.py").write_text(UNMEASURED)
        wrapper = self.folder / "python"
        wrapper.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {TORCH_PYTHON} "$@"\n')
        wrapper.chmod(0o755)
        (self.folder / "conftest.py").write_text(f"import sys\nsys.executable = {str(wrapper)!r}\n")
        env = environment(**package.variables("pytest-tools"))
        done = run(
            [TORCH_PYTHON, "-m", "pytest", "-p", "fragtrace.pytest_plugin", "-k", "complete",
             "test_unmeasured.py", "--gpu-memory-card=real"],
            env=env, cwd=self.folder,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertNotIn("1 passed", done.stdout)

    def test_arguments_of_another_type_are_refused(self):
        (self.folder / "test_types.py").write_text(
            "import pytest\n"
            "@pytest.mark.parametrize('bad', [0])\n"
            "@pytest.mark.gpu_memory(no_oom='False')\ndef test_text(bad): pass\n"
            "@pytest.mark.gpu_memory(no_oom=None)\ndef test_none(): pass\n"
            "@pytest.mark.gpu_memory(max_reserved=True)\ndef test_size(): pass\n"
            "@pytest.mark.gpu_memory(card=24)\ndef test_card(): pass\n"
        )
        text = self.pytest("-rA", "test_types.py")
        self.assertEqual(
            self.outcomes(text, "ERROR"), {"test_text[0]", "test_none", "test_size", "test_card"}
        )
        self.assertIn("gpu_memory: no_oom is 'False'; give True or False", text)
        self.assertIn("gpu_memory: card is 24; give a text such as '24GiB'", text)

    def test_every_test_is_recorded_on_request(self):
        text = self.pytest(
            "--gpu-memory", "--gpu-memory-card=2GiB,context=0", "--gpu-memory-traces=kept", "-s", "-v",
            "-k", "not again and (at_the_limit or plain or above or allowed)", "-p", "no:randomly",
        )  # fmt: skip
        listed = re.findall(r"^ +([\d,]+) B +([\d,]+) B +(\d)  test_\w+\.py::(\w+)$", text, re.MULTILINE)
        self.assertEqual(
            {name: int(reserved.replace(",", "")) for _, reserved, _, name in listed},
            {
                "test_plain": 0,
                "test_at_the_limit": 100 * MIB,
                "test_above_the_limit": 100 * MIB,
                "test_allowed_oom": 2000 * MIB,
            },
        )
        self.assertRegex(text, r"(?m)^some output$")
        kept = [trace.parent.name for trace in self.folder.glob("kept/*/*.ftrace")]
        self.assertEqual(
            sorted(kept),
            [f"test_limits.py_test_{name}" for name in ("above_the_limit", "allowed_oom", "at_the_limit")],
        )

    def test_it_works_beside_workers_and_coverage(self):
        text = self.pytest("-rA", "-n2", "--cov=test_limits", "--cov-report=term", "--word=given")
        # test_plain leaves a file for two others, which other workers may run before it.
        near = {"test_plain", "test_plain_again", "test_at_the_limit"}
        self.assertEqual(self.outcomes(text, "PASSED") - {"test_broken_teardown"} - near, PASSED - near)
        self.assertEqual(self.outcomes(text, "FAILED") - near, FAILED)
        self.assertEqual(self.outcomes(text, "ERROR"), ERRORS)
        self.assertRegex(text, r"(?m)^test_limits\.py +\d+ +\d+ +\d+%$")

    def test_gpu_memory_card_real_adds_no_virtual_gpu(self):
        (self.folder / "test_card.py").write_text(
            "import os, pytest\n"
            "@pytest.mark.gpu_memory(card='24GiB', no_oom=True)\n"
            "def test_card():\n"
            "    assert 'libfragtrace.so' in os.environ['LD_PRELOAD']\n"
            "    assert os.environ.get('FRAGTRACE_VIRTUAL_GPU') == os.environ.get('EXPECTED')\n"
        )
        self.pytest("test_card.py", "--gpu-memory-card=real", expected=0)
        self.pytest("test_card.py", expected=0, EXPECTED="24GiB")
        self.pytest("test_card.py", "--gpu-memory-card=2GiB", expected=0, EXPECTED="2GiB")

    def test_a_training_is_exact_to_the_byte(self):
        (self.folder / "test_training.py").write_text(TRAINING)
        text = self.pytest("-rA", "test_training.py")
        self.assertEqual(self.outcomes(text, "PASSED"), {"test_small"})
        self.assertEqual(self.outcomes(text, "FAILED"), {"test_large", "test_too_large"})
        large = self.part(text, "test_large")
        self.assertRegex(large, r"peak reserved ([\d,]+) B, [\d,]+ B above max_reserved=1,073,741,824 B")
        too_large = self.part(text, "test_too_large")
        self.assertIn("OutOfMemoryError", too_large)
        memory = too_large[too_large.index("GPU memory") :].splitlines()
        self.assertRegex(memory[1], "1 out-of-memory, although no_oom=True")
        self.assertEqual(len(memory[2:]), 3, memory)
        self.assertRegex(memory[3], r"^  culprit .*test_training\.py:\d+")
        self.assertRegex(memory[4], r"^  remedy ")

    def test_the_installed_package_brings_the_plugin(self):
        source = self.folder / "source"
        shutil.copytree(package.PACKAGE, source)
        site = self.folder / "site"
        self.run_well(
            [TORCH_PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
             "--disable-pip-version-check", "--no-index", "--target", site, source],
            env=environment(),
        )  # fmt: skip
        variables = package.variables("pytest-tools")
        variables["PYTHONPATH"] = variables["PYTHONPATH"].replace(str(package.PACKAGE), str(site))
        done = self.run_well(
            [TORCH_PYTHON, "-m", "pytest", "--markers"], env=environment(**variables), cwd=self.folder
        )
        self.assertIn("@pytest.mark.gpu_memory(max_reserved=SIZE", done.stdout)
        self.assertTrue((site / "fragtrace" / "py.typed").exists())


if __name__ == "__main__":
    has_pytest = run(
        [TORCH_PYTHON, "-c", "import pytest"], env=environment(**package.variables("pytest-tools"))
    )
    if has_pytest.returncode != 0:
        print("skipped: no pytest beside PyTorch (scripts/setup --tests installs it)")
        sys.exit(77)
    package.main()
