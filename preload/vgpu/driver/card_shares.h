// What this process has taken of its cards. If the cards are shared, its page in the book
// (common/card_book.h) says the same, and other processes' memory counts. All functions require the
// driver's lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu {

enum class Sharing {
    kShared,
    kAlone,    // this process counts its own memory only
    kRefused,  // the cards cannot be used: other processes have cards of another size
};

// Opens the book if the settings ask for one. `problem` gets a line if that fails.
Sharing open_shares(char* problem, size_t room);

// Sets what this process has taken of a card with `total` bytes. Returns false, and changes
// nothing, if it is more than before and does not fit beside the other processes' memory.
bool set_share(int card, uint64_t bytes, uint64_t total);

// What living processes other than this one have taken.
uint64_t taken_by_others(int card);

// In a child of fork, which owns nothing on the cards.
void forget_shares();

}  // namespace fragtrace::vgpu
