// The strict pickle reader: it reads what picklers write and refuses everything else with one clear
// line.
#include "analyzer/snapshot/pickle.h"

#include "tests/support/pickle_writer.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <array>
#include <fstream>
#include <map>
#include <string>

using namespace fragtrace::analyzer;
using fragtrace::testing::PickleWriter;
using fragtrace::testing::TemporaryFolder;

namespace {

using Kind = PickleValue::Kind;

// Keeps every dict: its keys as texts, its values as numbers.
class Keeper final : public PickleSink {
  public:
    PickleValue dict(PickleReader& reader, std::span<const PickleValue> items) override {
        std::map<std::string, std::uint64_t>& row = dicts.emplace_back();
        for (std::size_t i = 0; i < items.size(); i += 2) {
            if (items[i].kind != Kind::kText) {
                continue;
            }
            const std::string key(reader.texts().view(items[i].index));
            const PickleValue& value = items[i + 1];
            row[key] = value.number;
            if (value.kind == Kind::kList) {
                row[key] = reader.list(value).size();
                for (const PickleValue& item : reader.list(value)) {
                    row[key + "[]"] += item.kind == Kind::kRow ? item.index : item.number;
                }
                reader.close_list(value, PickleValue::row(2, 77));
            } else if (value.kind == Kind::kRow) {
                row[key] = value.index;
            }
        }
        return PickleValue::row(1, static_cast<std::uint32_t>(dicts.size() - 1));
    }

    std::vector<std::map<std::string, std::uint64_t>> dicts;
};

struct Outcome {
    bool ok = false;
    PickleValue value;
    std::string failure;
    std::size_t texts = 0;
    Keeper keeper;
};

Outcome read_once(const std::string& bytes) {
    TemporaryFolder folder;
    std::ofstream(folder.file("x.pickle"), std::ios::binary) << bytes;
    const auto file = InputFile::open(folder.file("x.pickle"));
    REQUIRE(file.ok());
    ByteStream stream(*file);
    Outcome outcome;
    constexpr std::array<std::string_view, 1> kWords = {"known"};
    PickleReader reader(&stream, &outcome.keeper, kWords);
    outcome.ok = reader.read(&outcome.value);
    outcome.failure = reader.failure();
    outcome.texts = reader.texts().size();
    return outcome;
}

// The reader takes frequent opcodes in a loop of its own, but not the last bytes of a file. Bytes
// after the end of the pickle must not change anything.
Outcome read(const std::string& bytes) {
    Outcome outcome = read_once(bytes);
    const Outcome longer = read_once(bytes + std::string(64, '\0'));
    INFO(outcome.failure << " / " << longer.failure);
    CHECK(longer.ok == outcome.ok);
    CHECK(longer.failure == outcome.failure);
    CHECK(longer.value.kind == outcome.value.kind);
    CHECK(longer.value.negative == outcome.value.negative);
    CHECK(longer.value.index == outcome.value.index);
    CHECK(longer.value.number == outcome.value.number);
    CHECK(longer.keeper.dicts == outcome.keeper.dicts);
    return outcome;
}

PickleValue value_of(const std::string& bytes) {
    const Outcome outcome = read(bytes);
    INFO(outcome.failure);
    REQUIRE(outcome.ok);
    return outcome.value;
}

std::string failure_of(const std::string& bytes) {
    const Outcome outcome = read(bytes);
    REQUIRE_FALSE(outcome.ok);
    return outcome.failure;
}

std::string bytes(std::initializer_list<int> list) {
    std::string text = "\x80\x04";
    for (const int one : list) {
        text += static_cast<char>(one);
    }
    return text;
}

}  // namespace

TEST_CASE("numbers of every opcode are read with their sign", "[snapshot]") {
    CHECK(value_of(bytes({'K', 200, '.'})).number == 200);
    CHECK(value_of(bytes({'M', 0x34, 0x12, '.'})).number == 0x1234);
    CHECK(value_of(bytes({'J', 0xff, 0xff, 0xff, 0xff, '.'})).negative);
    CHECK(value_of(bytes({'J', 0xff, 0xff, 0xff, 0x7f, '.'})).number == 0x7fffffff);
    CHECK(value_of(bytes({0x8a, 0, '.'})).number == 0);
    CHECK(value_of(bytes({0x8a, 1, 0xff, '.'})).number == ~std::uint64_t{0});
    CHECK(value_of(bytes({0x8a, 2, 0x00, 0x80, '.'})).negative);
    const PickleValue most =
        value_of(bytes({0x8a, 9, 255, 255, 255, 255, 255, 255, 255, 255, 0, '.'}));
    CHECK(most.is_count());
    CHECK(most.number == ~std::uint64_t{0});
    CHECK(value_of(bytes({0x8b, 2, 0, 0, 0, 1, 2, '.'})).number == 0x0201);
    CHECK(value_of(bytes({'G', 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, '.'})).number == 0x3ff0000000000000);
    CHECK(value_of(bytes({0x88, '.'})).number == 1);
    CHECK(value_of(bytes({'N', '.'})).kind == Kind::kNone);
}

TEST_CASE("texts of every opcode are equal, known texts have their number", "[snapshot]") {
    CHECK(value_of(bytes({0x8c, 5, 'k', 'n', 'o', 'w', 'n', '.'})).index == 0);
    CHECK(value_of(bytes({'X', 5, 0, 0, 0, 'k', 'n', 'o', 'w', 'n', '.'})).index == 0);
    CHECK(value_of(bytes({0x8d, 5, 0, 0, 0, 0, 0, 0, 0, 'k', 'n', 'o', 'w', 'n', '.'})).index == 0);
    CHECK(value_of(bytes({0x8c, 1, 'k', '.'})).index == 1);
}

TEST_CASE("texts that reach over the end of the buffer are read completely", "[snapshot]") {
    const std::string text(201, 'x');
    for (std::size_t before = 0; before < text.size(); before += 40) {
        PickleWriter out;
        out.begin_dict().text(std::string(before, 'y')).number(1).text("values").raw("]");
        for (int batch = 0; batch < 20; ++batch) {
            out.raw("(");
            for (int i = 0; i < 1000; ++i) {
                out.raw("\x8c\xc9" + text);
            }
            out.raw("e");
        }
        out.end_dict();
        const Outcome outcome = read(out.finish());
        REQUIRE(outcome.ok);
        CHECK(outcome.keeper.dicts.at(0).at("values") == 20'000);
        CHECK(outcome.texts == 4);  // with the known one
    }
}

TEST_CASE("more different texts than a snapshot has are refused", "[snapshot]") {
    std::string pickle = "\x80\x04(";
    for (std::uint32_t i = 0; i <= TextTable::kMostTexts; ++i) {
        pickle += "\x8c\x04";
        pickle.append(reinterpret_cast<const char*>(&i), sizeof i);
    }
    const Outcome outcome = read_once(pickle + "t." + std::string(64, '\0'));
    CHECK_FALSE(outcome.ok);
    CHECK(outcome.failure.find("more different texts") != std::string::npos);
}

TEST_CASE("a dict is reported once it is filled, together with its list", "[snapshot]") {
    PickleWriter out;
    out.begin_dict().text("values").begin_list().number(1).number(2).end_list();
    out.text("one").number(1).end_dict();
    const Outcome outcome = read(out.finish());
    REQUIRE(outcome.ok);
    CHECK(outcome.value.kind == Kind::kRow);
    REQUIRE(outcome.keeper.dicts.size() == 1);
    CHECK(outcome.keeper.dicts[0].at("values") == 2);
    CHECK(outcome.keeper.dicts[0].at("values[]") == 3);
}

TEST_CASE("a list referenced again has the meaning given by its first dict", "[snapshot]") {
    PickleWriter out;
    out.begin_list();
    out.begin_dict().text("frames");
    const std::uint64_t list = out.next_memo();
    out.begin_list().number(4).end_list().end_dict();
    out.begin_dict().text("frames").recall(list).end_dict();
    out.end_list();
    const Outcome outcome = read(out.finish());
    INFO(outcome.failure);
    REQUIRE(outcome.ok);
    REQUIRE(outcome.keeper.dicts.size() == 2);
    CHECK(outcome.keeper.dicts[1].at("frames") == 77);
}

TEST_CASE("a list filled in several batches is complete", "[snapshot]") {
    PickleWriter out;
    out.begin_dict().text("values").raw("]");
    for (int batch = 0; batch < 5; ++batch) {
        out.raw("(");
        for (int i = 0; i < 1000; ++i) {
            out.number(1);
        }
        out.raw("e");
    }
    out.end_dict();
    CHECK(read(out.finish()).keeper.dicts.at(0).at("values[]") == 5000);
}

TEST_CASE("nested lists that continue after other lists are complete", "[snapshot]") {
    PickleWriter out;
    out.begin_dict().text("values").raw("]");
    for (int batch = 0; batch < 20; ++batch) {
        out.raw("(").number(3).begin_list().number(9).end_list().raw("e");
    }
    out.end_dict();
    const Outcome outcome = read(out.finish());
    INFO(outcome.failure);
    CHECK(outcome.keeper.dicts.at(0).at("values") == 40);
    CHECK(outcome.keeper.dicts.at(0).at("values[]") == 60);
}

TEST_CASE("opcodes that load or call code are refused with the byte position", "[snapshot]") {
    for (const int opcode :
         std::initializer_list<int>{'c', 'R', 'b', 'i', 'o', 0x81, 0x92, 0x93, 'P', 'Q', 0x82}) {
        const std::string failure = failure_of(bytes({'N', opcode, 'o', 's', '\n', '.'}));
        CHECK(failure.find("byte 3: ") == 0);
        CHECK(failure.find("load or call code") != std::string::npos);
    }
}

TEST_CASE("opcodes that no snapshot uses and unknown protocols are refused", "[snapshot]") {
    CHECK(failure_of(bytes({'0', '.'})).find("byte 2: opcode 0x30") == 0);
    CHECK(failure_of(bytes({'B', 1, 0, 0, 0, 'x', '.'})).find("byte 2") == 0);
    CHECK(failure_of("\x80\x06N.").find("protocol 2 to 5") != std::string::npos);
    CHECK(failure_of("(lp0\n.").find("protocol 2 to 5") != std::string::npos);
}

TEST_CASE("impossible sizes, depths, references and marks are refused", "[snapshot]") {
    CHECK(failure_of(bytes({'h', 0, '.'})).find("refers to object 0") != std::string::npos);
    CHECK(failure_of(bytes({0x8b, 255, 255, 255, 255, '.'})).find("a number of 4294967295 bytes") !=
          std::string::npos);
    CHECK(failure_of(bytes({0x8a, 9, 1, 0, 0, 0, 0, 0, 0, 0, 1, '.'})).find("more than 64 bits") !=
          std::string::npos);
    CHECK(failure_of(bytes({0x80, 4, 'N', '.'})).find("byte 2: damaged") == 0);
    CHECK(failure_of(bytes({0x8d, 0, 0, 0, 0, 0, 0, 0, 1, '.'})).find("a text of") !=
          std::string::npos);
    CHECK(failure_of(bytes({'X', 255, 0, 0, 0, 'x', '.'})).find("the file ends here") !=
          std::string::npos);
    CHECK(failure_of("\x80\x04" + std::string(100, '(')).find("nested deeper") !=
          std::string::npos);
    CHECK(failure_of(bytes({'K', 1, 0x94, '.'})).find("a number is stored") != std::string::npos);
    for (const std::string& damaged : {bytes({'u', '.'}),
                                       bytes({'e', '.'}),
                                       bytes({'s', '.'}),
                                       bytes({'a', '.'}),
                                       bytes({'t', '.'}),
                                       bytes({0x86, '.'}),
                                       bytes({0x94, '.'}),
                                       bytes({'r', 9, 9, 9, 9, '.'}),
                                       bytes({'.'}),
                                       bytes({'}', '(', 'N', 'u', '.'}),
                                       bytes({'N', '(', 'N', 'N', 'u', '.'}),
                                       bytes({'}', '(', '}', 'N', 'N', 's', '.'}),
                                       bytes({'(', 'N', 'N', '.'})}) {
        CHECK_FALSE(failure_of(damaged).empty());
    }
}

TEST_CASE("bytes after the end of the pickle are ignored", "[snapshot]") {
    CHECK(value_of(bytes({'K', 1, '.', 0, 0, 0, 'c'})).number == 1);
}

TEST_CASE("a dict that contains itself is ignored", "[snapshot]") {
    CHECK(value_of(bytes({'}', 0x94, '(', 0x8c, 1, 'x', 'h', 0, 'u', '.'})).kind == Kind::kRow);
}

TEST_CASE("a list that an inner dict shares with an outer one is kept", "[snapshot]") {
    PickleWriter out;
    out.begin_dict().text("frames");
    const std::uint64_t list = out.next_memo();
    out.begin_list().number(4).end_list().text("blocks").begin_list();
    out.begin_dict().text("frames").recall(list).end_dict();
    out.end_list().end_dict();
    const Outcome outcome = read(out.finish());
    INFO(outcome.failure);
    REQUIRE(outcome.ok);
    REQUIRE(outcome.keeper.dicts.size() == 2);
    CHECK(outcome.keeper.dicts[1].at("frames") == 77);
    CHECK(outcome.keeper.dicts[1].at("blocks") == 1);
}
