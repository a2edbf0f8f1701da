// For the analyzer inside of other programs, which may live long.
#pragma once

namespace fragtrace::analyzer {

// From now on, Progress (terminal.h) shows nothing in this process. Thread-safe.
void show_no_progress();

// write_output() refuses files that this process has read. This ends that for the files so far: the
// program may have removed them since, and a new file can have the number of an old one.
// Thread-safe.
void forget_files_read();

}  // namespace fragtrace::analyzer
