// One archive with what a report on a problem of fragtrace needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fragtrace::launcher {

struct BundleFile {
    std::string name;
    std::string content;
    std::string source;  // if not empty: the content is that of this file
};

// Writes a new .tar.gz with these files, which only the user may read. Throws a Refusal if the
// archive exists or cannot be written; then nothing is left.
void write_bundle(const std::string& path, const std::vector<BundleFile>& files);

}  // namespace fragtrace::launcher
