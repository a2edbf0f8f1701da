// The environment variables from which the recorder reads its settings.
//
// Any thread. As with getenv(), no other thread may change the environment meanwhile. Nothing here
// calls the C library: a part runs inside of the wrapped getenv().
#pragma once

namespace fragtrace::preload {

// Called when the library is loaded, with the arguments of its constructor.
void note_environment(int count, char** arguments, char** variables);

// The variables of the process, as a list that ends with nullptr. A program may clear its
// environment, for example to protect itself. If no variable FRAGTRACE_... is left, these are the
// variables that the process was started with.
char* const* environment();

// Returns the value of a variable of environment(), nullptr if it is not set.
const char* variable(const char* name);

}  // namespace fragtrace::preload
