"""Starts `fragtrace top --serve` and recorded programs for it."""

import contextlib
import http.client
import re
import subprocess
import sys

from real_process import LAUNCHER, SOURCE, environment

CONTROL_CLIENT = SOURCE / "tests" / "integration" / "control" / "client.py"


@contextlib.contextmanager
def recorded_process(folder, *steps, card="1GiB,context=128MiB", **variables):
    """A recorded program that has done its steps and then waits."""
    process = subprocess.Popen(
        [sys.executable, CONTROL_CLIENT, *steps, "write", "sleep=60"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(card, folder, PYTHONPATH=SOURCE / "preload/python", **variables),
    )
    try:
        while "write" not in process.stdout.readline():
            pass
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def server(*arguments):
    """(process, port, its first line on standard error)."""
    process = subprocess.Popen(
        [LAUNCHER, "top", *arguments, "--interval", "0.2"], stderr=subprocess.PIPE, text=True
    )
    try:
        said = process.stderr.readline()
        found = re.search(r"http://(\S+):(\d+)/metrics", said)
        if found is None:
            raise AssertionError(said)
        yield process, int(found[2]), said
    finally:
        process.kill()
        process.communicate()


def get(port, path="/metrics", method="GET", host="127.0.0.1", headers=None):
    """(status, headers, text)."""
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def figures(text):
    """{(name, labels): value}."""
    return {
        (name, labels): int(value)
        for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\d+)$", text, re.MULTILINE)
    }
