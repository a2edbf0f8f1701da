// Texts as parts of a file name. The recorder writes the names of traces with them, and the
// launcher recognises these names.
#pragma once

#include "system/sys.h"

namespace fragtrace::preload {

// Adds at most 64 characters of a text. Characters other than letters, digits, '-', '_' and '.'
// become '_', and so does a dot at the begin.
void add_safe(Text* name, const char* text, size_t size);

// Adds the host's name up to its first dot; "unknown" if it is empty. A number would look like a
// process id: "12" becomes "host12", "10.0.0.1" becomes "host10-0-0-1".
void add_host(Text* name, const char* host);

}  // namespace fragtrace::preload
