// The command, card and environment of a recorded run, as `fragtrace try` repeats it.
#pragma once

#include <fragtrace/pytorch_variables.h>

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace fragtrace::launcher {

// The variable of PyTorch's settings that every release reads, before all others.
inline constexpr const char* kSettings = kPytorchVariables[0].name;

// The recorded command. Changes to its folder. Throws a Refusal if the user did not record the
// trace here, if it is a rank of a job (`rank` is not negative), or if the program is another one
// now.
std::vector<std::string> recorded_command(const std::string& trace,
                                          const nlohmann::json& facts,
                                          int rank);

// The virtual GPU of the recording; empty: a real card.
std::string recorded_card(const nlohmann::json& report);

// The recorded variables that matter, and the change of `row`.
std::vector<std::pair<std::string, std::string>> environment_of(const nlohmann::json& facts,
                                                                const nlohmann::json& row);

}  // namespace fragtrace::launcher
