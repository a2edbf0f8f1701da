#include "analyzer/export/columns.h"

#include "analyzer/analysis/memory_lives.h"
#include "analyzer/export/event_sizes.h"
#include "analyzer/export/stack_numbers.h"
#include "analyzer/trace/describe_event.h"

#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

template <typename Number>
constexpr ColumnType type_of() {
    if constexpr (sizeof(Number) == 1) {
        return ColumnType::kU8;
    } else if constexpr (sizeof(Number) == 2) {
        return ColumnType::kU16;
    } else if constexpr (sizeof(Number) == 4) {
        return ColumnType::kU32;
    } else {
        return ColumnType::kU64;
    }
}

template <typename Number>
class Numbers {
  public:
    Numbers(std::string name, std::uint64_t rows, ColumnType type = type_of<Number>()) {
        column_.name = std::move(name);
        column_.type = type;
        column_.values.resize(rows * sizeof(Number));
        column_.valid.resize((rows + 7) / 8);
    }

    void set(std::uint64_t row, std::optional<Number> value) {
        if (value) {
            std::memcpy(column_.values.data() + row * sizeof(Number), &*value, sizeof(Number));
            column_.valid[row / 8] |= static_cast<std::uint8_t>(1u << row % 8);
        } else {
            ++column_.nulls;
        }
    }

    Column& column() { return column_; }

  private:
    Column column_;
};

// A column of texts that occur again and again.
class Words {
  public:
    Words(std::string name, std::uint64_t rows)
        : numbers_(std::move(name), rows, ColumnType::kWord) {}

    // An empty text becomes null.
    void set(std::uint64_t row, std::string_view text) {
        if (text.empty()) {
            numbers_.set(row, std::nullopt);
            return;
        }
        const auto [found, is_new] = index_.try_emplace(std::string(text), index_.size());
        if (is_new) {
            numbers_.column().words.emplace_back(text);
        }
        numbers_.set(row, static_cast<std::int32_t>(found->second));
    }

    Column& column() { return numbers_.column(); }

  private:
    Numbers<std::int32_t> numbers_;
    std::unordered_map<std::string, std::size_t> index_;
};

// The lines of the program that reports name, per stack. Stack 0 has none.
std::vector<std::string> lines_of(const Analysis& analysis, const StackNumbers& stacks) {
    std::vector<std::string> lines = {""};
    for (std::size_t stack = 1; stack < stacks.origins().size(); ++stack) {
        lines.push_back(analysis.symbols->describe(stacks.origins()[stack]));
    }
    return lines;
}

template <typename... Parts>
Columns columns_of(std::uint64_t rows, Parts&... parts) {
    Columns table;
    table.rows = rows;
    (table.columns.push_back(std::move(parts.column())), ...);
    return table;
}

// The step of a device to which an event belongs.
std::optional<std::uint32_t> step_of(const Iterations* iterations, std::uint64_t event) {
    const std::size_t step = iterations == nullptr || event >= kNoEvent
                                 ? 0
                                 : iterations->of(static_cast<EventIndex>(event));
    return step == 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(step));
}

}  // namespace

Columns block_columns(const Analysis& analysis) {
    const Timeline& timeline = analysis.timeline;
    const StackNumbers stacks(timeline);
    const std::vector<std::string> lines = lines_of(analysis, stacks);
    std::vector<BlockLives> lives;
    std::uint64_t rows = 0;
    for (const DeviceAnalysis& device : analysis.devices) {
        lives.push_back(std::move(memory_lives(
                                      timeline,
                                      device.device,
                                      [&](OriginId origin) { return stacks.of(origin); },
                                      LifeClock::kEvents)
                                      .blocks));
        rows += lives.back().size();
    }
    Numbers<std::uint8_t> device_number("device", rows);
    Numbers<std::uint64_t> address("address", rows);
    Numbers<std::uint64_t> bytes("bytes", rows);
    Numbers<std::uint64_t> requested("requested_bytes", rows);
    Numbers<std::uint16_t> stream("stream", rows);
    Numbers<std::uint32_t> stack("stack", rows);
    Words line("line", rows);
    Numbers<std::uint32_t> start_event("start_event", rows);
    Numbers<std::uint32_t> freed_event("freed_event", rows);
    Numbers<std::uint32_t> end_event("end_event", rows);
    Numbers<std::uint64_t> start_ns("start_ns", rows);
    Numbers<std::uint64_t> freed_ns("freed_ns", rows);
    Numbers<std::uint64_t> end_ns("end_ns", rows);
    Numbers<std::uint32_t> step("step", rows);
    Numbers<std::uint32_t> freed_step("freed_step", rows);
    const auto set_moment = [&](std::uint64_t row, std::uint64_t event, auto* events, auto* times) {
        const bool happened = event < timeline.events.size();
        const auto index = static_cast<EventIndex>(event);
        events->set(row, happened ? std::optional(index) : std::nullopt);
        times->set(row, happened ? std::optional(timeline.events[index].time_ns) : std::nullopt);
    };
    std::uint64_t row = 0;
    for (std::size_t i = 0; i < lives.size(); ++i) {
        const DeviceAnalysis& device = analysis.devices[i];
        const Iterations* const iterations = &device.held.iterations;
        BlockLives& blocks = lives[i];
        for (std::size_t block = 0; block < blocks.size(); ++block, ++row) {
            device_number.set(row, device.device);
            address.set(row, blocks.address[block]);
            bytes.set(row, blocks.size_bytes[block]);
            const std::uint64_t asked = blocks.requested_bytes[block];
            requested.set(row, asked == kUnknown64 ? std::nullopt : std::optional(asked));
            const StreamId of = blocks.stream[block];
            stream.set(row, of < timeline.streams.size() ? std::optional(of) : std::nullopt);
            stack.set(row, blocks.stack[block]);
            line.set(row, lines[blocks.stack[block]]);
            set_moment(row, blocks.start_ns[block], &start_event, &start_ns);
            set_moment(row, blocks.freed_ns[block], &freed_event, &freed_ns);
            set_moment(row, blocks.end_ns[block], &end_event, &end_ns);
            step.set(row, step_of(iterations, blocks.start_ns[block]));
            freed_step.set(row,
                           blocks.freed_ns[block] < timeline.events.size()
                               ? step_of(iterations, blocks.freed_ns[block])
                               : std::nullopt);
        }
        blocks = {};
    }
    return columns_of(rows,
                      device_number,
                      address,
                      bytes,
                      requested,
                      stream,
                      stack,
                      line,
                      start_event,
                      freed_event,
                      end_event,
                      start_ns,
                      freed_ns,
                      end_ns,
                      step,
                      freed_step);
}

Columns event_columns(const Analysis& analysis) {
    const Timeline& timeline = analysis.timeline;
    const StackNumbers stacks(timeline);
    const std::vector<std::string> lines = lines_of(analysis, stacks);
    std::array<const Iterations*, kMaxDevices + 1> iterations = {};
    for (const DeviceAnalysis& device : analysis.devices) {
        iterations[device.device] = &device.held.iterations;
    }
    std::array<std::string, 256> kinds;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        kinds[i] = kind_name(static_cast<EventKind>(i));
    }
    std::vector<std::string> phases;
    for (const Phase& phase : timeline.phases) {
        phases.push_back(text_of(timeline, phase.name));
    }
    const std::uint64_t rows = timeline.events.size();
    Numbers<std::uint32_t> number("event", rows);
    Numbers<std::uint64_t> time("time_ns", rows);
    Numbers<std::uint8_t> device("device", rows);
    Words kind("kind", rows);
    Numbers<std::uint64_t> address("address", rows);
    Numbers<std::uint64_t> bytes("bytes", rows);
    Numbers<std::uint64_t> requested("requested_bytes", rows);
    Numbers<std::uint16_t> stream("stream", rows);
    Numbers<std::uint32_t> pool("pool", rows);
    Numbers<std::uint32_t> thread("thread", rows);
    Numbers<std::uint32_t> stack("stack", rows);
    Words line("line", rows);
    Numbers<std::uint32_t> duration("duration_ns", rows);
    Words phase("phase", rows);
    Numbers<std::uint32_t> step("step", rows);
    Numbers<std::uint32_t> partner("partner", rows);
    Words flags("flags", rows);
    std::size_t pool_cursor = 0;
    auto measured = timeline.durations.begin();
    for (EventIndex i = 0; i < rows; ++i) {
        const Event event = timeline.events[i];
        const EventSizes sizes = sizes_of(event);
        const bool has_device = event.device < kMaxDevices;
        number.set(i, i);
        time.set(i, event.time_ns);
        device.set(i, has_device ? std::optional(std::uint8_t{event.device}) : std::nullopt);
        kind.set(i, kinds[static_cast<std::uint8_t>(event.kind)]);
        address.set(i, sizes.address);
        bytes.set(i, sizes.bytes);
        requested.set(i, sizes.requested);
        stream.set(
            i, event.stream < timeline.streams.size() ? std::optional(event.stream) : std::nullopt);
        const std::uint32_t of_pool = timeline.event_pools.at(i, &pool_cursor);
        pool.set(i, of_pool == 0 ? std::nullopt : std::optional(of_pool));
        const bool known = event.origin != 0 && event.origin < timeline.origins.size();
        thread.set(i, known ? std::optional(timeline.origins[event.origin].thread) : std::nullopt);
        stack.set(i, stacks.of(event.origin));
        line.set(i, lines[stacks.of(event.origin)]);
        const bool has_duration = measured != timeline.durations.end() && measured->first == i;
        duration.set(i, has_duration ? std::optional(measured->second) : std::nullopt);
        measured += has_duration ? 1 : 0;
        const std::uint32_t during =
            analysis.phases ? analysis.phases->phase_of(i) : PhaseIndex::kNone;
        phase.set(i, during == PhaseIndex::kNone ? std::string_view() : phases[during]);
        step.set(i, step_of(has_device ? iterations[event.device] : nullptr, i));
        const EventIndex other = timeline.partner[i];
        partner.set(i, other < rows ? std::optional(other) : std::nullopt);
        flags.set(i, flag_words(event));
    }
    return columns_of(rows,
                      number,
                      time,
                      device,
                      kind,
                      address,
                      bytes,
                      requested,
                      stream,
                      pool,
                      thread,
                      stack,
                      line,
                      duration,
                      phase,
                      step,
                      partner,
                      flags);
}

}  // namespace fragtrace::analyzer
