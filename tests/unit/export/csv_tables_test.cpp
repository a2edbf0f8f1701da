// The tables that are written as CSV.
#include "analyzer/export/csv_tables.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace fragtrace::analyzer;
using Json = nlohmann::ordered_json;

TEST_CASE("rows of inner lists name their outer objects, and null is an empty cell") {
    const Json document = {
        {"devices",
         {{{"index", 3}, {"inside", {{"parts", {{{"bytes", 7}}, {{"bytes", nullptr}}}}}}},
          {{"index", 4}, {"inside", nullptr}}}}};
    const CsvTable table = {"t", "devices/inside/parts", "", "device=^^index part=# bytes none"};
    CHECK(csv_text(table, document) == "device,part,bytes,none\n3,0,7,\n3,1,,\n");
}

TEST_CASE("several lists make one table, with a word for each") {
    const Json document = {{"a", {{{"x", 1}}}}, {"b", {{{"y", true}}}}};
    const CsvTable table = {"t", "one:a two:b three:c", "from", "value=x|y"};
    CHECK(csv_text(table, document) == "from,value\n\"one\",1\n\"two\",true\n");
}

TEST_CASE("keys of objects and plain values can be rows") {
    const Json document = {{"facts", {{"k", "v"}, {"l", "w"}}}, {"notes", {"n"}}};
    CHECK(csv_text({"t", "facts/*", "", "key=# value=."}, document) ==
          "key,value\n\"k\",\"v\"\n\"l\",\"w\"\n");
    CHECK(csv_text({"t", "notes", "", "note=."}, document) == "note\n\"n\"\n");
}

TEST_CASE("text cannot end its cell or its line, and is no formula") {
    const auto cell = [](const std::string& text) {
        return csv_text({"t", "x", "", "a=."}, Json{{"x", text}});
    };
    CHECK(cell("say \"hi\", twice") == "a\n\"say \"\"hi\"\", twice\"\n");
    CHECK(cell("two\nlines\x1b[31m") == "a\n\"two\\nlines\\u001b[31m\"\n");
    for (const std::string first : {"=", "+", "-", "@"}) {
        CHECK(cell(first + "1") == "a\n\"'" + first + "1\"\n");
    }
    CHECK(cell("") == "a\n\"\"\n");
    CHECK(csv_text({"t", "x", "", "a=."}, Json{{"x", -1}}) == "a\n-1\n");
}

TEST_CASE("every table has a name of its own") {
    std::set<std::string> names;
    for (const CsvTable& table : csv_tables()) {
        CHECK(names.insert(table.name).second);
    }
}
