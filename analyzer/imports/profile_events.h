// The memory events of a profile, and the slices of its threads: operators, functions, ranges. They
// become the events of a timeline, in the order of their times.
//
// The stack of a memory event is that of the slices around it on its thread. Ranges become phases.
// Times are those of the profile's clock, in nanoseconds. The input is untrusted. Not thread-safe.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/imports/import_stacks.h"
#include "analyzer/imports/import_timeline.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::uint32_t kNoFrame = ~std::uint32_t{0};

struct ProfileEvent {
    // With the time on the profile's clock. The stack is set by write() if it is 0.
    EventRecord record = {};
    // The bytes of all blocks of the device after the event; kUnknown64 = unknown.
    std::uint64_t allocated = kUnknown64;
    // A frame inside those of the slices; kNoFrame = none.
    std::uint32_t innermost = kNoFrame;
};

struct ProfileSlice {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
    std::uint32_t thread = 0;
    bool range = false;  // a phase, not a frame
};

class ProfileEvents {
  public:
    // How the name of a slice is written: sets the line (0 = unknown) and returns the function.
    using FrameOfName = PythonCode (*)(const std::string& name, std::uint32_t* line);

    explicit ProfileEvents(FrameOfName frame_of_name) : frame_of_name_(frame_of_name) {}

    ImportStacks& stacks() { return stacks_; }

    void add(const ProfileEvent& event) { events_.push_back(event); }

    // Slices beyond the limits are counted and left out.
    void add(const ProfileSlice& slice, std::string_view name);

    [[nodiscard]] const std::vector<ProfileEvent>& events() const { return events_; }

    [[nodiscard]] std::uint64_t slices_left_out() const { return slices_left_out_; }

    // Replaces the device N of each event by devices[N]. Those with kDeviceUnknown are left out.
    void renumber_devices(const std::vector<std::uint16_t>& devices);

    // Adds everything to the timeline; time 0 is the first event or slice. Call it once, with at
    // least one event. Returns the time of time 0.
    std::uint64_t write(ImportTimeline* timeline);

    // After write(): whether any memory event has a stack.
    [[nodiscard]] bool has_stacks() const { return !stacks_.empty(); }

    [[nodiscard]] std::vector<PythonCode> take_codes() { return stacks_.take_codes(); }

  private:
    struct Slice : ProfileSlice {
        std::uint32_t name = 0;
    };

    // A device before its first event.
    struct Start {
        std::uint64_t older_bytes = 0;                                      // allocated before
        std::vector<std::pair<std::uint64_t, std::uint64_t>> older_blocks;  // freed in the profile
        std::uint64_t highest_end = 0;                                      // of all addresses
    };

    struct Open {
        std::uint64_t end_ns;
        std::uint32_t stack;
    };

    void sort();
    void find_starts();
    void write_starts();
    void write_older(std::uint16_t device, std::uint64_t address, std::uint64_t bytes);
    void write_events();
    void write_range(std::uint32_t slice, std::uint64_t time_ns, bool begin);
    void open_slices_to(std::uint64_t time_ns);
    std::uint32_t stack_of(std::uint32_t thread, std::uint64_t time_ns);
    std::uint32_t frame_of(std::uint32_t name);

    FrameOfName frame_of_name_;
    ImportTimeline* timeline_ = nullptr;
    ImportStacks stacks_;
    std::vector<ProfileEvent> events_;
    std::vector<Slice> slices_;
    std::uint64_t first_ns_ = 0;
    std::map<std::uint16_t, Start> starts_;
    std::size_t next_slice_ = 0;
    std::unordered_map<std::uint32_t, std::vector<Open>> open_;  // by thread
    std::unordered_map<std::uint32_t, std::uint32_t> frames_;    // by name
    std::uint64_t slices_left_out_ = 0;
};

}  // namespace fragtrace::analyzer
