#include "analyzer/report/page/page_device_columns.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// The page counts memory without a known stream to the default stream.
StreamId shown_stream(StreamId stream) {
    return stream == kNoStream ? StreamId{0} : stream;
}

}  // namespace

ColumnPack DeviceColumns::bins() const {
    const std::vector<PageBin>& bins = overview_.bins;
    ColumnPack pack(bins.size());
    const auto add = [&](const char* name, auto member) {
        pack.add(name, 6, true, [&bins, member](std::size_t i) {
            return to_count(static_cast<double>(bins[i].*member));
        });
    };
    add("requested", &PageBin::requested);
    add("internal", &PageBin::internal);
    add("pending", &PageBin::pending);
    add("held", &PageBin::held);
    add("releasable", &PageBin::releasable);
    add("other", &PageBin::other);
    add("allocated_max", &PageBin::allocated_max);
    add("allocated_min", &PageBin::allocated_min);
    add("reserved_max", &PageBin::reserved_max);
    return pack;
}

ColumnPack DeviceColumns::map() const {
    ColumnPack pack(overview_.reserved.size());
    pack.add("in_use", 1, true, [this](std::size_t i) { return overview_.in_use[i]; });
    pack.add("kept", 1, true, [this](std::size_t i) { return overview_.kept[i]; });
    pack.add("reserved", 1, true, [this](std::size_t i) { return overview_.reserved[i]; });
    return pack;
}

ColumnPack DeviceColumns::units() const {
    const auto unit = [&](std::size_t i) -> const ReleaseUnit& {
        return overview_.units[units_.rows[i]];
    };
    const auto segment = [&](std::size_t i) -> const SegmentLife& {
        return device_.segments[unit(i).segment];
    };
    ColumnPack pack(units_.rows.size());
    pack.add("start", 4, false, [&](std::size_t i) { return tick(unit(i).start_ns); });
    pack.add("end", 4, false, [&](std::size_t i) { return tick(unit(i).end_ns); });
    pack.add("offset", 6, true, [&](std::size_t i) { return axis_.offset_of(unit(i).address); });
    pack.add("size", 6, true, [&](std::size_t i) { return unit(i).size_bytes; });
    pack.add("pool", 4, false, [&](std::size_t i) { return segment(i).pool; });
    pack.add("stream", 2, false, [&](std::size_t i) { return shown_stream(segment(i).stream); });
    pack.add("small", 1, false, [&](std::size_t i) { return segment(i).small ? 1u : 0u; });
    return pack;
}

ColumnPack DeviceColumns::over_time(const BytesOverTime& memory) const {
    ColumnPack pack(memory.time_ns.size());
    pack.add("time", 4, true, [&](std::size_t i) { return tick(memory.time_ns[i]); });
    pack.add("bytes", 6, true, [&](std::size_t i) { return memory.bytes[i]; });
    return pack;
}

ColumnPack DeviceColumns::spans() const {
    std::vector<PageOverview::Span> spans;
    for (const PageOverview::Span& span : overview_.spans) {
        if (blocks_.has(span.block)) {
            spans.push_back({blocks_.places[span.block], units_.places[span.unit]});
        }
    }
    ColumnPack pack(spans.size());
    pack.add("block", 4, true, [&](std::size_t i) { return spans[i].block; });
    pack.add("unit", 4, true, [&](std::size_t i) { return spans[i].unit; });
    return pack;
}

ColumnPack DeviceColumns::phases(const std::vector<PagePhase>& phases,
                                 const std::vector<std::uint32_t>& names) const {
    ColumnPack pack(phases.size());
    pack.add("start", 4, true, [&](std::size_t i) { return tick(phases[i].start_ns); });
    pack.add("end", 4, false, [&](std::size_t i) { return tick(phases[i].end_ns); });
    pack.add("name", 4, false, [&](std::size_t i) { return names[i]; });
    pack.add("lane", 1, false, [&](std::size_t i) { return phases[i].lane; });
    pack.add("ranges", 4, false, [&](std::size_t i) { return phases[i].count; });
    return pack;
}

ColumnPack DeviceColumns::curve_times() const {
    const std::vector<std::uint64_t>& times = device_.curve_times_ns;
    ColumnPack pack(times.size());
    pack.add("time", 4, true, [&](std::size_t i) { return tick(times[i]); });
    return pack;
}

// The first curves, one after the other. Rows without a curve are skipped.
ColumnPack DeviceColumns::curves(std::size_t most) const {
    std::vector<std::uint64_t> reserved;
    for (const PageWhatIf& row : device_.whatif) {
        if (row.reserved_curve.empty() || most == 0) continue;
        reserved.insert(reserved.end(), row.reserved_curve.begin(), row.reserved_curve.end());
        --most;
    }
    ColumnPack pack(reserved.size());
    pack.add("reserved", 6, true, [&](std::size_t i) { return reserved[i]; });
    return pack;
}

ColumnPack DeviceColumns::blocks(std::size_t begin, std::size_t end) const {
    const BlockLives& blocks = device_.blocks;
    const auto at = [&](std::size_t row) { return blocks_.rows[begin + row]; };
    const auto unit_offset = [&](std::uint32_t i) {
        const std::uint32_t unit = overview_.block_unit[i];
        return unit == kNoUnit ? 0 : axis_.offset_of(overview_.units[unit].address);
    };
    ColumnPack pack(end - begin);
    pack.add("start", 4, true, [&](std::size_t r) { return tick(blocks.start_ns[at(r)]); });
    pack.add("held", 4, false, [&](std::size_t r) {
        const std::uint64_t freed_ns = blocks.freed_ns[at(r)];
        return freed_ns == kNeverNs ? kNeverTick : tick(freed_ns) - tick(blocks.start_ns[at(r)]);
    });
    pack.add("pending", 4, false, [&](std::size_t r) -> std::uint64_t {
        const std::uint64_t freed_ns = blocks.freed_ns[at(r)];
        const std::uint64_t end_ns = blocks.end_ns[at(r)];
        if (freed_ns == kNeverNs || end_ns <= freed_ns) return 0;
        return end_ns == kNeverNs ? kNeverTick : tick(end_ns) - tick(freed_ns);
    });
    pack.add("unit", 4, false, [&](std::size_t r) {
        const std::uint32_t unit = overview_.block_unit[at(r)];
        return unit == kNoUnit ? kNoUnit : units_.places[unit];
    });
    pack.add("offset", 6, false, [&](std::size_t r) {
        return axis_.offset_of(blocks.address[at(r)]) - unit_offset(at(r));
    });
    pack.add("size", 6, false, [&](std::size_t r) { return blocks.size_bytes[at(r)]; });
    // Block size minus requested size; 2^48 - 1 = unknown.
    pack.add("excess", 6, false, [&](std::size_t r) -> std::uint64_t {
        const std::uint64_t requested = blocks.requested_bytes[at(r)];
        const std::uint64_t size_bytes = blocks.size_bytes[at(r)];
        return requested > size_bytes ? kPageUnknown : size_bytes - requested;
    });
    pack.add("stack", 4, false, [&](std::size_t r) { return stacks_.node(blocks.stack[at(r)]); });
    pack.add("stream", 2, false, [&](std::size_t r) { return shown_stream(blocks.stream[at(r)]); });
    return pack;
}

}  // namespace fragtrace::analyzer
