// Writes pickles like Python's pickler (protocol 4), and, byte by byte, pickles that no pickler
// would write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fragtrace::testing {

class PickleWriter {
  public:
    PickleWriter() { raw(std::string_view("\x80\x04", 2)); }

    PickleWriter& raw(std::string_view bytes) {
        bytes_ += bytes;
        return *this;
    }

    PickleWriter& number(std::int64_t value) {
        if (value >= 0 && value < 256) {
            return raw("K").little(static_cast<std::uint64_t>(value), 1);
        }
        if (value >= 0 && value < 65536) {
            return raw("M").little(static_cast<std::uint64_t>(value), 2);
        }
        return raw(std::string_view("\x8a\x08", 2)).little(static_cast<std::uint64_t>(value), 8);
    }

    // Like a pickler that refers to a text that it wrote before.
    PickleWriter& text(std::string_view text) {
        for (std::size_t i = 0; i < memo_.size(); ++i) {
            if (memo_[i] == text) {
                return raw("j").little(i, 4);
            }
        }
        raw("\x8c").little(text.size(), 1).raw(text);
        return memoize(std::string(text));
    }

    PickleWriter& truth(bool value) { return raw(value ? "\x88" : "\x89"); }

    PickleWriter& begin_dict() { return raw("}").memoize("").raw("("); }

    PickleWriter& end_dict() { return raw("u"); }

    PickleWriter& begin_list() { return raw("]").memoize("").raw("("); }

    PickleWriter& end_list() { return raw("e"); }

    PickleWriter& pair(std::int64_t first, std::int64_t second) {
        return number(first).number(second).raw("\x86").memoize("");
    }

    // The number under which the object written next can be recalled.
    [[nodiscard]] std::uint64_t next_memo() const { return memo_.size(); }

    PickleWriter& recall(std::uint64_t memo) { return raw("j").little(memo, 4); }

    PickleWriter& little(std::uint64_t value, int size_bytes) {
        for (int i = 0; i < size_bytes; ++i) {
            bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
        }
        return *this;
    }

    [[nodiscard]] std::string finish() const { return bytes_ + "."; }

  private:
    PickleWriter& memoize(std::string text) {
        // An empty text never matches, so no text is recalled by it.
        memo_.push_back(text.empty() ? std::string("\0object", 7) : std::move(text));
        return raw("\x94");
    }

    std::string bytes_;
    std::vector<std::string> memo_;
};

// A snapshot of one device. Unset parts are left out, as older releases do.
class SnapshotWriter {
  public:
    struct Frame {
        std::string function;
        std::string file;
        std::uint64_t line = 0;
    };

    struct Block {
        std::uint64_t size_bytes = 0;
        std::string state = "inactive";
        std::uint64_t requested_bytes = 0;
    };

    struct Segment {
        std::uint64_t address = 0;
        std::vector<Block> blocks;
        std::uint64_t stream = 0;
        bool expandable = false;
    };

    struct Entry {
        std::string action;
        std::uint64_t address = 0;
        std::uint64_t size_bytes = 0;
        std::uint64_t stream = 0;
        std::string line = "train.py";
        std::string label = {};          // in user_metadata, instead of two texts in `line`
        std::vector<Frame> frames = {};  // instead of two in `line`
    };

    std::vector<Segment> segments;
    std::vector<Entry> entries;
    std::string settings;
    bool with_settings = true;
    bool with_history = true;
    bool of_registration = true;  // from a release that sorts by the order of segments
    bool with_stacks = true;
    bool entries_with_stacks = true;
    bool with_labels = false;
    std::vector<Segment> host_segments;  // pinned memory
    std::vector<Entry> host_entries;
    std::string unknown_key;  // in each entry

    [[nodiscard]] std::string pickle() const {
        PickleWriter out;
        out.begin_dict().text("segments").begin_list();
        for (const Segment& segment : segments) {
            write(&out, segment);
        }
        out.end_list();
        if (with_history) {
            out.text("device_traces").begin_list().begin_list();
            std::uint64_t time_us = 1'700'000'000'000'000;
            for (const Entry& entry : entries) {
                write(&out, entry, time_us += 10);
            }
            out.end_list().end_list();
        }
        if (with_settings) {
            out.text("allocator_settings").begin_dict();
            out.text("PYTORCH_CUDA_ALLOC_CONF").text(settings);
            out.text("max_split_size").number(-1);
            out.end_dict();
        }
        if (of_registration) {
            out.text("host_segments").begin_list();
            for (const Segment& segment : host_segments) {
                write(&out, segment, -1);
            }
            out.end_list();
        }
        if (!host_entries.empty()) {
            out.text("host_traces").begin_list();
            std::uint64_t time_us = 1'700'000'000'000'005;
            for (const Entry& entry : host_entries) {
                write(&out, entry, time_us += 10);
            }
            out.end_list();
        }
        out.end_dict();
        return out.finish();
    }

  private:
    void write_frames(PickleWriter* out, std::vector<Frame> frames, const std::string& file) const {
        if (!with_stacks) {
            return;
        }
        if (frames.empty()) {
            frames = {{"step", file, 7}, {"<module>", file, 30}};
        }
        out->text("frames").begin_list();
        for (const Frame& frame : frames) {
            out->begin_dict().text("name").text(frame.function).text("filename").text(frame.file);
            out->text("line").number(static_cast<std::int64_t>(frame.line)).end_dict();
        }
        out->end_list();
    }

    void write(PickleWriter* out, const Segment& segment, std::int64_t device = 0) const {
        std::uint64_t size_bytes = 0;
        for (const Block& block : segment.blocks) {
            size_bytes += block.size_bytes;
        }
        out->begin_dict().text("device").number(device);
        out->text("address").number(static_cast<std::int64_t>(segment.address));
        out->text("total_size").number(static_cast<std::int64_t>(size_bytes));
        out->text("stream").number(static_cast<std::int64_t>(segment.stream));
        const bool small = segment.expandable ? false : size_bytes <= (2u << 20);
        out->text("segment_type").text(small ? "small" : "large");
        out->text("segment_pool_id").pair(0, 0);
        out->text("is_expandable").truth(segment.expandable);
        out->text("blocks").begin_list();
        std::uint64_t address = segment.address;
        for (const Block& block : segment.blocks) {
            out->begin_dict().text("address").number(static_cast<std::int64_t>(address));
            out->text("size").number(static_cast<std::int64_t>(block.size_bytes));
            out->text("requested_size").number(static_cast<std::int64_t>(block.requested_bytes));
            out->text("state").text(block.state);
            write_frames(out, {}, "train.py");
            out->end_dict();
            address += block.size_bytes;
        }
        out->end_list().end_dict();
    }

    void write(PickleWriter* out, const Entry& entry, std::uint64_t time_us) const {
        out->begin_dict().text("action").text(entry.action);
        out->text(entry.action == "oom" ? "device_free" : "addr")
            .number(static_cast<std::int64_t>(entry.address));
        out->text("size").number(static_cast<std::int64_t>(entry.size_bytes));
        out->text("stream").number(static_cast<std::int64_t>(entry.stream));
        out->text("time_us").number(static_cast<std::int64_t>(time_us));
        if (with_labels) {
            out->text("user_metadata").text(entry.label);
        }
        if (!unknown_key.empty()) {
            out->text(unknown_key).number(1);
        }
        if (entries_with_stacks) {
            write_frames(out, entry.frames, entry.line);
        }
        out->end_dict();
    }
};

}  // namespace fragtrace::testing
