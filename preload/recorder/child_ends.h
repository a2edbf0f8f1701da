// Ends that a process cannot record itself.
#pragma once

namespace fragtrace::preload {

// If this program replaced another one by exec, and that one left a ring, notes in it when this
// program began. Call it once, when the library is loaded. Looks at each file in the folder of the
// rings.
void note_earlier_program();

}  // namespace fragtrace::preload
