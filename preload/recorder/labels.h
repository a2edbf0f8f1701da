// Labels: the program's names for the blocks that it allocates.
//
// A thread's labels are nested; the innermost one counts. PyTorch's own metadata of a thread
// (_set_memory_metadata) counts outside of all labels. Labels do not start a session, so a process
// that never uses a GPU leaves no file. Every function belongs to the calling thread's labels and
// can be called at any time.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

void begin_label(const char* text);
void end_label();

// The thread's label outside of all labels that begin_label() began. nullptr or "" = none.
void set_outer_label(const char* text);

// Records a label for the live block at this address. nullptr or "" does nothing. `pool`: a pool of
// the program (program_pools.h); 0 = the framework's allocator.
void label_block(uint64_t address, const char* text, uint32_t pool = 0);

// Records the thread's label, if it has one, for a block that was just recorded.
void label_new_block(uint64_t address, uint16_t device, uint32_t pool = 0);

}  // namespace fragtrace::preload
