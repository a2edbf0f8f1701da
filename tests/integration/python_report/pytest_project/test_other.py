"""A module after one whose last tests ran elsewhere: its fixtures begin anew."""

import os
import pathlib

import pytest


@pytest.fixture(scope="module", autouse=True)
def of_this_module():
    yield


def test_plain_again():
    assert int(pathlib.Path("plain.pid").read_text()) == os.getpid()
