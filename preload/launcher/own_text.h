// Text that comes from the user or from the machine, inside the sentences of fragtrace: paths,
// values of variables, lines of other programs. It is marked where it enters a sentence. So an
// archive for others can leave out all of it, and no search for paths and names is needed.
#pragma once

#include <string>
#include <string_view>

namespace fragtrace::launcher {

// Returns the text on one line, marked as the user's own. It stays unmarked if each of its words is
// a number, a unit or a word that is the same on many machines, such as those of "/dev/shm",
// "expandable_segments:True" and "2.6.0+cu124".
std::string own(std::string_view text);

// Returns the sentence without the marks.
std::string plain(std::string_view sentence);

// Returns the sentence with <hidden> in place of each marked text.
std::string hidden(std::string_view sentence);

}  // namespace fragtrace::launcher
