import os

import pytest


def pytest_addoption(parser):
    parser.addoption("--word", default="none")


@pytest.fixture(scope="session")
def where():
    return os.getpid()


@pytest.fixture(params=[1, 2])
def doubled(request):
    yield request.param * 2
    print("doubled ends")
