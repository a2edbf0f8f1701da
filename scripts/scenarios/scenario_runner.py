"""Runs a scenario's program under the recorder on the virtual GPU, and calls the analyzer."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
sys.path.append(str(SOURCE / "scripts"))

from abort_at_end import aborted_at_end, trace_ends_killed

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fragtrace"


@dataclasses.dataclass(frozen=True)
class Environment:
    """Packages that a scenario needs in addition to PyTorch, in an environment in the cache."""

    name: str
    packages: tuple
    modules: tuple  # all of them can be imported once the environment is complete
    size: str

    @property
    def folder(self):
        return CACHE / self.name

    def install(self, python):
        """Makes an environment that sees the PyTorch of `python`."""
        print(f"{' '.join(self.packages)} into {self.folder}, {self.size} unpacked, from PyPI", flush=True)
        subprocess.run([python, "-m", "venv", "--clear", self.folder], check=True)
        torch_packages, own = (
            subprocess.run(
                [interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for interpreter in (python, self.folder / "bin/python")
        )
        pathlib.Path(own, "torch.pth").write_text(torch_packages + "\n")
        subprocess.run(
            [
                self.folder / "bin/python",
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                *self.packages,
            ],
            check=True,
        )


ENVIRONMENTS = (
    Environment("fastai-2.8.12", ("fastai==2.8.12",), ("fastai",), "about 700 MB"),
    Environment(
        "training-libraries-1",
        (
            "transformers==5.23.0",
            "accelerate==1.15.0",
            "peft==0.21.2",
            "diffusers==0.42.1",
            "lightning==2.6.6",
            "timm==1.0.31",
            "torchvision==0.29.2",
            "torch_geometric==2.8.1",
        ),
        ("transformers", "peft", "diffusers", "lightning", "timm", "torchvision", "torch_geometric"),
        "about 410 MB",
    ),
)


def environment_with(module):
    return next((one for one in ENVIRONMENTS if module in one.modules), None)


def add_options(parser):
    parser.add_argument(
        "--python",
        default=os.environ.get("FRAGTRACE_PYTHON") or sys.executable,
        help="an interpreter with a CUDA build of PyTorch",
    )
    parser.add_argument(
        "--build", default=os.environ.get("FRAGTRACE_BUILD") or SOURCE / "build", type=pathlib.Path
    )
    parser.add_argument("--output", type=pathlib.Path, help="keeps the traces there")
    parser.add_argument(
        "--install",
        action="store_true",
        help="installs what the named scenarios need beside PyTorch into the cache",
    )


def check_names(parser, names, known):
    unknown = set(names) - set(known)
    if unknown:
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(known)}")


def write_between(marks, page, figures):
    """Puts figures (Markdown) between the two marker lines of a page."""
    begin, end = map(re.escape, marks)
    text, found = re.subn(
        f"{begin}\n.*?{end}",
        lambda _: f"{marks[0]}\n\n{figures}\n{marks[1]}",
        page.read_text(),
        flags=re.DOTALL,
    )
    if not found:
        raise SystemExit(f"{page}: no line {marks[0]}")
    page.write_text(text)


class Runner:
    def __init__(self, args, folder):
        self.python = args.python
        self.bin = pathlib.Path(args.build).resolve() / "bin"
        self.folder = folder
        self.install = args.install

    def analyzer(self, *arguments):
        done = subprocess.run(
            [self.bin / "fraganalyze", *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"fraganalyze {arguments[0]}: {done.stderr}")
        return done.stdout

    def variables(self):
        """Environment variables with the paths that the programs need: fragtrace's module, and IPython.
        They also record where less than 10 % of the disk is free."""
        ipython = map(str, sorted(CACHE.glob("ipython-*")))
        return {
            "PYTHONPATH": os.pathsep.join(
                [str(SOURCE / "preload/python"), *ipython, os.environ.get("PYTHONPATH", "")]
            ),
            "IPYTHONDIR": str(self.folder),
            "FRAGTRACE_KEEP_FREE": "0",
        }

    def environment(self, run):
        env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("FRAGTRACE_", "PYTORCH_", "LD_PRELOAD"))
        } | self.variables()
        if run.conf:
            env["PYTORCH_CUDA_ALLOC_CONF"] = run.conf
        return env | run.environment

    def python_with(self, module):
        """The interpreter for a program that needs this module, or None."""
        pythons = [self.python]
        if apart := environment_with(module):
            pythons.append(apart.folder / "bin/python")
        found = self.first_with(module, pythons)
        if found is None and apart and self.install:
            apart.install(self.python)
            found = self.first_with(module, pythons)
        return found

    def first_with(self, module, pythons):
        env = {**os.environ, **self.variables()}
        for python in pythons:
            if (
                shutil.which(python)
                and subprocess.run(
                    [python, "-c", f"import torch, {module or 'sys'}"],
                    env=env,
                    capture_output=True,
                    check=False,
                ).returncode
                == 0
            ):
                return python
        return None

    def has(self, module):
        return self.python_with(module) is not None

    def why_skipped(self, module):
        if not self.has(""):
            return f"skipped, {self.python} has no PyTorch (--python PATH)"
        hint = " (--install gets it)" if environment_with(module) else ""
        return f"skipped, {self.python} has no {module}{hint}"

    def run(self, scenario, number, run):
        """Runs a program. Returns what happened, and the trace."""
        traces = self.folder / f"{pathlib.Path(scenario.program).stem}.{number}"
        shutil.rmtree(traces, ignore_errors=True)
        traces.mkdir(parents=True)
        done = subprocess.run(
            [
                self.bin / "fragtrace",
                "run",
                "--quiet",
                "--virtual-gpu",
                run.card or scenario.card,
                "-o",
                traces,
                "--",
                self.python_with(scenario.needs),
                HERE / scenario.program,
                *run.arguments.split(),
            ],
            env=self.environment(run),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=280,
            check=False,
        )
        aborted = aborted_at_end(done.returncode, done.stderr)
        ended = done.returncode == 0 or aborted
        if not ended and "OutOfMemoryError" not in done.stderr:
            raise SystemExit(
                f"{scenario.program} {run.arguments}: exit {done.returncode}\n{done.stderr[-3000:]}"
            )
        (trace,) = traces.glob("*.ftrace")
        if aborted:
            print(f"{scenario.program} {run.arguments}: PyTorch aborted at its end", file=sys.stderr)
            if not trace_ends_killed(self.bin / "fraganalyze", trace):
                raise SystemExit(f"{trace} does not say so")
        report = json.loads(self.analyzer("report", trace, "--no-whatif", "--json", "-"))
        return {"what": run.what, "ended": ended, "report": report, "device": report["devices"][0]}, trace

    def predicted(self, trace, run):
        """Peak reserved memory and OOMs of the trace's replay under the run's settings, and the class of the
        prediction."""
        told = json.loads(self.analyzer("replay", trace, "--conf", run.conf, "--json", "-"))
        device = told["devices"][0]
        return device["peak"]["reserved"], device["ooms"], told["class_text"]
