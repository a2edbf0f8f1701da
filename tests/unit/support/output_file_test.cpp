#include "analyzer/cli/output_file.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace fragtrace::analyzer;

TEST_CASE("an output file appears whole or not at all") {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / "fragtrace-output-test";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const std::string path = folder / "report.json";
    REQUIRE(write_output(path, "whole"));
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    CHECK(text.str() == "whole");

    const Status missing = write_output(folder / "no" / "report.json", "whole");
    ;
    REQUIRE_FALSE(missing);
    CHECK(missing.error().message.find("cannot create") != std::string::npos);
    // Over a folder the last step fails: the temporary file must not stay.
    std::filesystem::create_directories(folder / "taken" / "inside");
    CHECK_FALSE(write_output(folder / "taken", "whole"));
    std::size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder))
        ++entries;
    CHECK(entries == 2);
    std::filesystem::remove_all(folder);
}
