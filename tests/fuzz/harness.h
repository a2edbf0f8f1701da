// Shared by the fuzz targets.
//
// Each target is one file with LLVMFuzzerTestOneInput(), which turns bytes into files and runs
// commands on them in this process. It is called by libFuzzer, or by run_inputs.cpp, which does not
// need clang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fragtrace::fuzz {

// Reads the bytes of an input from its front. After the last byte it returns zeros.
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

// Writes a file and returns its path. All inputs of the process use the same folder.
std::string save(std::string_view name, std::string_view content);

// Runs `fraganalyze WORDS...` without output. True means exit status 0. An exception ends the
// process: no file and no setting may cause one.
bool run(std::vector<std::string> words);

// Runs the commands that read a trace or a snapshot. `choice` selects them, so that each input
// costs one command.
void run_on_recording(std::uint8_t choice, const std::string& path);

}  // namespace fragtrace::fuzz
