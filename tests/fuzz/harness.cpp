#include "tests/fuzz/harness.h"

#include "analyzer/commands/registry.h"
#include "analyzer/support/output_file.h"
#include "tests/support/trace_writer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace fragtrace::fuzz {

std::uint64_t Input::number(int size_bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < size_bytes && !rest_.empty(); ++i) {
        value |= std::uint64_t{static_cast<std::uint8_t>(rest_.front())} << (8 * i);
        rest_.remove_prefix(1);
    }
    return value;
}

std::string save(std::string_view name, std::string_view content) {
    static const testing::TemporaryFolder folder;
    const std::string path = folder.file(name);
    testing::write_file(path, content);
    return path;
}

bool run(std::vector<std::string> words) {
    static const bool silent = std::freopen("/dev/null", "w", stdout) != nullptr;
    if (!silent) {
        return false;
    }
    analyzer::replace_any_file();
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    const auto argument_count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    return analyzer::find_command(words.front())->run(argument_count, arguments.data()).ok();
}

void run_on_recording(std::uint8_t choice, const std::string& path) {
    const std::string sent = std::filesystem::path(path).parent_path() / "anonymous";
    switch (choice % 16) {
        case 0:  // a page takes longer than all other reports, so few inputs make one
            if (run({"report", path}) && !run({"report", path, "--html", "/dev/null"})) {
                std::abort();  // a readable file can also be drawn
            }
            break;
        case 5:
            run({"whatif", path});
            break;
        case 6:
            run({"whatif", path, "--no-scan", "--capacity", "64MiB", "--json", "-"});
            break;
        case 7:
            run({"replay", path, "--conf", "expandable_segments:True", "--json", "-"});
            run({"replay", path, "--capacity", "1GiB", "--request", "512MiB"});
            break;
        case 8:
            run({"validate", path});
            run({"validate", path, "--pool", "best-fit"});
            break;
        case 9:
            run({"compare", path, path, "--batch", "1,2", "--predict", "3"});
            break;
        case 10:
            run({"compare", path, path, "--json", "-"});
            break;
        case 11:
            run({"summarize", path});
            run({"summarize", path, "--json", "-"});
            run({"check", path, "--max-waste", "10%", "--no-oom", "--json", "-"});
            break;
        case 4:  // in pieces, as a long trace
            run({"report", path, "--events", "100", "--json", "-"});
            run({"whatif", path, "--events", "200", "--no-scan"});
            break;
        case 12:
            run({"dump", path});
            run({"dump", path, "--facts"});
            run({"list", path});
            break;
        case 13:
            if (run({"anonymize", path, sent})) {
                run({"report", sent, "--no-whatif"});
            }
            break;
        case 14:
            run({"report", path, path, "--json", "/dev/null"});
            break;
        case 15:
            run({"report", path, path, "--html", "/dev/null", "--no-whatif"});
            break;
        case 1:
            run({"report", path, "--json", "/dev/null"});
            break;
        default:  // the search for better settings takes longest and reads no additional data
            run({"report", path, "--json", "/dev/null", "--no-whatif"});
            break;
    }
}

}  // namespace fragtrace::fuzz
