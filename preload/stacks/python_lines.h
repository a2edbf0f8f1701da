// Line numbers from the tables of a Python code object; one function per table format.
//
// Pure functions of bytes. `lasti` is the byte offset of the instruction; negative means that the
// frame has not started. The result 0 means that the instruction has no line.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

// CPython 3.11 and later: location table.
uint32_t line_in_location_table(const uint8_t* table, size_t size_bytes, int first_line, int lasti);

// CPython 3.10: line table.
uint32_t line_in_line_table(const uint8_t* table, size_t size_bytes, int first_line, int lasti);

// CPython 3.8 and 3.9: lnotab.
uint32_t line_in_lnotab(const uint8_t* table, size_t size_bytes, int first_line, int lasti);

}  // namespace fragtrace::preload
