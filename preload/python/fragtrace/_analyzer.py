"""The functions of libfraganalyze.so (fragtrace/analyze.h), loaded at their first use."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any, Union

from . import _files

Path = Union[str, "os.PathLike[str]"]


class Error(Exception):
    """One line that says what is wrong, where, and what to do."""


class Schema(ctypes.Structure):
    """ArrowSchema of the Arrow C data interface. Only `release` is used here."""

    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    ]


class Array(ctypes.Structure):
    """ArrowArray of the same interface."""

    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    ]


_TEXT = ctypes.c_char_p
_OWNED = ctypes.c_void_p  # a text that is to be freed
_HANDLE = ctypes.c_void_p
_ERROR = ctypes.POINTER(ctypes.c_void_p)
_FUNCTIONS = {
    "fraganalyze_version": (_TEXT, ()),
    "fraganalyze_free": (None, (_OWNED,)),
    "fraganalyze_parse_size": (ctypes.c_int, (_TEXT, ctypes.POINTER(ctypes.c_uint64), _ERROR)),
    "fraganalyze_load": (_HANDLE, (_TEXT, _TEXT, _TEXT, ctypes.c_int, _ERROR)),
    "fraganalyze_load_with": (_HANDLE, (_TEXT, _TEXT, _TEXT, _TEXT, ctypes.c_int, _ERROR)),
    "fraganalyze_load_events": (
        _HANDLE,
        (_TEXT, _TEXT, _TEXT, _TEXT, ctypes.c_int, ctypes.c_uint64, _ERROR),
    ),
    "fraganalyze_close": (None, (_HANDLE,)),
    "fraganalyze_json": (_OWNED, (_HANDLE, _ERROR)),
    "fraganalyze_verdict": (_OWNED, (_HANDLE, _ERROR)),
    "fraganalyze_text": (_OWNED, (_HANDLE, _ERROR)),
    "fraganalyze_whatif": (_OWNED, (_HANDLE, _ERROR)),
    "fraganalyze_replay": (_OWNED, (_HANDLE, ctypes.c_uint, _TEXT, _TEXT, _TEXT, _ERROR)),
    "fraganalyze_page": (_OWNED, (_HANDLE, ctypes.c_void_p, _ERROR)),
    "fraganalyze_write_page": (ctypes.c_int, (_HANDLE, _TEXT, _ERROR)),
    "fraganalyze_table": (
        ctypes.c_int,
        (_HANDLE, _TEXT, ctypes.POINTER(Schema), ctypes.POINTER(Array), _ERROR),
    ),
}


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library. Its calls release the GIL. Raises Error if it is missing."""
    path = _files.library("libfraganalyze.so")
    if path is None:
        raise Error(
            "libfraganalyze.so is not installed beside the Python package fragtrace. Build and install "
            "fragtrace, or let FRAGTRACE_PREFIX name the folder with its `bin` and `lib`."
        )
    try:
        loaded = ctypes.CDLL(str(path))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise Error(f"{path} cannot be used: {error}") from None
    return loaded


def _taken(text: ctypes.c_void_p) -> str:
    """The text at this address, which is freed."""
    try:
        value = ctypes.cast(text, ctypes.c_char_p).value or b""
        return value.decode("utf-8", "replace")
    finally:
        library().fraganalyze_free(text)


def call(name: str, *arguments: Any) -> Any:
    """Calls a function whose last parameter is the error. Returns its result. Raises Error."""
    error = ctypes.c_void_p()
    result = getattr(library(), name)(*arguments, ctypes.byref(error))
    if error:
        raise Error(_taken(error))
    if result is None or result == -1:
        raise Error(f"{name} failed without a reason")
    return result


def text(name: str, *arguments: Any) -> str:
    """Calls a function that returns a text."""
    return _taken(ctypes.c_void_p(call(name, *arguments)))


def encoded(value: str | None) -> bytes | None:
    """A text for the library. Raises Error if it has a null byte, where the library would cut it."""
    if value is None:
        return None
    if "\0" in value:
        raise Error(f"{value!r} has a null byte")
    return value.encode("utf-8", "surrogateescape")


def encoded_path(path: Path) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise Error(f"{os.fsdecode(name)!r} has a null byte")
    return name


def parse_size(size: int | str) -> int:
    """Bytes of a size: a number of bytes, or a text such as "4 GiB". Raises Error."""
    if isinstance(size, bool) or not isinstance(size, (int, str)):
        raise Error(f"{size!r} is no size: give a number of bytes, or a text such as '4 GiB'")
    if isinstance(size, int):
        if size < 0:
            raise Error(f"{size} is no size: it is negative")
        return size
    bytes_ = ctypes.c_uint64()
    call("fraganalyze_parse_size", encoded(size), ctypes.byref(bytes_))
    return bytes_.value
