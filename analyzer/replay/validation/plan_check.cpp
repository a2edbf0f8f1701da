#include "analyzer/replay/validation/plan_check.h"

#include "analyzer/replay/validation/live_bytes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <tuple>
#include <vector>

namespace fragtrace::analyzer {
namespace {

constexpr std::array<std::string_view, 5> kColumns = {"id", "lower", "upper", "size", "offset"};

struct BufferRow {
    std::string_view id;
    std::array<std::uint64_t, 4> numbers = {};  // lower, upper, size, offset

    [[nodiscard]] std::uint64_t lower() const { return numbers[0]; }

    [[nodiscard]] std::uint64_t upper() const { return numbers[1]; }

    [[nodiscard]] std::uint64_t size() const { return numbers[2]; }

    [[nodiscard]] std::uint64_t offset() const { return numbers[3]; }

    [[nodiscard]] std::uint64_t end() const { return offset() + size(); }
};

std::string_view next_line(std::string_view* text) {
    std::string_view line = text->substr(0, text->find('\n'));
    text->remove_prefix(std::min(text->size(), line.size() + 1));
    if (line.ends_with('\r')) {
        line.remove_suffix(1);
    }
    return line;
}

std::vector<std::string_view> cells(std::string_view line) {
    std::vector<std::string_view> found;
    for (;;) {
        const std::size_t comma = line.find(',');
        found.push_back(line.substr(0, comma));
        if (comma == std::string_view::npos) {
            return found;
        }
        line.remove_prefix(comma + 1);
    }
}

// Finds the position of each column in kColumns. Further columns are allowed.
bool read_heading(std::string_view line, std::array<std::size_t, kColumns.size()>* places) {
    const std::vector<std::string_view> names = cells(line);
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
        const auto found = std::find(names.begin(), names.end(), kColumns[i]);
        if (found == names.end()) {
            return false;
        }
        (*places)[i] = static_cast<std::size_t>(found - names.begin());
    }
    return true;
}

bool read_buffer(std::string_view line,
                 const std::array<std::size_t, kColumns.size()>& places,
                 BufferRow* buffer) {
    const std::vector<std::string_view> values = cells(line);
    if (*std::max_element(places.begin(), places.end()) >= values.size()) {
        return false;
    }
    buffer->id = values[places[0]];
    for (std::size_t i = 1; i < kColumns.size(); ++i) {
        const std::string_view text = values[places[i]];
        const auto [end, failed] =
            std::from_chars(text.data(), text.data() + text.size(), buffer->numbers[i - 1]);
        if (failed != std::errc() || end != text.data() + text.size()) {
            return false;
        }
    }
    return buffer->lower() < buffer->upper() && buffer->size() != 0 &&
           buffer->end() > buffer->offset();
}

void sweep(const std::vector<BufferRow>& buffers, PlanCheck* check) {
    // At the same time, ends come before begins, because lifetimes are half-open.
    std::vector<std::tuple<std::uint64_t, bool, std::size_t>> events;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        events.emplace_back(buffers[i].lower(), true, i);
        events.emplace_back(buffers[i].upper(), false, i);
    }
    std::sort(events.begin(), events.end());
    LiveBytes live;
    std::uint64_t load = 0;
    for (const auto& [time, begins, i] : events) {
        const BufferRow& buffer = buffers[i];
        if (!begins) {
            live.give_back(buffer.offset());
            load -= buffer.size();
            continue;
        }
        load += buffer.size();
        check->load_bytes = std::max(check->load_bytes, load);
        if (const auto other = live.take(buffer.offset(), buffer.end(), i)) {
            check->violation = fmt::format(
                "buffer {} (bytes {} to {}) overlaps buffer {} (bytes {} to {}) at "
                "time {}",
                buffer.id,
                buffer.offset(),
                buffer.end(),
                buffers[other->id].id,
                other->begin,
                other->end,
                time);
            return;
        }
    }
}

}  // namespace

Result<PlanCheck> check_plan(std::string_view text,
                             const std::string& name,
                             std::optional<std::uint64_t> capacity_bytes) {
    std::array<std::size_t, kColumns.size()> places = {};
    if (!read_heading(next_line(&text), &places)) {
        return Error{
            ErrorCode::kInput,
            fmt::format("{}: line 1 must name the columns id,lower,upper,size,offset", name)};
    }
    std::vector<BufferRow> buffers;
    PlanCheck check;
    for (std::size_t number = 2; !text.empty(); ++number) {
        const std::string_view line = next_line(&text);
        if (line.empty()) {
            continue;
        }
        BufferRow buffer;
        if (!read_buffer(line, places, &buffer)) {
            return Error{ErrorCode::kInput,
                         fmt::format("{}: line {} is no buffer: four whole numbers are needed, "
                                     "lower below upper, size above 0",
                                     name,
                                     number)};
        }
        buffers.push_back(buffer);
        check.height_bytes = std::max(check.height_bytes, buffer.end());
    }
    check.buffers = buffers.size();
    sweep(buffers, &check);
    if (check.violation.empty() && capacity_bytes && check.height_bytes > *capacity_bytes) {
        check.violation = fmt::format("the highest buffer ends at {}, the capacity is {}",
                                      check.height_bytes,
                                      *capacity_bytes);
    }
    return check;
}

}  // namespace fragtrace::analyzer
