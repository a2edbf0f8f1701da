#include "analyzer/analysis/job/read_summaries.h"

#include "analyzer/analysis/job/parsed_summary.h"
#include "analyzer/analysis/job/process_summary_json.h"
#include "analyzer/support/byte_stream.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/json_input.h"
#include "analyzer/support/look_at.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::string_view kSpace = " \t\r\n";  // of JSON

// Thrown within this file if the schema is not kSummarySchema.
struct OtherSchema {};

// Gives the parser one byte after the other. Ends early if it takes too many for one summary, which
// is between two calls of next().
class SummaryBytes {
  public:
    explicit SummaryBytes(const InputFile& file) : stream_(file) {}

    [[nodiscard]] bool at_end() { return too_long() || !stream_.require(1); }

    [[nodiscard]] char now() const { return static_cast<char>(*stream_.data()); }

    void advance() {
        stream_.skip(1);
        ++taken_;
    }

    void next() { taken_ = 0; }

    [[nodiscard]] bool too_long() const { return taken_ > kMostBytes; }

  private:
    static constexpr std::uint64_t kMostBytes = 64 << 10;

    ByteStream stream_;
    std::uint64_t taken_ = 0;
};

Error bad_file(const std::string& path, std::string_view what) {
    return {ErrorCode::kInput,
            fmt::format("{}: {}. Give what `fraganalyze summarize TRACE -o FILE` or `fraganalyze "
                        "merge` wrote.",
                        path,
                        what)};
}

Error other_schema(const std::string& path, std::uint64_t schema) {
    return {ErrorCode::kInput,
            fmt::format("{}: another version of fraganalyze wrote these summaries (schema {}), and "
                        "this one ({}) reads schema {}. Make them again with this version: "
                        "`fraganalyze summarize TRACE -o FILE`.",
                        path,
                        schema == 0 ? "unknown" : std::to_string(schema),
                        FRAGTRACE_VERSION,
                        kSummarySchema)};
}

// Takes summaries out of the parser as soon as each is complete.
class SummaryVisitor {
  public:
    SummaryVisitor(const std::function<void(ProcessSummary)>& take,
                   const std::function<void(UnreadableTrace)>& take_unreadable,
                   SummaryBytes* bytes)
        : take_(take), take_unreadable_(take_unreadable), bytes_(bytes) {}

    // The parser's callback: whether it keeps the value.
    bool visit(int depth, Parsed::parse_event_t event, const Parsed& value) {
        if (depth > kMostDepth) {
            throw BadSummary{"its parts are nested too deeply"};
        }
        if (depth == 1 && event == Parsed::parse_event_t::key) {
            begin_list(value);
        } else if (depth == 1 && event == Parsed::parse_event_t::value && list_ == List::kNone) {
            schema_ = value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
        }
        if (event != Parsed::parse_event_t::object_end || depth != kSummaryDepth ||
            list_ == List::kNone) {
            return true;
        }
        take(value);
        bytes_->next();
        return false;
    }

    [[nodiscard]] std::uint64_t schema() const { return schema_; }

    // Number of the summary that is being read; the first is 1.
    [[nodiscard]] std::size_t number() const { return summaries_ + 1; }

  private:
    // Depths as nlohmann/json counts them: the file's object is 0, its list 1, a summary 2.
    static constexpr int kSummaryDepth = 2;
    static constexpr int kMostDepth = 7;

    enum class List : std::uint8_t { kNone, kSummaries, kUnreadable };

    void begin_list(const Parsed& key) {
        list_ = key == "process_summaries" ? List::kSummaries
                : key == "unreadable"      ? List::kUnreadable
                                           : List::kNone;
        if (list_ != List::kNone && schema_ != kSummarySchema) {
            throw OtherSchema{};
        }
    }

    void take(const Parsed& value) {
        if (list_ == List::kSummaries) {
            take_(summary_of(value));
            ++summaries_;
            return;
        }
        // Checked also if the caller does not want it.
        UnreadableTrace trace = unreadable_of(value);
        if (take_unreadable_) {
            take_unreadable_(std::move(trace));
        }
    }

    const std::function<void(ProcessSummary)>& take_;
    const std::function<void(UnreadableTrace)>& take_unreadable_;
    SummaryBytes* bytes_;
    std::size_t summaries_ = 0;
    std::uint64_t schema_ = 0;
    List list_ = List::kNone;
};

}  // namespace

bool is_summaries_file(const std::string& path) {
    constexpr std::size_t kMostBytes = 256;
    const auto file = look_at(path);
    std::array<char, kMostBytes> first = {};
    std::string_view text(first.data(), file ? file->read_at(0, first.data(), first.size()) : 0);
    // Takes a token and the white space before it: other programs format JSON differently.
    const auto take = [&text](std::string_view token) {
        std::string_view rest = text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
        const bool found = rest.starts_with(token);
        if (found) {
            text = rest.substr(token.size());
        }
        return found;
    };
    constexpr std::size_t kMostDigits = 9;
    if (!take("{") || !take("\"schema\"") || !take(":")) {
        return false;
    }
    text = text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    text = text.substr(digits);
    if (digits == 0 || digits > kMostDigits || !take(",")) {
        return false;
    }
    return take("\"process_summaries\"");
}

Status read_summaries(const std::string& path,
                      const std::function<void(ProcessSummary)>& take,
                      const std::function<void(UnreadableTrace)>& take_unreadable) {
    const auto file = InputFile::open(path);
    if (!file) {
        return file.error();
    }
    SummaryBytes bytes(*file);
    SummaryVisitor visitor(take, take_unreadable, &bytes);
    const auto bad_summary = [&](std::string_view what) {
        return bad_file(path, fmt::format("summary {}: {}", visitor.number(), what));
    };
    try {
        const Parsed rest =
            Parsed::parse(JsonInput(&bytes),
                          JsonInput<SummaryBytes>(),
                          [&visitor](int depth, Parsed::parse_event_t event, Parsed& value) {
                              return visitor.visit(depth, event, value);
                          });
        if (!rest.is_object() || !rest.contains("process_summaries") || !rest.contains("schema")) {
            return bad_file(path, "is no file of process summaries");
        }
        return visitor.schema() == kSummarySchema ? Status(Ok{})
                                                  : other_schema(path, visitor.schema());
    } catch (const OtherSchema&) {
        return other_schema(path, visitor.schema());
    } catch (const BadSummary& bad) {
        return bad_summary(bad.what);
    } catch (const Parsed::parse_error& error) {
        return bytes.too_long() ? bad_summary("is longer than any summary")
                                : bad_file(path, fmt::format("is no JSON (byte {})", error.byte));
    } catch (const Parsed::exception&) {
        return bad_summary("has an impossible value");
    }
}

}  // namespace fragtrace::analyzer
