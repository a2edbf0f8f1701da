// Which frame of a stack tells the user where they are in their own program, and how it is named.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Whether anything is known of where an event came from.
bool has_stack(const Origin& origin);
// Where no block of a map has a stack, their sizes tell them apart: "no stack: blocks of 9 MiB".
std::string label_by_size(std::uint64_t size_bytes);

// Which of these frames (innermost first) Symbolizer::describe picks; nullptr if there is none.
const Frame* pick_user_frame(const std::vector<Frame>& frames);

// What pick_user_frame asks of a frame, one bit each: known once per frame where many stacks share
// frames.
using FrameTraits = std::uint32_t;
FrameTraits frame_traits(const Frame& frame);
// The same choice among frames of which only the traits are at hand; frames.size() if there is
// none.
std::size_t user_frame_index(const std::vector<FrameTraits>& frames);
// The library that a frame's code belongs to, as few words as do: "torch", "pandas",
// "libcublas.so.12"; empty: the program's own.
std::string library_of(const Frame& frame);
// "model/net.py:42 forward", "MmBackward0 (backward pass)", "cublasCreate in libcublas.so.12".
std::string describe_frame(const Frame& frame);

}  // namespace fragtrace::analyzer
