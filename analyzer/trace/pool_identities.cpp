#include "analyzer/trace/pool_identities.h"

#include <charconv>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

constexpr std::string_view kPrefix = "pool.";

template <typename Number>
bool take_number(std::string_view* text, Number* value, int base = 10) {
    const auto [end, error] =
        std::from_chars(text->data(), text->data() + text->size(), *value, base);
    text->remove_prefix(static_cast<std::size_t>(end - text->data()));
    return error == std::errc{};
}

bool take(std::string_view* text, std::string_view word) {
    const bool found = text->starts_with(word);
    text->remove_prefix(found ? word.size() : 0);
    return found;
}

void read_identity(const std::string& fact, PoolIdentity* pool) {
    pool->text = fact;
    std::string_view rest = fact;
    if (take(&rest, "pytorch ")) {
        if (take_number(&rest, &pool->first) && take(&rest, ",") &&
            take_number(&rest, &pool->second)) {
            pool->owner = PoolIdentity::Owner::kPytorch;
        }
    } else if (take(&rest, "cuda 0x") && take_number(&rest, &pool->first, 16)) {
        pool->owner = PoolIdentity::Owner::kCuda;
    } else if (take(&rest, "program ")) {
        pool->owner = PoolIdentity::Owner::kProgram;
        const std::size_t space = rest.find(' ');
        pool->kind = rest.substr(0, space);
        pool->name = space == std::string_view::npos ? "" : rest.substr(space + 1);
    }
}

}  // namespace

std::map<std::uint32_t, PoolIdentity> pool_identities(
    const std::map<std::string, std::string>& facts) {
    std::map<std::uint32_t, PoolIdentity> pools;
    for (auto fact = facts.lower_bound(std::string(kPrefix));
         fact != facts.end() && fact->first.starts_with(kPrefix);
         ++fact) {
        std::string_view text = std::string_view(fact->first).substr(kPrefix.size());
        std::uint32_t number = 0;
        if (!take_number(&text, &number) || number == 0) {
            continue;
        }
        if (text.empty()) {
            read_identity(fact->second, &pools[number]);
        } else if (text == ".no_split") {
            pools[number].no_split = fact->second == "1";
        } else if (text == ".use_on_oom") {
            pools[number].use_on_oom = fact->second == "1";
        } else if (text == ".name") {
            pools[number].name = fact->second;
        } else if (text == ".graph") {
            pools[number].captured = fact->second == "1";
        } else if (text == ".limit") {
            std::string_view limit = fact->second;
            std::uint64_t& bytes = pools[number].limit_bytes;
            (void)take_number(&limit, &bytes);
            if (fact->second == "unknown" || bytes == kUnknown64) {  // ~0 as a number: no limit
                bytes = fact->second == "unknown" ? kUnknown64 : 0;
            }
        }
    }
    return pools;
}

}  // namespace fragtrace::analyzer
