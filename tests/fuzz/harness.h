// What the fuzz targets share. Each target is one file with LLVMFuzzerTestOneInput(), which turns
// bytes into files and runs commands on them in this process. libFuzzer calls it, or
// run_inputs.cpp, which needs no clang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fragtrace::fuzz {

// Takes the bytes of an input from its front. Gives zeros after the last one.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size)
        : rest_(reinterpret_cast<const char*>(data), size) {}

    std::uint8_t byte() { return static_cast<std::uint8_t>(number(1)); }

    std::uint64_t number(int size_bytes);

    [[nodiscard]] bool empty() const { return rest_.empty(); }

    [[nodiscard]] std::string_view rest() const { return rest_; }

  private:
    std::string_view rest_;
};

// Writes a file and gives its path: the same folder for all inputs of the process.
std::string save(std::string_view name, std::string_view content);

// `fraganalyze WORDS...`, without its output. True = exit status 0. What it throws ends the
// process: no file and no setting may lead there.
bool run(std::vector<std::string> words);

// What reads a trace or a snapshot; `choice` says which commands, so that each input costs one.
void run_on_recording(std::uint8_t choice, const std::string& path);

}  // namespace fragtrace::fuzz
