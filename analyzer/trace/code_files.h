// Classifies the file of a frame: library, generated code, the program's own code, or no Python.
// Also reads Windows paths. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// Whether a Python file belongs to an installed package, the standard library or PyTorch's source
// tree.
bool is_library_file(std::string_view file);

// Returns the generator of a Python file that nobody wrote: "torch.compile", "triton", "exec".
// Returns an empty string if a person wrote it. Code typed at a prompt or into a notebook cell
// counts as the program's own.
std::string_view generator_of(std::string_view file);

// Returns the package or library of a path: "torch", "pandas". Empty if the path is not in a
// package folder.
std::string_view package_of(std::string_view path);

// Returns the file as a report's line shows it: the last two components of the path. Generated code
// is shown by its generator and a notebook cell by its number, without randomly chosen names.
std::string shown_file(std::string_view file);

// Memory snapshots of PyTorch do not say whether a frame is Python or native. A frame counts as
// native in these cases: no file, a C or C++ file, a library as file, an unknown function, a name
// that only C++ has.
bool is_native_frame(std::string_view function, std::string_view file);

// Whether a file's name is that of a C, C++ or CUDA source file.
bool is_native_source(std::string_view file);

}  // namespace fragtrace::analyzer
