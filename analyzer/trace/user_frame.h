// Picks the frame of a stack that shows users where they are in their own program, and formats it.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Whether the origin has a stack or a label.
bool has_stack(const Origin& origin);
// A label for blocks without stacks: "no stack: blocks of 9 MiB". Used if no block of a map has a
// stack.
std::string label_by_size(std::uint64_t size_bytes);

// The frame (of frames in innermost-first order) that Symbolizer::describe picks; nullptr if there
// is none.
const Frame* pick_user_frame(const std::vector<Frame>& frames);

// The properties of a frame that pick_user_frame depends on, one bit each. Many stacks share
// frames, so callers can compute them once per frame.
using FrameTraits = std::uint32_t;
FrameTraits frame_traits(const Frame& frame);
// The same choice as pick_user_frame, but from the traits. Returns frames.size() if there is no
// frame.
std::size_t user_frame_index(const std::vector<FrameTraits>& frames);
// The library of a frame's code in as few words as possible: "torch", "pandas", "libcublas.so.12".
// Empty for the program's own code.
std::string library_of(const Frame& frame);
// "model/net.py:42 forward", "MmBackward0 (backward pass)", "cublasCreate in libcublas.so.12".
std::string describe_frame(const Frame& frame);

}  // namespace fragtrace::analyzer
