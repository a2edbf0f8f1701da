"""Reads Perfetto traces with the message classes of Perfetto's own Python package.

scripts/setup --tests installs the package in a folder of its own.
"""

import collections
import os
import pathlib
import sys

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
sys.path += [str(path) for path in sorted(CACHE.glob("fragtrace/perfetto-*/lib/python3*/site-packages"))]

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
except ImportError:
    protos = None
MISSING = "Perfetto's Python package is not installed (scripts/setup --tests)"

Slice = collections.namedtuple("Slice", "name category begin end arguments depth")  # end None: open
Instant = collections.namedtuple("Instant", "name time arguments")


class Track:
    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.name = descriptor.name
        self.parent = None
        self.counts = []  # (time, value)
        self.slices = []  # in order of their begins
        self.instants = []
        self.open = []

    def path(self):
        """The names from the outermost track on."""
        return [*(self.parent.path() if self.parent else []), self.name]


class PerfettoTrace:
    """Like Perfetto's trace processor: packets in order of time, those of equal time as in the file."""

    def __init__(self, path):
        self.packets = protos.Trace.FromString(pathlib.Path(path).read_bytes()).packet
        self.texts = collections.defaultdict(dict)
        self.tracks = {}
        self.clocks = {}
        self.problems = []
        for packet in self.packets:
            self.read_tables(packet)
        for track in self.tracks.values():
            if track.descriptor.HasField("parent_uuid"):
                track.parent = self.tracks[track.descriptor.parent_uuid]
        for packet in sorted(
            (packet for packet in self.packets if packet.HasField("track_event")),
            key=lambda packet: packet.timestamp,
        ):
            self.read_event(packet.timestamp, packet.track_event)

    def read_tables(self, packet):
        for clock in packet.clock_snapshot.clocks:
            self.clocks[clock.clock_id] = clock.timestamp
        for table, entries in packet.interned_data.ListFields():
            for entry in entries:
                if entry.iid in self.texts[table.name]:
                    self.problems.append(f"{table.name} {entry.iid} has two texts")
                self.texts[table.name][entry.iid] = (
                    entry.str.decode() if "string" in table.name else entry.name
                )
        if packet.HasField("track_descriptor"):
            self.tracks[packet.track_descriptor.uuid] = Track(packet.track_descriptor)

    def arguments_of(self, event):
        result = {}
        for annotation in event.debug_annotations:
            field, value = next(
                (field.name, value)
                for field, value in annotation.ListFields()
                if field.name not in ("name", "name_iid")
            )
            if field == "string_value_iid":
                value = self.texts["debug_annotation_string_values"][value]
            result[self.texts["debug_annotation_names"][annotation.name_iid]] = value
        return result

    def read_event(self, time, event):
        track = self.tracks[event.track_uuid]
        name = self.texts["event_names"].get(event.name_iid)
        kinds = protos.TrackEvent.Type
        if event.type == kinds.TYPE_COUNTER:
            track.counts.append((time, event.counter_value))
        elif event.type == kinds.TYPE_INSTANT:
            track.instants.append(Instant(name, time, self.arguments_of(event)))
        elif event.type == kinds.TYPE_SLICE_BEGIN:
            category = "".join(self.texts["event_categories"][number] for number in event.category_iids)
            track.open.append(len(track.slices))
            track.slices.append(
                Slice(name, category, time, None, self.arguments_of(event), len(track.open) - 1)
            )
        elif track.open:
            number = track.open.pop()
            begun = track.slices[number]
            track.slices[number] = begun._replace(
                end=time, arguments=begun.arguments | self.arguments_of(event)
            )
        else:
            self.problems.append(f"{track.name}: an end without a begin at {time}")

    def named(self, name):
        """The tracks with this name."""
        return [track for track in self.tracks.values() if track.name == name]

    def thread(self, tid):
        (track,) = (track for track in self.tracks.values() if track.descriptor.thread.tid == tid)
        return track

    def process(self):
        (track,) = (track for track in self.tracks.values() if track.descriptor.HasField("process"))
        return track
