// Derives the rule of an address from a module's unwind tables (see unwind_rules.h). The tables are
// those of the Linux Standard Base (.eh_frame_hdr, .eh_frame), with the call frame instructions of
// DWARF 4, section 6.4.2.
#include "stacks/unwind_entries.h"
#include "stacks/unwind_rules.h"
#include "stacks/unwind_table_reader.h"

namespace fragtrace::preload {

#if FT_HAVE_UNWIND_RULES
namespace {

constexpr uint64_t kFramePointer = 6;  // register numbers in the tables
constexpr uint64_t kStackPointer = 7;
constexpr uint64_t kReturnAddress = 16;
constexpr int kMostRememberedRows = 8;

// The row of the unwind table that applies to one address: how to restore a frame's caller.
struct Row {
    enum Saved : uint8_t { kUnchanged, kAtOffset, kUndefined, kOther };

    uint64_t base;  // register, or kNoBase
    int64_t distance;
    Saved frame_pointer;
    Saved return_address;
    int64_t frame_pointer_offset;  // from the CFA
    int64_t return_address_offset;
};

constexpr uint64_t kNoBase = ~uint64_t{0};

struct CommonEntry {  // CIE
    uint64_t code_step;
    int64_t data_step;
    uint8_t pointer_encoding;
    TableReader instructions{nullptr, nullptr};
};

void set_saved(Row* row, uint64_t number, Row::Saved saved, int64_t offset) {
    if (number == kFramePointer) {
        row->frame_pointer = saved;
        row->frame_pointer_offset = offset;
    } else if (number == kReturnAddress) {
        row->return_address = saved;
        row->return_address_offset = offset;
    }
}

void restore(Row* row, const Row& initial, uint64_t number) {
    if (number == kFramePointer) {
        row->frame_pointer = initial.frame_pointer;
        row->frame_pointer_offset = initial.frame_pointer_offset;
    } else if (number == kReturnAddress) {
        row->return_address = initial.return_address;
        row->return_address_offset = initial.return_address_offset;
    }
}

// Runs call frame instructions up to the row of `address`. Returns false for unsupported
// instructions.
bool run(TableReader in,
         const CommonEntry& common,
         const Row& initial,
         uint64_t location,
         uint64_t address,
         Row* row) {
    Row remembered[kMostRememberedRows];
    int remembered_count = 0;
    const auto factored = [&common](uint64_t value) {
        return static_cast<int64_t>(value) * common.data_step;
    };
    while (!in.done()) {
        const auto code = in.fixed<uint8_t>();
        const uint64_t low = code & 0x3f;
        uint64_t advance = 0;
        switch (code >> 6) {
            case 1:  // advance_loc
                advance = low;
                break;
            case 2:  // offset
                set_saved(row, low, Row::kAtOffset, factored(in.unsigned_number()));
                continue;
            case 3:  // restore
                restore(row, initial, low);
                continue;
            default:
                break;
        }
        if (code >> 6 == 0) {
            switch (code) {
                case 0x00:  // nop
                    continue;
                case 0x02:  // advance_loc1, 2, 4
                    advance = in.fixed<uint8_t>();
                    break;
                case 0x03:
                    advance = in.fixed<uint16_t>();
                    break;
                case 0x04:
                    advance = in.fixed<uint32_t>();
                    break;
                case 0x05: {  // offset_extended
                    const uint64_t number = in.unsigned_number();
                    set_saved(row, number, Row::kAtOffset, factored(in.unsigned_number()));
                    continue;
                }
                case 0x06:  // restore_extended
                    restore(row, initial, in.unsigned_number());
                    continue;
                case 0x07:  // undefined
                    set_saved(row, in.unsigned_number(), Row::kUndefined, 0);
                    continue;
                case 0x08:  // same_value
                    set_saved(row, in.unsigned_number(), Row::kUnchanged, 0);
                    continue;
                case 0x09:  // register
                    set_saved(row, in.unsigned_number(), Row::kOther, 0);
                    in.unsigned_number();
                    continue;
                case 0x0a:  // remember_state
                    if (remembered_count == kMostRememberedRows) {
                        return false;
                    }
                    remembered[remembered_count++] = *row;
                    continue;
                case 0x0b:  // restore_state
                    if (remembered_count == 0) {
                        return false;
                    }
                    *row = remembered[--remembered_count];
                    continue;
                case 0x0c:  // def_cfa
                    row->base = in.unsigned_number();
                    row->distance = static_cast<int64_t>(in.unsigned_number());
                    continue;
                case 0x0d:  // def_cfa_register
                    row->base = in.unsigned_number();
                    continue;
                case 0x0e:  // def_cfa_offset
                    row->distance = static_cast<int64_t>(in.unsigned_number());
                    continue;
                case 0x0f:  // def_cfa_expression
                    row->base = kNoBase;
                    in.skip(in.unsigned_number());
                    continue;
                case 0x10:    // expression
                case 0x16: {  // val_expression
                    const uint64_t number = in.unsigned_number();
                    set_saved(row, number, Row::kOther, 0);
                    in.skip(in.unsigned_number());
                    continue;
                }
                case 0x11: {  // offset_extended_sf
                    const uint64_t number = in.unsigned_number();
                    set_saved(row, number, Row::kAtOffset, in.signed_number() * common.data_step);
                    continue;
                }
                case 0x12:  // def_cfa_sf
                    row->base = in.unsigned_number();
                    row->distance = in.signed_number() * common.data_step;
                    continue;
                case 0x13:  // def_cfa_offset_sf
                    row->distance = in.signed_number() * common.data_step;
                    continue;
                case 0x2e:  // GNU_args_size
                    in.unsigned_number();
                    continue;
                default:
                    return false;
            }
        }
        location += advance * common.code_step;
        if (location > address) {
            break;
        }
    }
    return !in.failed();
}

bool read_common_entry(const uint8_t* at,
                       const uint8_t* begin,
                       const uint8_t* end,
                       CommonEntry* to) {
    if (at < begin || at >= end) {
        return false;
    }
    TableReader in(at, end);
    const auto length = in.fixed<uint32_t>();
    if (length == 0 || length == 0xffffffff || length > static_cast<size_t>(end - at) - 4) {
        return false;
    }
    in.end_at(at + 4 + length);
    const auto identity = in.fixed<uint32_t>();
    const auto version = in.fixed<uint8_t>();
    if (identity != 0 || (version != 1 && version != 3)) {
        return false;
    }
    char augmentation[8] = {};
    size_t count = 0;
    while (const auto letter = in.fixed<uint8_t>()) {
        if (count + 1 == sizeof augmentation) {
            return false;
        }
        augmentation[count++] = static_cast<char>(letter);
    }
    to->code_step = in.unsigned_number();
    to->data_step = in.signed_number();
    const uint64_t return_register = version == 1 ? in.fixed<uint8_t>() : in.unsigned_number();
    // Without a length ('z'), the end of the augmentation data is unknown.
    if (augmentation[0] != 'z' || return_register != kReturnAddress) {
        return false;
    }
    const uint64_t data_bytes = in.unsigned_number();
    TableReader data = in;
    in.skip(data_bytes);
    to->pointer_encoding = 0;
    for (size_t i = 1; i < count; ++i) {
        switch (augmentation[i]) {
            case 'R':
                to->pointer_encoding = data.fixed<uint8_t>();
                break;
            case 'L':
                data.fixed<uint8_t>();
                break;
            case 'P': {
                const auto encoding = data.fixed<uint8_t>();
                data.pointer(encoding & 0x0f);
                break;
            }
            default:  // including 'S', the frame of a signal
                return false;
        }
    }
    to->instructions = in;
    return !in.failed() && !data.failed();
}

UnwindRule rule_of_row(const Row& row) {
    constexpr int64_t kWord = 8;
    if (row.return_address == Row::kUndefined) {
        return kOutermostFrame;
    }
    if (row.return_address != Row::kAtOffset || row.return_address_offset != -kWord ||
        (row.base != kStackPointer && row.base != kFramePointer) || row.distance <= 0 ||
        row.distance % kWord != 0 || row.distance / kWord > 0xfff) {
        return kUnusualFrame;
    }
    uint32_t saved = 0;
    if (row.frame_pointer == Row::kAtOffset) {
        const int64_t words = -row.frame_pointer_offset / kWord - 1;
        if (row.frame_pointer_offset % kWord != 0 || words < 1 || words > 15) {
            return kUnusualFrame;
        }
        saved = static_cast<uint32_t>(words);
    } else if (row.frame_pointer != Row::kUnchanged) {
        return kUnusualFrame;
    }
    return (row.base == kFramePointer ? kRuleBaseIsFramePointer : 0) |
           static_cast<uint32_t>(row.distance / kWord) << 4 | saved;
}

}  // namespace

bool can_read_unwind_rules() {
    return can_find_unwind_entries();
}

UnwindRule read_unwind_rule(uint64_t address) {
    // Use the address of the call, not the return address: a call that never returns may be the
    // last instruction of its function.
    const uint64_t call = address - 1;
    UnwindEntry entry{};
    if (!find_unwind_entry(call, &entry)) {
        return kUnusualFrame;
    }
    TableReader in(entry.at, entry.end);
    const auto length = in.fixed<uint32_t>();
    const uint8_t* after_length = in.at();
    if (length == 0 || length == 0xffffffff ||
        length > static_cast<size_t>(entry.end - after_length)) {
        return kUnusualFrame;
    }
    in.end_at(after_length + length);
    const auto to_common = in.fixed<uint32_t>();
    CommonEntry common{};
    if (to_common == 0 || to_common > static_cast<size_t>(after_length - entry.begin) ||
        !read_common_entry(after_length - to_common, entry.begin, entry.end, &common)) {
        return kUnusualFrame;
    }
    const uint64_t begin = in.pointer(common.pointer_encoding);
    const uint64_t size = in.pointer(common.pointer_encoding & 0x0f);
    in.skip(in.unsigned_number());
    if (in.failed() || call - begin >= size) {
        return kUnusualFrame;
    }
    Row row{kNoBase, 0, Row::kUnchanged, Row::kOther, 0, 0};
    if (!run(common.instructions, common, row, 0, ~uint64_t{0}, &row)) {
        return kUnusualFrame;
    }
    const Row initial = row;
    return run(in, common, initial, begin, call, &row) ? rule_of_row(row) : kUnusualFrame;
}

#else

bool can_read_unwind_rules() {
    return false;
}

UnwindRule read_unwind_rule(uint64_t) {
    return kUnusualFrame;
}

#endif

}  // namespace fragtrace::preload
