"""Reports on recorded runs: what `fraganalyze` computes, as Python objects.

import fragtrace

report = fragtrace.load("train.myhost.4711.ftrace")
print(report.verdict)
for row in report.holders:
    print(row["bytes"], row["label"])
frame = report.blocks().to_pandas()
"""

from __future__ import annotations

import contextlib
import ctypes
import html
import json
import os
import pathlib
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Union

from . import _analyzer
from ._analyzer import Error, Path

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from typing_extensions import Self

Size = Union[int, str]

# Larger pages would make a notebook slow to open, because the notebook's file contains them.
LARGEST_PAGE_IN_NOTEBOOK_BYTES = 16 << 20


def load(
    path: Path,
    *,
    whatif: bool = True,
    capacity: Size | None = None,
    torch_version: str | None = None,
    categories: Path | None = None,
    events: int | str | None = None,
) -> Report:
    """Reads and analyses a trace, or a memory snapshot of PyTorch.

    whatif         also replay other settings, pools, cards and remedies, as `fraganalyze TRACE` does.
                   False is faster; no remedy is known then
    capacity       memory that the pool may use: bytes, or a text such as "16GiB" (default: as recorded)
    torch_version  release whose allocator rules are replayed, such as "2.6" (default: as recorded)
    categories     file with rules for categories of your own, or the name of one that fragtrace brings,
                   such as "transformers" (default: only the built-in categories)
    events         limit for the events in memory, or "all". A longer trace is read in part: around failures,
                   peaks and the end. `json["source"]["events_read"]` is the number (default: 12,000,000)

    Raises Error if the file cannot be read.
    """
    name = _analyzer.encoded_path(path)
    handle = _analyzer.call(
        "fraganalyze_load_events",
        name,
        _size_text(capacity),
        _analyzer.encoded(torch_version),
        None if categories is None else _analyzer.encoded_path(categories),
        1 if whatif else 0,
        _most_events(events),
    )
    return Report(os.fsdecode(name), handle)


def _most_events(events: int | str | None) -> int:
    """For the C function: FRAGANALYZE_USUAL_EVENTS, FRAGANALYZE_ALL_EVENTS or a number."""
    if events is None:
        return 0
    if events == "all":
        return 2**64 - 1
    if isinstance(events, bool) or not isinstance(events, int) or not 0 < events < 2**64:
        raise Error(f"events: {events!r} is neither 'all' nor a number of events")
    return events


def _size_text(size: Size | None) -> bytes | None:
    if size is None:
        return None
    return _analyzer.encoded(size if isinstance(size, str) else str(_analyzer.parse_size(size)))


class Report:
    """One analysed recording. Made by load(). Can be used from several threads.

    Sizes are bytes, times are nanoseconds since the start of the recording. Figures that the recording
    does not have are None.
    """

    def __init__(self, path: str, handle: int) -> None:
        self.path = path
        self._handle = handle
        self._json: dict[str, Any] | None = None
        self._lock = threading.RLock()  # so that no thread closes what another one uses
        self._release = weakref.finalize(self, _analyzer.library().fraganalyze_close, handle)

    def close(self) -> None:
        """Frees the memory of the recording now. Tables that were made before stay valid."""
        with self._lock:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _call(self, name: str, *arguments: Any) -> Any:
        with self._lock:
            return _analyzer.call(name, self._open(), *arguments)

    def _text(self, name: str, *arguments: Any) -> str:
        with self._lock:
            return _analyzer.text(name, self._open(), *arguments)

    def _open(self) -> int:
        if not self._release.alive:
            raise Error(f"{self.path}: this report is closed")
        return self._handle

    @property
    def json(self) -> dict[str, Any]:
        """The document of `fraganalyze TRACE --json`. docs/schema/report.json describes its keys."""
        if self._json is None:
            self._json = json.loads(self._text("fraganalyze_json"))
        assert self._json is not None
        return self._json

    @property
    def verdict(self) -> str:
        """What happened, which line of the program is responsible, and what to change."""
        return self._text("fraganalyze_verdict").rstrip("\n")

    @property
    def text(self) -> str:
        """The whole report as text."""
        return self._text("fraganalyze_text")

    @property
    def devices(self) -> list[dict[str, Any]]:
        """The devices of the process, with their peaks (`devices` of the JSON)."""
        return self.json["devices"]  # type: ignore[no-any-return]

    @property
    def ooms(self) -> list[dict[str, Any]]:
        """The out-of-memories, with verdict and culprits (`ooms` of the JSON)."""
        return self.json["ooms"]  # type: ignore[no-any-return]

    @property
    def retries(self) -> list[dict[str, Any]]:
        """The requests that succeeded after the allocator had released memory."""
        return self.json["retries"]  # type: ignore[no-any-return]

    @property
    def holders(self) -> list[dict[str, Any]]:
        """The lines of the program that hold memory, most bytes first for each device.

        They are those at the out-of-memory that the report is about, otherwise at the device's peak of
        allocated memory. Each row has the keys of the JSON (`label`, `category`, `bytes`, `blocks`), and
        `device`, `event` and `at` ("out_of_memory" or "peak").
        """
        rows: list[dict[str, Any]] = []
        for device in self.devices:
            at, held = "peak", device.get("holders")
            for oom in self.ooms:
                if oom.get("device") == device["index"] and oom.get("holders"):
                    at, held = "out_of_memory", oom["holders"]
                    break
            if held:
                common = {"device": device["index"], "at": at, "event": held["event"]}
                rows += [{**common, **place} for place in held["places"]]
        return rows

    def whatif(self) -> dict[str, Any]:
        """The document of `fraganalyze whatif --json`: more replays than in `json`. Takes longest."""
        return json.loads(self._text("fraganalyze_whatif"))  # type: ignore[no-any-return]

    def replay(
        self,
        *,
        conf: str | None = None,
        capacity: Size | None = None,
        pool: str | None = None,
        device: int = 0,
    ) -> dict[str, Any]:
        """The document of `fraganalyze replay --json`: one replay of the recorded requests.

        conf      settings of the pool, as in PYTORCH_CUDA_ALLOC_CONF (default: as recorded)
        capacity  as in load()
        pool      a simulated pool, NAME or NAME:SETTINGS (default: as recorded)
        device    the number of a device of this recording
        """
        known = [one["index"] for one in self.devices]
        if isinstance(device, bool) or not isinstance(device, int) or (known and device not in known):
            numbers = ", ".join(map(str, known)) or "none"
            raise Error(f"{self.path}: there is no device {device!r}; devices of this recording: {numbers}")
        return json.loads(  # type: ignore[no-any-return]
            self._text(
                "fraganalyze_replay",
                device,
                _analyzer.encoded(conf),
                _size_text(capacity),
                _analyzer.encoded(pool),
            )
        )

    def blocks(self) -> Table:
        """One row for each block that was read, with its life. docs/python.md lists the columns."""
        return Table(self._call, "blocks")

    def events(self) -> Table:
        """One row for each event that was read. docs/python.md lists the columns."""
        return Table(self._call, "events")

    def page(self) -> str:
        """The page as one HTML document."""
        return self._text("fraganalyze_page", None)

    def html(self, path: Path) -> None:
        """Writes the page to a file. An existing file is replaced only if fraganalyze wrote it."""
        self._call("fraganalyze_write_page", _analyzer.encoded_path(path))

    def __repr__(self) -> str:
        if not self._release.alive:
            return f"<fragtrace report on {self.path}, closed>"
        return f"<fragtrace report on {self.path}>\n{self.verdict}"

    def _repr_html_(self) -> str:
        """For notebooks: the page in a frame of its own. A page that is too large goes to a file."""
        page = self.page()
        size = len(page.encode())
        if size <= LARGEST_PAGE_IN_NOTEBOOK_BYTES:
            return (
                '<iframe sandbox="allow-scripts" style="width:100%;height:720px;border:1px solid #8888" '
                f'srcdoc="{html.escape(page)}"></iframe>'
            )
        file = pathlib.Path(self.path).name + ".html"
        limit = f"{LARGEST_PAGE_IN_NOTEBOOK_BYTES / 2**20:.0f} MiB"
        about = f"The page has {size / 2**20:.1f} MiB, more than a notebook should contain ({limit}). "
        try:
            self.html(file)
            about += f"It was written to {os.path.abspath(file)}."
        except Error as error:
            about += f"It could not be written: {error}"
        return f"<pre>{html.escape(self.verdict)}</pre><p>{html.escape(about)}</p>"


class Table:
    """A table of a report, in memory. Needs pyarrow (`pip install fragtrace[data]`) to be read.

    pyarrow reads the columns where they are; no row is copied.
    """

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        self._arrow: pyarrow.RecordBatch | None = None
        with _required("pyarrow", "tables"):
            import pyarrow
        schema, array = _analyzer.Schema(), _analyzer.Array()
        call("fraganalyze_table", name.encode(), ctypes.byref(schema), ctypes.byref(array))
        # pyarrow takes over what both point to.
        self._arrow = pyarrow.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))

    @property
    def column_names(self) -> list[str]:
        return list(self.to_arrow().schema.names)

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def to_arrow(self) -> pyarrow.Table:
        """The table for pyarrow."""
        import pyarrow

        return pyarrow.Table.from_batches([self._arrow])

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame. Numbers stay exact: columns with missing values have pandas' nullable types."""
        with _required("pandas", "to_pandas()"):
            import pandas
        import pyarrow

        types = {
            pyarrow.uint8(): pandas.UInt8Dtype(),
            pyarrow.uint16(): pandas.UInt16Dtype(),
            pyarrow.uint32(): pandas.UInt32Dtype(),
            pyarrow.uint64(): pandas.UInt64Dtype(),
        }
        return self.to_arrow().to_pandas(types_mapper=types.get)

    def to_parquet(self, path: Path) -> None:
        """Writes the table to a Parquet file. Raises Error if it cannot be written."""
        with _required("pyarrow", "to_parquet()"):
            import pyarrow.parquet
        with _writing(path):
            pyarrow.parquet.write_table(self.to_arrow(), os.fsdecode(path))


@contextlib.contextmanager
def _required(package: str, what: str) -> Any:
    try:
        yield
    except ImportError as error:
        raise Error(f"{what} need {package}: pip install 'fragtrace[data]' ({error})") from None


@contextlib.contextmanager
def _writing(path: Path) -> Any:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise Error(f"{os.fsdecode(path)}: {reason}") from None


def to_parquet(
    paths: Path | Iterable[Path], folder: Path, *, events: int | str | None = None
) -> list[pathlib.Path]:
    """Writes the tables of many runs as Parquet files, to be read as one data set.

    FOLDER/blocks/run=NAME/part.parquet and FOLDER/events/run=NAME/part.parquet, where NAME is the trace's
    name without `.ftrace`. pyarrow, pandas, DuckDB, Spark and others read FOLDER/blocks as one table with the
    column `run`. `paths` can also be one trace. `events` is that of load(): the files of a longer trace have
    only a part of it. Existing files of the same runs are replaced. Returns the written files.

    Raises Error if a trace cannot be read or a file cannot be written.
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]
    traces = [pathlib.Path(os.fsdecode(path)) for path in paths]
    names = [trace.name[: -len(".ftrace")] if trace.suffix == ".ftrace" else trace.name for trace in traces]
    for name in names:
        if names.count(name) > 1:
            raise Error(f"{name}: two runs have this name; rename one, or use two folders")
    written = []
    for trace, name in zip(traces, names):
        with load(trace, whatif=False, events=events) as report:
            for kind in ("blocks", "events"):
                file = pathlib.Path(os.fsdecode(folder), kind, f"run={name}", "part.parquet")
                with _writing(file.parent):
                    file.parent.mkdir(parents=True, exist_ok=True)
                (report.blocks() if kind == "blocks" else report.events()).to_parquet(file)
                written.append(file)
    return written
