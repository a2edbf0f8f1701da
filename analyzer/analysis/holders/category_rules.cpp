#include "analyzer/analysis/holders/category_rules.h"

#include <fragtrace/suggestion.h>

#include "analyzer/analysis/holders/category_starters.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <re2/re2.h>
#include <system_error>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMostNameBytes = 60;
constexpr std::size_t kMostTextBytes = 1024;  // of a frame or label that patterns are searched in
constexpr std::size_t kMostFrames = 500'000;  // different frames of one device
// Of one pattern, while it is compiled and while it is searched. Searching becomes slower with
// less memory, but never fails.
constexpr std::int64_t kMostPatternBytes = std::int64_t{2} << 20;
constexpr std::uint16_t kNotComputed = 0xfffe;
static_assert(kMostRules < kNotComputed);

constexpr std::array<std::pair<std::string_view, RuleSubject>, 3> kSubjects = {
    {{"stack", RuleSubject::kStack}, {"label", RuleSubject::kLabel}, {"kind", RuleSubject::kKind}}};

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r";
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// One line of a rule file. Keeps where its parts begin, for messages.
class RuleLine {
  public:
    RuleLine(std::string_view line, std::size_t number, const std::string& file)
        : line_(line), number_(number), file_(file) {}

    [[nodiscard]] Result<CategoryRule> parse() const {
        const std::size_t colon = line_.find(':');
        if (colon == std::string_view::npos) {
            return wrong(trimmed(line_), "a rule is NAME: stack|label|kind PATTERN");
        }
        CategoryRule rule;
        rule.line = number_;
        // Every output shows the name, so it must not change the direction of a text.
        rule.name = printable(trimmed(line_.substr(0, colon)));
        if (rule.name.empty()) {
            return wrong(line_.substr(colon), "the category has no name before the colon");
        }
        if (rule.name.size() > kMostNameBytes) {
            return wrong(line_, fmt::format("the name is longer than {} bytes", kMostNameBytes));
        }
        const std::string_view rest = trimmed(line_.substr(colon + 1));
        const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
        const auto* const subject =
            std::find_if(kSubjects.begin(), kSubjects.end(), [word](const auto& known) {
                return known.first == word;
            });
        if (subject == kSubjects.end()) {
            return wrong(
                rest.empty() ? line_.substr(colon) : rest,
                fmt::format("after the colon comes stack, label or kind{}, then the pattern",
                            word.empty() ? "" : fmt::format(", not '{}'", printable(word))));
        }
        rule.subject = subject->second;
        const std::string_view pattern = trimmed(rest.substr(word.size()));
        if (pattern.empty()) {
            return wrong(word, "the pattern is missing; '.' matches everything");
        }
        re2::RE2::Options options;
        options.set_log_errors(false);
        options.set_max_mem(kMostPatternBytes);
        const auto compiled = std::make_shared<const re2::RE2>(
            re2::StringPiece(pattern.data(), pattern.size()), options);
        if (!compiled->ok()) {
            return wrong_pattern(pattern, *compiled);
        }
        rule.pattern = compiled;
        return rule;
    }

  private:
    // `at` is a part of the line.
    [[nodiscard]] Error wrong(std::string_view at, const std::string& what) const {
        return {ErrorCode::kInput,
                fmt::format("{}: line {}, column {}: {}",
                            printable(file_),
                            number_,
                            at.data() - line_.data() + 1,
                            what)};
    }

    [[nodiscard]] Error wrong_pattern(std::string_view pattern, const re2::RE2& compiled) const {
        const std::string& part = compiled.error_arg();
        const std::size_t at = part.empty() ? 0 : pattern.find(part);
        std::string what = fmt::format("the pattern is not valid: {}", printable(compiled.error()));
        switch (compiled.error_code()) {
            case re2::RE2::ErrorRepeatOp:
            case re2::RE2::ErrorMissingParen:
            case re2::RE2::ErrorUnexpectedParen:
            case re2::RE2::ErrorMissingBracket:
            case re2::RE2::ErrorRepeatArgument:
                what += "; write \\ before a character that stands for itself";
                break;
            case re2::RE2::ErrorRepeatSize:
            case re2::RE2::ErrorPatternTooLarge:
                what += "; use smaller repetitions, or several rules";
                break;
            default:
                what += "; patterns have RE2's syntax, without look-ahead and back-references";
                break;
        }
        return wrong(pattern.substr(at == std::string_view::npos ? 0 : at), what);
    }

    std::string_view line_;
    std::size_t number_;
    const std::string& file_;
};

Result<std::string> content_of(const std::string& path) {
    std::error_code unknown;
    const auto status = std::filesystem::status(path, unknown);
    if (status.type() == std::filesystem::file_type::not_found) {
        return Error{
            ErrorCode::kInput,
            fmt::format("{}: no such file; give a file of rules, or the name of rules that "
                        "fragtrace brings: {}",
                        printable(path),
                        fmt::join(starter_names(), ", "))};
    }
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: is not a regular file; give a text file with one rule per "
                                 "line",
                                 printable(path))};
    }
    const auto file = InputFile::open(path);
    if (!file) {
        return file.error();
    }
    if (file->size() > kMostFileBytes) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: {} bytes are too many for a file of rules; give a text file "
                                 "with one rule per line",
                                 printable(path),
                                 file->size())};
    }
    std::string text(static_cast<std::size_t>(file->size()), '\0');
    text.resize(file->read_at(0, text.data(), text.size()));
    return text;
}

}  // namespace

bool CategoryRule::matches(std::string_view text) const {
    return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern);
}

Result<CategoryRules> parse_category_rules(std::string_view text, const std::string& file) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    CategoryRules result;
    result.file = file;
    if (text.starts_with(kByteOrderMark)) {
        text.remove_prefix(kByteOrderMark.size());
    }
    std::size_t number = 0;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        ++number;
        const auto control = std::find_if(line.begin(), line.end(), [](char byte) {
            const auto value = static_cast<unsigned char>(byte);
            return value == 0x7f || (value < ' ' && byte != '\t' && byte != '\r');
        });
        if (control != line.end()) {
            return Error{ErrorCode::kInput,
                         fmt::format("{}: line {}, column {}: not text (byte {:#04x}); give a text "
                                     "file with one rule per line",
                                     printable(file),
                                     number,
                                     control - line.begin() + 1,
                                     static_cast<unsigned char>(*control))};
        }
        const std::string_view content = trimmed(line);
        if (content.empty() || content.front() == '#') {
            continue;
        }
        if (result.rules.size() == kMostRules) {
            return Error{ErrorCode::kInput,
                         fmt::format("{}: line {}: more than {} rules; join patterns with |",
                                     printable(file),
                                     number,
                                     kMostRules)};
        }
        auto rule = RuleLine(line, number, file).parse();
        if (!rule) {
            return rule.error();
        }
        result.rules.push_back(std::move(rule).value());
    }
    if (result.rules.empty()) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: no rules; a rule is a line such as 'kv cache: label ^kv'",
                                 printable(file))};
    }
    return result;
}

Result<CategoryRules> read_category_rules(const std::string& file) {
    for (const CategoryStarter& starter : category_starters()) {
        if (file == starter.name) {
            auto rules = parse_category_rules(starter.text, file);
            if (rules) {
                rules->starter = true;
            }
            return rules;
        }
    }
    const auto text = content_of(file);
    if (!text) {
        return text.error();
    }
    return parse_category_rules(*text, file);
}

std::vector<std::string> starter_names() {
    std::vector<std::string> names;
    for (const CategoryStarter& starter : category_starters()) {
        names.emplace_back(starter.name);
    }
    return names;
}

std::string text_of_frame(const Frame& frame) {
    std::string text = frame.file.empty() ? frame.module : frame.file;
    std::replace(text.begin(), text.end(), '\\', '/');
    if (!frame.file.empty() && frame.line != 0) {
        text += fmt::format(":{}", frame.line);
    }
    text += text.empty() ? "" : " ";
    text += frame.function;
    return text.size() <= kMostTextBytes ? text : text.substr(text.size() - kMostTextBytes);
}

RuleFinder::RuleFinder(const Timeline& timeline, Symbolizer* symbols, const CategoryRules* rules)
    : timeline_(timeline), symbols_(symbols), rules_(rules) {
    if (rules_ == nullptr) {
        return;
    }
    nodes_.assign(timeline.nodes.size(), kNotComputed);
    matched_.assign(rules_->rules.size(), false);
    kinds_.fill(kNotComputed);
}

// The first rule of the file wins, whatever it looks at: the smallest number.
std::uint16_t RuleFinder::rule_of(OriginId id, Category kind, bool with_stack) {
    if (rules_ == nullptr) {
        return kNoRule;
    }
    std::uint16_t& by_kind = kinds_[static_cast<std::size_t>(kind)];
    if (by_kind == kNotComputed) {
        by_kind = of_text(RuleSubject::kKind, category_name(kind));
    }
    std::uint16_t first = by_kind;
    const Origin origin = id < timeline_.origins.size() ? timeline_.origins[id] : Origin{};
    if (origin.label != 0) {
        const auto [by_label, is_new] = labels_.try_emplace(origin.label, kNoRule);
        if (is_new) {
            const std::string text = timeline_.fact(fmt::format("text.{}", origin.label));
            by_label->second =
                of_text(RuleSubject::kLabel, std::string_view(text).substr(0, kMostTextBytes));
        }
        first = std::min(first, by_label->second);
    }
    if (with_stack) {
        first = std::min({first, of_node(origin.native_stack), of_node(origin.python_stack)});
    }
    return first;
}

std::string_view RuleFinder::name_of(std::uint16_t rule) const {
    return rules_ == nullptr || rule >= rules_->rules.size() ? std::string_view()
                                                             : rules_->rules[rule].name;
}

std::vector<RuleUse> RuleFinder::uses() const {
    std::vector<RuleUse> uses(matched_.size());
    for (std::size_t i = 0; i < uses.size(); ++i) {
        uses[i].matched = matched_[i];
    }
    return uses;
}

// Parents have smaller numbers than their children, so both loops end.
std::uint16_t RuleFinder::of_node(std::uint32_t node) {
    std::vector<std::uint32_t> path;
    while (node != 0 && node < nodes_.size() && nodes_[node] == kNotComputed) {
        path.push_back(node);
        node = timeline_.nodes[node].parent;
    }
    std::uint16_t first = node == 0 || node >= nodes_.size() ? kNoRule : nodes_[node];
    for (auto above = path.rbegin(); above != path.rend(); ++above) {
        first = std::min(first, of_frame(timeline_.nodes[*above]));
        nodes_[*above] = first;
    }
    return first;
}

std::uint16_t RuleFinder::of_frame(const StackNode& node) {
    // The same line of Python code has several instructions, whose offsets the lower half has.
    const bool python = is_python_frame(node.frame);
    const std::uint64_t key = python ? std::uint64_t{python_code_id(node.frame)} : node.frame;
    const std::uint32_t minor = python ? node.line : kUnknown32;
    std::uint32_t found = frames_.find(key, minor);
    if (found != PairMap::kAbsent) {
        return static_cast<std::uint16_t>(found);
    }
    if (frames_.size() >= kMostFrames) {
        ++frames_left_out_;
        return kNoRule;
    }
    std::uint16_t first = kNoRule;
    if (python) {
        first = of_text(RuleSubject::kStack, text_of_frame(symbols_->python_frame(node)));
    } else {
        for (const Frame& frame : symbols_->native_frames(node.frame)) {
            first = std::min(first, of_text(RuleSubject::kStack, text_of_frame(frame)));
        }
    }
    frames_.set(key, minor, first);
    return first;
}

// Tries all rules, since a rule that matches nothing is reported.
std::uint16_t RuleFinder::of_text(RuleSubject subject, std::string_view text) {
    std::uint16_t first = kNoRule;
    for (std::size_t i = rules_->rules.size(); i-- > 0;) {
        const CategoryRule& rule = rules_->rules[i];
        if (rule.subject == subject && rule.matches(text)) {
            matched_[i] = true;
            first = static_cast<std::uint16_t>(i);
        }
    }
    return first;
}

}  // namespace fragtrace::analyzer
