// The tables of the format csv, and where their cells are in the report's JSON.
#pragma once

#include <nlohmann/json.hpp>

#include <span>
#include <string>

namespace fragtrace::analyzer {

// All lists are words separated by spaces. A path names keys of the JSON, separated by "/".
struct CsvTable {
    const char* name;  // of the file, without ".csv"
    // The paths of the rows, from the document's root. A path enters every element of the lists on
    // its way, and every key of an object at "*". It ends at null and at missing keys. If there are
    // several paths, each begins with a word and ":". The word goes into the first column.
    const char* rows;
    const char* kind;  // heading of that column; empty = one path, and no such column
    // NAME=PATH, or NAME if the path is the same. Several paths separated by "|": the first that
    // exists. A path begins at the row, and each "^" goes out by one object. "#" is the row's key
    // or its number in its list, from 0. "." is the row itself.
    const char* columns;
};

std::span<const CsvTable> csv_tables();

// The text of one table. Null and missing values are empty cells. Text is in quotes, and nothing
// else is. Control characters become "?", so that each row is one line. Text that a spreadsheet
// would compute (it begins with =, +, - or @) gets a "'" before it.
std::string csv_text(const CsvTable& table, const nlohmann::ordered_json& document);

}  // namespace fragtrace::analyzer
