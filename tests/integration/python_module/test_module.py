"""The Python module's phases, with and without the recorder."""

import re
import sys

import real_process
from real_process import SOURCE, environment, interpreters, traces

MODULE = SOURCE / "preload" / "python"
CARD = "1GiB,context=0"
PROGRAM = """
import asyncio, ctypes, fragtrace
print(fragtrace.recorder_is_present())
def allocate(size):
    cuda = ctypes.CDLL("libcudart.so.13")
    assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size)) == 0
@fragtrace.phase("decorated")
def decorated(size):
    "its text"
    allocate(size)
    return size
@fragtrace.phase("coroutine")
async def coroutine():
    fragtrace.mark("inside")
with fragtrace.phase("größe"):
    assert decorated(4096) == 4096
fragtrace.begin("plain")
try:
    with fragtrace.phase("fails"):
        raise KeyError
except KeyError:
    pass
fragtrace.end()
asyncio.run(coroutine())
assert decorated.__name__ == "decorated" and decorated.__doc__ == "its text"
print(fragtrace.stop(), fragtrace.start(), fragtrace.write())
"""


WITHOUT = """
import importlib, sys
for name in ("lightning", "pytorch_lightning", "transformers", "wandb", "mlflow"):
    sys.modules[name] = None  # as if it were not installed
import fragtrace
for use in (lambda: importlib.import_module("fragtrace.lightning"),
            lambda: importlib.import_module("fragtrace.transformers"),
            fragtrace.loggers.wandb, fragtrace.loggers.mlflow):
    try:
        use()
    except ImportError as error:
        print(error.name, error)
"""


class Module(real_process.RealProcessTest):
    def test_a_missing_library_is_named_with_what_to_install(self):
        env = environment(PYTHONPATH=MODULE, PYTHONDONTWRITEBYTECODE=1)
        lines = self.run_well([sys.executable, "-c", WITHOUT], env=env).stdout.splitlines()
        for line, (what, package) in zip(
            lines,
            (
                ("fragtrace.lightning needs Lightning", "lightning"),
                ("fragtrace.transformers needs transformers", "transformers"),
                ("fragtrace.loggers.wandb() needs Weights & Biases", "wandb"),
                ("fragtrace.loggers.mlflow() needs MLflow", "mlflow"),
            ),
        ):
            self.assertTrue(line.startswith(f"{package} {what}: pip install {package} ("), line)
        self.assertEqual(len(lines), 4)

    def test_phases_are_recorded_in_every_interpreter(self):
        for version, python in interpreters().items():
            with self.subTest(version):
                folder = self.folder / re.sub(r"\W", "", version)
                folder.mkdir()
                env = environment(CARD, folder, PYTHONPATH=MODULE, PYTHONDONTWRITEBYTECODE=1)
                done = self.run_well([python, "-c", PROGRAM], env=env)
                self.assertEqual(done.stdout, "True\nTrue True True\n")
                told = [
                    f"{found[1]} {found[2] or ''}".strip()
                    for found in (
                        re.search(
                            r"(range_begin|range_end|mark|device_alloc|checkpoint_\w+)"
                            r'(?: text="(.*)")?',
                            line,
                        )
                        for line in self.events(self.only_trace(folder))
                    )
                    if found
                ]
                self.assertEqual(
                    told,
                    [
                        "range_begin größe",
                        "range_begin decorated",
                        "device_alloc",
                        "range_end decorated",
                        "range_end größe",
                        "range_begin plain",
                        "range_begin fails",
                        "range_end fails",
                        "range_end plain",
                        "range_begin coroutine",
                        "mark inside",
                        "range_end coroutine",
                        # stopped and started again
                        "checkpoint_begin",
                        "device_alloc",
                        "checkpoint_end",
                    ],
                )

    def test_without_the_recorder_nothing_happens(self):
        for version, python in interpreters().items():
            with self.subTest(version):
                env = environment(CARD, PYTHONPATH=MODULE, PYTHONDONTWRITEBYTECODE=1)
                done = self.run_well([python, "-c", PROGRAM], env=env, cwd=self.folder)
                self.assertEqual(done.stdout, "False\nFalse False False\n")
                self.assertEqual(traces(self.folder), [])

    def test_without_the_recorder_a_decorated_function_is_itself(self):
        program = "import fragtrace; f = len; assert fragtrace.phase('x')(f) is f"
        python = next(iter(interpreters().values()))
        self.run_well([python, "-c", program], env=environment(PYTHONPATH=MODULE, PYTHONDONTWRITEBYTECODE=1))


if __name__ == "__main__":
    real_process.main()
