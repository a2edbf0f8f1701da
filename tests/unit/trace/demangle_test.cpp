#include "analyzer/trace/demangle.h"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

using namespace fragtrace::analyzer;

namespace {

// f(pair<L, L>), where L is such a pair again, `levels` deep. Its readable form doubles with each
// level.
std::string doubling_name(unsigned levels) {
    const auto reference = [](unsigned number) {  // base 36. "S0_" is the second reference
        constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        std::string digits;
        do {
            digits.insert(digits.begin(), kDigits[number % 36]);
            number /= 36;
        } while (number != 0);
        return "S" + digits + "_";
    };
    std::string type = "S_IiiE";
    for (unsigned level = 0; level + 1 < levels; ++level) {
        type = "S_I" + type + reference(level) + "E";
    }
    return "_Z1fSt4pairI" + type + reference(levels - 1) + "E";
}

}  // namespace

TEST_CASE("a mangled name that would become too long is shortened") {
    CHECK(demangle(doubling_name(2).c_str()) ==
          "f(std::pair<std::pair<std::pair<int, int>, std::pair<int, int> >, "
          "std::pair<std::pair<int, int>, std::pair<int, int> > >)");
    CHECK(demangle(doubling_name(60).c_str()).size() < 1000);
    CHECK(demangle(doubling_name(2000).c_str()).size() < 1000);
    const std::string nested = "_ZN2at6native11gpu_kernel_I" + doubling_name(60).substr(4) + "EEvv";
    CHECK(demangle(nested.c_str()) == "at::native::gpu_kernel_<...>(...)");
    CHECK(demangle("_ZN3c1014TensorIterator5buildEv") == "c10::TensorIterator::build()");
    CHECK(demangle("not mangled") == "not mangled");
    CHECK(demangle("f") == "f");  // a C function, not the type float
}
