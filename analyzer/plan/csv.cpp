#include "analyzer/plan/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <iterator>

namespace fragtrace::analyzer {
namespace {

constexpr std::array<std::string_view, 4> kColumns = {"id", "lower", "upper", "size"};
// Limit on the sum of all sizes, so that no placement can overflow 64-bit offsets.
constexpr std::uint64_t kMaxTotalBytes = std::uint64_t{1} << 62;

std::string_view take_line(std::string_view* text) {
    const std::size_t end = text->find('\n');
    std::string_view line = text->substr(0, end);
    text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
    if (!line.empty() && line.back() == '\r') {
        line.remove_suffix(1);
    }
    return line;
}

std::vector<std::string_view> split(std::string_view line) {
    std::vector<std::string_view> fields;
    for (std::size_t comma = line.find(','); comma != std::string_view::npos;
         comma = line.find(',')) {
        fields.push_back(line.substr(0, comma));
        line.remove_prefix(comma + 1);
    }
    fields.push_back(line);
    return fields;
}

bool read_number(std::string_view text, std::uint64_t* number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return error == std::errc() && end == text.data() + text.size();
}

class Reader {
  public:
    explicit Reader(const std::string& name) : name_(name) {}

    Result<PlacementProblem> read(std::string_view text) {
        const std::vector<std::string_view> heading = split(take_line(&text));
        for (std::size_t i = 0; i < kColumns.size(); ++i) {
            const auto found = std::find(heading.begin(), heading.end(), kColumns[i]);
            if (found == heading.end()) {
                return error(
                    fmt::format("no column '{}' in the heading, which needs "
                                "id,lower,upper,size",
                                kColumns[i]));
            }
            columns_[i] = static_cast<std::size_t>(found - heading.begin());
        }
        while (!text.empty()) {
            ++line_;
            const std::string_view line = take_line(&text);
            if (line.empty()) {
                continue;
            }
            if (const Status added = add(split(line), heading.size()); !added) {
                return added.error();
            }
        }
        return std::move(problem_);
    }

  private:
    [[nodiscard]] Error error(const std::string& what) const {
        return {ErrorCode::kInput, fmt::format("{}: line {}: {}", name_, line_, what)};
    }

    Status add(const std::vector<std::string_view>& fields, std::size_t expected) {
        if (fields.size() != expected) {
            return error(fmt::format("{} fields, the heading has {}", fields.size(), expected));
        }
        const std::string_view id = fields[columns_[0]];
        if (std::any_of(
                id.begin(), id.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
            return error("the id has a control character");
        }
        Lifetime buffer;
        const std::array<std::uint64_t*, 4> numbers = {
            nullptr, &buffer.begin, &buffer.end, &buffer.size_bytes};
        for (std::size_t i = 1; i < kColumns.size(); ++i) {
            if (!read_number(fields[columns_[i]], numbers[i])) {
                return error(fmt::format("{} is '{}', not a whole number from 0 to 2^64-1",
                                         kColumns[i],
                                         fields[columns_[i]].substr(0, 40)));
            }
        }
        if (buffer.begin >= buffer.end) {
            return error(
                fmt::format("lower ({}) is not below upper ({})", buffer.begin, buffer.end));
        }
        if (buffer.size_bytes == 0) {
            return error("size is 0");
        }
        if (buffer.size_bytes > kMaxTotalBytes - total_bytes_) {
            return error("the sizes add up to more than 2^62 bytes");
        }
        total_bytes_ += buffer.size_bytes;
        problem_.ids.emplace_back(id);
        problem_.lifetimes.push_back(buffer);
        return Ok{};
    }

    const std::string& name_;
    std::size_t line_ = 1;
    std::array<std::size_t, 4> columns_ = {};
    std::uint64_t total_bytes_ = 0;
    PlacementProblem problem_;
};

}  // namespace

Result<PlacementProblem> read_problem(std::string_view text, const std::string& name) {
    return Reader(name).read(text);
}

std::string plan_csv(const PlacementProblem& problem, const std::vector<std::uint64_t>& offsets) {
    std::string text = "id,lower,upper,size,offset\n";
    for (std::size_t i = 0; i < problem.ids.size(); ++i) {
        const Lifetime& buffer = problem.lifetimes[i];
        fmt::format_to(std::back_inserter(text),
                       "{},{},{},{},{}\n",
                       problem.ids[i],
                       buffer.begin,
                       buffer.end,
                       buffer.size_bytes,
                       offsets[i]);
    }
    return text;
}

}  // namespace fragtrace::analyzer
