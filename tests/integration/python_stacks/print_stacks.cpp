// Prints the device allocations of a trace with their complete stacks, innermost frame first: BYTES
// TAB function TAB function ...
#include "analyzer/trace/reader.h"
#include "analyzer/trace/symbols.h"

#include <cstdio>

using namespace fragtrace;
using namespace fragtrace::analyzer;

int main(int count, char** arguments) {
    const auto timeline = read_trace(count > 1 ? arguments[1] : "", {});
    if (!timeline) {
        return 2;
    }
    Symbolizer symbols(*timeline);
    for (const Event& event : timeline->events) {
        if (event.kind != EventKind::kDeviceAlloc) {
            continue;
        }
        std::printf("%llu", static_cast<unsigned long long>(event.size_bytes));
        for (const Frame& frame : symbols.frames(event.origin)) {
            std::printf("\t%s", frame.function.c_str());
        }
        std::printf("\n");
    }
    std::printf("without order %llu\n",
                static_cast<unsigned long long>(symbols.stacks_without_order()));
    return 0;
}
