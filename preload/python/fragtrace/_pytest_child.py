"""The process of one test that pytest_plugin.py runs: pytest with this test alone.

It writes pytest's reports into a file, one JSON object per line.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

import pytest

from . import _recorder

NAME = "fragtrace-process-of-a-test"
PROGRAM = """
import json, sys
request = json.load(open(sys.argv[1], encoding="utf-8"))
sys.path[:] = request["sys_path"]
from fragtrace import _pytest_child
sys.exit(_pytest_child.main(request))
"""


class Child:
    __name__ = NAME  # pytest registers the plugin under this name

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.results = open(request["results"], "w", encoding="utf-8")  # noqa: SIM115 (until the end)

    def write(self, entry: dict[str, Any]) -> None:
        # A crash must not lose what is known already.
        print(json.dumps(entry, default=str), file=self.results, flush=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        self.config = config
        vars(config.option).update(self.request["options"])
        config.args = ["{rootdir}/{nodeid}".format(**self.request)]
        # The files of results belong to the process that reports all tests, and so does the terminal.
        for option in ("xmlpath", "report_log", "htmlpath", "usepdb", "trace"):
            if hasattr(config.option, option):
                setattr(config.option, option, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        for name in ("lfplugin", "nfplugin", "stepwiseplugin"):  # they would write pytest's cache
            if session.config.pluginmanager.hasplugin(name):
                session.config.pluginmanager.unregister(name=name)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        torch = sys.modules.get("torch")
        used = torch is not None and torch.cuda.is_initialized()
        self.write({"process": {"id": os.getpid(), "recorder": _recorder.present, "uses_gpu": used}})

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid == self.request["nodeid"]]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.write({"report": data})

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str) -> None:
        if when == "runtest":
            self.write(
                {
                    "warning": {
                        "category": warning_message.category.__name__,
                        "message": str(warning_message.message),
                        "filename": str(warning_message.filename),
                        "lineno": warning_message.lineno,
                    }
                }
            )


def main(request: dict[str, Any]) -> int:
    return int(pytest.main(request["arguments"], plugins=[Child(request)]))
