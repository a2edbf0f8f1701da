"""Tests whose outcomes test_pytest_plugin.py knows."""

import ctypes
import os
import pathlib
import warnings

import pytest

MIB = 2**20


def allocate(mib):
    cuda = ctypes.CDLL("libcudart.so.13")
    address = ctypes.c_void_p()
    status = cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib * MIB))
    if status:
        raise MemoryError(f"no {mib} MiB")
    return address


@pytest.fixture(scope="module")
def module_value():
    yield "of the module"


def test_plain(where, module_value):
    assert where == os.getpid()
    pathlib.Path("plain.pid").write_text(str(os.getpid()))


@pytest.mark.gpu_memory(max_reserved="100 MiB", max_allocated=100 * MIB, no_oom=True)
def test_at_the_limit(where):
    assert where == os.getpid() != int(pathlib.Path("plain.pid").read_text())
    allocate(100)


@pytest.mark.gpu_memory(max_reserved="99 MiB")
def test_above_the_limit(module_value):
    print("some output")
    allocate(100)


@pytest.mark.gpu_memory(no_oom=True, card="1GiB,context=0")
def test_caught_oom():
    allocate(600)
    with pytest.raises(MemoryError):
        allocate(500)


@pytest.mark.gpu_memory(card="1GiB")
def test_allowed_oom():
    with pytest.raises(MemoryError):
        allocate(2000)


@pytest.mark.gpu_memory(card="1GiB")
def test_uncaught_oom():
    value = 17
    allocate(2000 + value)


@pytest.mark.gpu_memory()
def test_crashes():
    print("before the crash")
    allocate(10)
    ctypes.string_at(0)


@pytest.mark.gpu_memory()
def test_exits():
    os._exit(3)


@pytest.mark.gpu_memory()
def test_skips_itself():
    pytest.skip("not today")


@pytest.mark.skip(reason="never")
@pytest.mark.gpu_memory()
def test_is_skipped():
    raise AssertionError


@pytest.mark.xfail(reason="too much memory")
@pytest.mark.gpu_memory(max_reserved="1 MiB")
def test_expected_to_exceed():
    allocate(2)


@pytest.mark.xfail(strict=True)
@pytest.mark.gpu_memory(max_reserved="1 MiB")
def test_expected_to_exceed_strictly():
    allocate(2)


@pytest.mark.xfail(strict=True)
@pytest.mark.gpu_memory(max_reserved="10 MiB")
def test_unexpectedly_within():
    allocate(2)


@pytest.mark.xfail(raises=KeyError)
@pytest.mark.gpu_memory(max_reserved="1 MiB")
def test_another_failure_is_expected():
    allocate(2)


@pytest.mark.gpu_memory(max_allocated="4 MiB")
@pytest.mark.parametrize("mib", [3, 4, 5])
def test_parameters(mib, doubled):
    assert doubled in (2, 4)
    allocate(mib)


@pytest.mark.gpu_memory(max_reserved="10 MiB")
class TestClass:
    def test_inherits(self):
        allocate(11)

    @pytest.mark.gpu_memory(max_reserved="12 MiB")
    def test_overrides(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        allocate(11)


@pytest.fixture
def breaks():
    raise RuntimeError("no fixture")


@pytest.fixture
def breaks_later():
    yield
    raise RuntimeError("no teardown")


@pytest.mark.gpu_memory()
def test_broken_fixture(breaks):
    pass


@pytest.mark.gpu_memory()
def test_broken_teardown(breaks_later):
    pass


@pytest.mark.gpu_memory()
def test_warns_and_gets_options(request):
    warnings.warn("be careful", DeprecationWarning, stacklevel=1)
    assert request.config.getoption("--word") == "given"


@pytest.mark.gpu_memory(max_reserve="1 MiB")
def test_mistyped():
    pass


@pytest.mark.gpu_memory(max_reserved="many")
def test_no_size():
    pass


@pytest.mark.gpu_memory(card="24 apples")
def test_no_card():
    pass
