"""pytest plugin: tests with limits for GPU memory, each in a process of its own under the recorder.

    @pytest.mark.gpu_memory(max_reserved="4 GiB", no_oom=True, card="24GiB")
    def test_step(): ...

docs/python.md describes the mark and the options. The process runs pytest again, for this test alone, so
that fixtures, parameters, classes, xfail and skip work as usual. Its results are those of the test.
"""

from __future__ import annotations

import builtins
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from . import _files, _pytest_child
from ._analyzer import Error, parse_size
from .report import load

if TYPE_CHECKING:
    from .report import Report

DEFAULT_CARD = "80GiB"  # has room for most tests, so that the limits decide
REAL = "real"
KEYS = ("max_reserved", "max_allocated", "no_oom", "card")
PROPERTIES = ("gpu_peak_allocated_bytes", "gpu_peak_reserved_bytes", "gpu_ooms")
INCOMPLETE = "gpu_incomplete"  # property of a test whose figures are lower bounds: why
# The variables of the recorder that a test inherits: they change no figure. Others, such as FRAGTRACE_OFF and
# FRAGTRACE_MIN_BYTES, would leave memory out.
HARMLESS = {
    "FRAGTRACE_COMPRESSION",
    "FRAGTRACE_KEEP_FREE",
    "FRAGTRACE_NVTX",
    "FRAGTRACE_PREFIX",
    "FRAGTRACE_RING_DIRECTORY",
    "FRAGTRACE_STACKS",
    "FRAGTRACE_STACK_DEPTH",
    "FRAGTRACE_VIRTUAL_GPU",
    "FRAGTRACE_VIRTUAL_GPU_DEBUG",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpu_memory", "GPU memory (fragtrace)")
    group.addoption(
        "--gpu-memory",
        action="store_true",
        help="run every test in a process of its own under the recorder, and list the peaks of GPU memory",
    )
    group.addoption(
        "--gpu-memory-card",
        metavar="CARD",
        help="the card of all tests, whatever their mark says: a virtual GPU such as 24GiB or A100-80GB, or "
        f"'real' (default: the mark's card, otherwise a virtual GPU of {DEFAULT_CARD})",
    )
    group.addoption(
        "--gpu-memory-traces",
        metavar="DIR",
        help="keep the traces of the tests, in a folder for each test (default: remove them)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "gpu_memory(max_reserved=SIZE, max_allocated=SIZE, no_oom=True, card=CARD): run the test in a "
        "process of its own under fragtrace's recorder, and fail if it needs more GPU memory",
    )


@dataclasses.dataclass
class Limits:
    """The arguments of the mark. The mark closest to the test wins."""

    max_reserved: int | None = None
    max_allocated: int | None = None
    no_oom: bool = False
    card: str = DEFAULT_CARD

    def any(self) -> bool:
        return self.no_oom or self.max_reserved is not None or self.max_allocated is not None


@dataclasses.dataclass
class Figures:
    """What was measured of one process: the device with most, and out-of-memories of all devices."""

    allocated: int = 0
    reserved: int = 0
    ooms: int = 0
    # Why the figures may be too low; empty: they are complete.
    reasons: list[str] = dataclasses.field(default_factory=list)


def _limits(item: pytest.Item) -> Limits | None:
    """None: the test runs as usual. Raises Error for a mark that cannot be understood."""
    marks = list(item.iter_markers("gpu_memory"))
    if not marks and not item.config.getoption("--gpu-memory"):
        return None
    given: dict[str, Any] = {}
    for mark in reversed(marks):
        if mark.args:
            raise Error(f"gpu_memory{mark.args}: name the arguments, such as max_reserved='4 GiB'")
        given.update(mark.kwargs)
    for key in given:
        if key not in KEYS:
            raise Error(f"gpu_memory: unknown argument '{key}'; use one of {', '.join(KEYS)}")
    no_oom = given.get("no_oom", False)
    if not isinstance(no_oom, bool):
        raise Error(f"gpu_memory: no_oom is {no_oom!r}; give True or False")
    card = given.get("card", DEFAULT_CARD)
    if not isinstance(card, str):
        raise Error(f"gpu_memory: card is {card!r}; give a text such as '24GiB'")
    limits = Limits(no_oom=no_oom)
    for key in ("max_reserved", "max_allocated"):
        if given.get(key) is not None:
            try:
                setattr(limits, key, parse_size(given[key]))
            except Error as error:
                raise Error(f"gpu_memory: {key}: {error}") from None
    limits.card = str(item.config.getoption("--gpu-memory-card") or card)
    return limits


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if item.config.pluginmanager.hasplugin(_pytest_child.NAME):
        return None  # this is the process of the test
    try:
        limits = _limits(item)
        if limits is None:
            return None
        reports = _Run(item, limits).reports()
    except Error as error:
        reports = [_report(item, "setup", "failed", str(error))]
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    _end_fixtures(item, nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _end_fixtures(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Ends fixtures of earlier tests in this process that no later test needs, as pytest does."""
    state = item.session._setupstate  # pytest has no public name for it
    call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), when="teardown")
    if call.excinfo is not None:
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)


def _report(item: pytest.Item, when: Any, outcome: Any, text: str | None = None) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={name: 1 for name in item.keywords},
        outcome=outcome,
        longrepr=text,
        when=when,
    )


class _Run:
    """One test in its own process."""

    def __init__(self, item: pytest.Item, limits: Limits) -> None:
        self.item = item
        self.config = item.config
        self.limits = limits
        self.process: dict[str, Any] | None = None  # what it said about itself at its end

    def reports(self) -> list[pytest.TestReport]:
        launcher = _files.program("fragtrace")
        if launcher is None:
            raise Error(
                "the program fragtrace is not installed beside the Python package. Put its folder on PATH, "
                "or let FRAGTRACE_PREFIX name the folder with its `bin` and `lib`."
            )
        with tempfile.TemporaryDirectory(prefix="fragtrace-pytest-") as temporary:
            folder = pathlib.Path(temporary)
            traces = self.folder_of_traces() or folder / "traces"
            before = set(traces.glob("*.ftrace"))
            done = subprocess.run(
                [str(launcher), "run", "--quiet", "-o", str(traces), *self.card(), "--",
                 sys.executable, "-c", _pytest_child.PROGRAM, str(self.request(folder))],
                cwd=str(self.config.invocation_params.dir),
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )  # fmt: skip
            reports = self.results(folder / "results")
            if len(reports) < 2 or reports[-1].when != "teardown":
                reports += self.missing(reports, done)
            self.judge(reports, self.figures_of(sorted(set(traces.glob("*.ftrace")) - before)))
            if reports[-1].when == "teardown" and done.returncode > 128:
                text = f"After the test, its process was ended by {_signal(done.returncode)}."
                reports[-1].sections.append(("fragtrace", text))
        self.show_output(reports)
        return reports

    def folder_of_traces(self) -> pathlib.Path | None:
        kept = self.config.getoption("--gpu-memory-traces")
        if not kept:
            return None
        name = re.sub(r"[^\w.-]+", "_", self.item.nodeid)[-200:]
        return pathlib.Path(self.config.invocation_params.dir, kept, name)

    def card(self) -> list[str]:
        return [] if self.limits.card == REAL else ["--virtual-gpu", self.limits.card]

    def request(self, folder: pathlib.Path) -> pathlib.Path:
        """What the process of the test needs to know, as a file."""
        config = self.config
        arguments = [str(word) for word in config.invocation_params.args]
        arguments += [f"--rootdir={config.rootpath}", "--capture=fd"]
        if config.inipath is not None:
            arguments.append(f"--config-file={config.inipath}")
        if config.pluginmanager.hasplugin("xdist"):
            arguments.append("-n0")
        if config.pluginmanager.hasplugin("pytest_cov"):
            arguments.append("--no-cov")  # its own hook in subprocesses still measures
        options = {}
        if hasattr(config, "workerinput"):  # a worker of xdist was started without the options
            options = {key: value for key, value in vars(config.option).items() if _is_plain(value)}
        file = folder / "request.json"
        file.write_text(
            json.dumps(
                {
                    "arguments": arguments,
                    "options": options,
                    "sys_path": sys.path,
                    "rootdir": str(config.rootpath),
                    "nodeid": self.item.nodeid,
                    "results": str(folder / "results"),
                }
            )
        )
        return file

    def results(self, file: pathlib.Path) -> list[pytest.TestReport]:
        reports = []
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        for line in lines:
            if not line.endswith("\n"):
                break  # the process ended while it wrote this line
            entry = json.loads(line)
            if "warning" in entry:
                self.warn(entry["warning"])
                continue
            if "process" in entry:
                self.process = entry["process"]
                continue
            report = self.config.hook.pytest_report_from_serializable(
                config=self.config, data=entry["report"]
            )
            # JSON has no tuples, which pytest expects.
            report.location = tuple(report.location)
            report.sections = [tuple(section) for section in report.sections]
            report.user_properties = [tuple(value) for value in report.user_properties]
            if isinstance(report.longrepr, list):  # why it was skipped, and where
                report.longrepr = tuple(report.longrepr)
            reports.append(report)
        return reports

    def warn(self, entry: dict[str, Any]) -> None:
        category = getattr(builtins, entry["category"], None)
        if not (isinstance(category, type) and issubclass(category, Warning)):
            category = UserWarning
        message = warnings.WarningMessage(
            message=category(entry["message"]),
            category=category,
            filename=entry["filename"],
            lineno=entry["lineno"],
        )
        self.config.hook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": message,
                "nodeid": self.item.nodeid,
                "when": "runtest",
                "location": None,
            }
        )

    def missing(
        self, reports: list[pytest.TestReport], done: subprocess.CompletedProcess[str]
    ) -> list[pytest.TestReport]:
        """Reports for the phases of the test that its process did not reach."""
        when = "setup"
        for report in reports:
            when = "call" if report.when == "setup" else "teardown"
        output = [("stderr", _without_launcher(done.stderr))]  # of a crash: the lines of the fault handler
        if done.returncode > 128:
            text = f"The process of the test was ended by {_signal(done.returncode)}."
        else:
            text = f"The process of the test ended with exit code {done.returncode} before the test was over."
            output.insert(0, ("stdout", done.stdout))  # pytest's own words
        failed = _report(self.item, when, "failed", text)
        failed.sections += [(f"{name} of the process", text) for name, text in output if text.strip()]
        return [failed] if when == "teardown" else [failed, _report(self.item, "teardown", "passed")]

    def figures_of(self, traces: list[pathlib.Path]) -> list[tuple[pathlib.Path, Figures]]:
        """The figures of each recorded process. Without a trace: zeros, or why they are not known."""
        found = []
        processes = set()
        for trace in traces:
            with load(trace, whatif=False) as run:
                found.append((trace, _figures(run)))
                processes.add(run.json["source"]["process"])
        unmeasured = []
        if self.process is not None:
            if not self.process["recorder"]:
                unmeasured.append("the recorder was not loaded into the process of the test")
            elif self.process["uses_gpu"] and self.process["id"] not in processes:
                unmeasured.append("the process of the test used a GPU and left no trace")
        if unmeasured or not found:
            found.append((pathlib.Path(), Figures(reasons=unmeasured)))
        return found

    def judge(self, reports: list[pytest.TestReport], measured: list[tuple[pathlib.Path, Figures]]) -> None:
        """Compares the recordings with the limits, and writes the result into the report of the test."""
        report = next((one for one in reports if one.when == "call"), reports[0])
        if report.skipped and not hasattr(report, "wasxfail"):
            return
        problems: list[str] = []
        for trace, figures in measured:
            mine = self.problems(figures)
            problems += mine
            if mine or (report.failed and figures.ooms):
                with load(trace) as run:
                    problems += run.verdict.splitlines()
        reasons = sorted({reason for _, figures in measured for reason in figures.reasons})
        for one in reports:  # JUnit's XML takes those of the teardown
            one.user_properties += [
                (PROPERTIES[0], max(figures.allocated for _, figures in measured)),
                (PROPERTIES[1], max(figures.reserved for _, figures in measured)),
                (PROPERTIES[2], sum(figures.ooms for _, figures in measured)),
            ]
            if reasons:
                one.user_properties.append((INCOMPLETE, "; ".join(reasons)))
        if reasons and self.limits.any() and not problems:
            self.fail_unmeasured(report, reasons)
        elif problems:
            self.fail(report, "\n".join(problems))

    def fail_unmeasured(self, report: pytest.TestReport, reasons: list[str]) -> None:
        """Limits that nobody can judge are not kept. An expected failure must not hide this."""
        text = "The test was not measured completely, so its limits cannot be judged: " + "; ".join(reasons)
        if report.failed and not _is_unexpected_pass(report):
            report.sections.append(("GPU memory", text))
            return
        if report.outcome == "skipped":
            return  # failed as expected, by itself
        if hasattr(report, "wasxfail"):
            del report.wasxfail
        report.outcome = "failed"
        report.longrepr = text

    def fail(self, report: pytest.TestReport, text: str) -> None:
        """Limits were exceeded."""
        if report.failed and not _is_unexpected_pass(report):
            report.sections.append(("GPU memory", text))
            return
        expected = self.item.get_closest_marker("xfail")
        if (hasattr(report, "wasxfail") or _is_unexpected_pass(report)) and expected is not None:
            if report.outcome == "skipped":
                return  # failed as expected
            if expected.kwargs.get("raises") is None:
                report.outcome = "skipped"
                report.wasxfail = str(expected.kwargs.get("reason", ""))
                report.longrepr = text
                return
            del report.wasxfail
        report.outcome = "failed"
        report.longrepr = text

    def problems(self, figures: Figures) -> list[str]:
        found = []
        for name, peak, limit in (
            ("allocated", figures.allocated, self.limits.max_allocated),
            ("reserved", figures.reserved, self.limits.max_reserved),
        ):
            if limit is not None and peak > limit:
                found.append(f"peak {name} {peak:,} B, {peak - limit:,} B above max_{name}={limit:,} B")
        if self.limits.no_oom and figures.ooms:
            found.append(
                f"{figures.ooms} out-of-memory{'' if figures.ooms == 1 else 's'}, although no_oom=True"
            )
        return found

    def show_output(self, reports: list[pytest.TestReport]) -> None:
        """With -s, pytest shows output as it comes. Here it comes when the process has ended."""
        if self.config.getoption("capture", "fd") != "no":
            return
        for report in reports:
            for name, text in report.sections:
                if name.startswith("Captured"):
                    (sys.stderr if "stderr" in name else sys.stdout).write(text)
            report.sections = [part for part in report.sections if not part[0].startswith("Captured")]


def _figures(run: Report) -> Figures:
    figures = Figures(ooms=len(run.ooms), reasons=_reasons(run.json))
    for device in run.devices:
        peak, past = device["peak"], device["past_pool"]
        # Memory that PyTorch requested while its caching was off is in no peak of the pool.
        figures.allocated = max(figures.allocated, peak["allocated"], past["peak"])
        figures.reserved = max(figures.reserved, peak["reserved"], past["peak_with_reserved"])
        if past["peak"] and peak["allocated"]:
            figures.reasons.append("PyTorch's caching was on and off, and only each part has a peak")
    return figures


def _reasons(report: dict[str, Any]) -> list[str]:
    """Why figures of this recording may be too low. docs/schema/report.json has the keys."""
    source, recording = report["source"], report["recording"]
    found = []
    if source["events_lost"]:
        found.append(f"{source['events_lost']:,} events were lost")
    if source["bytes_unreadable"] or source["events_unfinished"]:
        found.append("a part of the trace cannot be read")
    if recording["gaps"]:
        found.append("recording was stopped for a part of the test")
    if source["ended"] == "running":
        found.append(f"process {source['process']} still runs")
    if source["ended"] == "continued":
        found.append("the trace has only a part of the run")
    if "options.min_bytes" in report["facts"]:
        found.append("small blocks were left out")
    # A killed process leaves its last events in the ring.
    found += [warning for warning in report["warnings"] if " ring " in warning]
    return found


def _environment() -> dict[str, str]:
    """That of the test: without the variables that would leave memory out of its trace."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FRAGTRACE_") or name in HARMLESS
    }


def _is_unexpected_pass(report: pytest.TestReport) -> bool:
    return report.failed and str(report.longrepr).startswith("[XPASS(strict)]")


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _signal(returncode: int) -> str:
    try:
        return f"signal {returncode - 128} ({signal.Signals(returncode - 128).name})"
    except ValueError:
        return f"signal {returncode - 128}"


def _without_launcher(text: str) -> str:
    """Standard error without the command that analyses the trace, which fragtrace prints at the end."""
    return "".join(line for line in text.splitlines(keepends=True) if "fraganalyze" not in line)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not terminalreporter.config.getoption("--gpu-memory"):
        return
    rows = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            found = dict(getattr(report, "user_properties", ()))
            if getattr(report, "when", None) == "call" and PROPERTIES[0] in found:
                name = report.nodeid + (f" (at least: {found[INCOMPLETE]})" if INCOMPLETE in found else "")
                rows.append([*(found[key] for key in PROPERTIES), name])
    if rows:
        terminalreporter.section("GPU memory")
        terminalreporter.write_line(f"{'peak allocated':>18} {'peak reserved':>18} {'OOMs':>5}  test")
        for allocated, reserved, ooms, nodeid in sorted(rows, key=lambda row: -row[1]):
            terminalreporter.write_line(f"{allocated:>16,} B {reserved:>16,} B {ooms:>5}  {nodeid}")
