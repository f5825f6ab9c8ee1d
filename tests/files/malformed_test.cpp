// Every file of the committed corpus: rejected with the expected words, in one printable line, at no cost
// beyond the file's own size.
#include <fovea/files/checkpoint.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "allocations.hpp"
#include "files/encoders.hpp"
#include "files/held_file.hpp"
#include "files/inflater.hpp"
#include "files/model_config.hpp"
#include "scratch.hpp"
#include "support/wall.hpp"

namespace fovea {
namespace {

using namespace test;

/// Memory that a reader may use in addition to the file's size, whatever the file claims: zlib's state, one
/// npy header, the message.
constexpr size_t kConstantBytes = 160 * 1024;

struct Case {
    std::filesystem::path path;
    std::string expected;  // empty: must load
};

std::vector<Case> corpus(const std::string& format) {
    const auto folder = std::filesystem::path(FOVEA_CORPUS) / format;
    std::ifstream list(folder / "expected.txt");
    std::vector<Case> cases;
    for (std::string line; std::getline(list, line);) {
        const size_t tab = line.find('\t');
        cases.push_back({folder / line.substr(0, tab), line.substr(tab + 1)});
    }
    return cases;
}

// Loads the file with the reader of its format; the error if it fails.
Result<void> load(const std::string& format, const std::filesystem::path& path) {
    if (format == "gguf") {
        const Result<GgufFile> file = load_gguf(path);
        return file ? Result<void>() : Result<void>(file.error());
    }
    const Result<TensorSet> set = load_tensors(path);
    return set ? Result<void>() : Result<void>(set.error());
}

class Malformed : public testing::TestWithParam<const char*> {};

TEST_P(Malformed, RefusedInOneLineWithTheReason) {
    size_t refused = 0;
    for (const Case& one : corpus(GetParam())) {
        const Result<void> loaded = load(GetParam(), one.path);
        if (one.expected.empty()) {
            EXPECT_TRUE(loaded) << loaded.error().text;
            continue;
        }
        ++refused;
        ASSERT_FALSE(loaded) << one.path;
        const Error& error = loaded.error();
        EXPECT_NE(error.code, FOVEA_OK);
        EXPECT_FALSE(error.field.empty()) << one.path;
        EXPECT_NE(error.text.find(one.expected), std::string::npos) << one.path << "\n  " << error.text;
        EXPECT_TRUE(error.text.starts_with(one.path.string() + ": ")) << error.text;
        for (const char c : error.text)
            EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << error.text;
    }
    EXPECT_GE(refused, 40u);
    // The list and the folder agree.
    size_t files = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(FOVEA_CORPUS) / GetParam()))
        files += entry.path().filename() == "expected.txt" ? 0 : 1;
    EXPECT_EQ(files, corpus(GetParam()).size());
}

/// A file that is read, not mapped, is rejected in the same words, and costs no more.
TEST(MalformedRead, GgufFilesThatAreReadAreRefusedAsMappedOnesAre) {
    struct Read final : StoredFile {
        explicit Read(std::string all) : bytes(std::move(all)) {}
        uint64_t size_bytes() const noexcept override { return bytes.size(); }
        Result<void> read(uint64_t first, std::span<std::byte> out) const override {
            memcpy(out.data(), bytes.data() + first, out.size());
            return {};
        }
        std::string bytes;
    };
    const auto text_of = [](const Result<GgufFile>& file) {
        return file ? std::string("loaded") : file.error().field + ": " + file.error().text;
    };
    for (const Case& one : corpus("gguf")) {
        const auto file = std::make_shared<Read>(read_file(one.path));
        EXPECT_EQ(text_of(read_gguf(file)), text_of(parse_gguf(as_bytes(file->bytes)))) << one.path;
    }
    // A header longer than what is read of it at first: its end is looked for.
    const auto padded = [&](uint64_t bytes) {
        // magic, version, no tensor, one key: a text of `bytes`.
        std::string file = "GGUF";
        const auto add = [&](uint64_t value, int size) {
            for (int i = 0; i < size; ++i) file += char(value >> (8 * i));
        };
        add(3, 4), add(0, 8), add(1, 8), add(1, 8);
        file += 'k';
        add(8, 4), add(bytes, 8);
        return file + std::string(size_t(bytes), 'x');
    };
    const auto large = std::make_shared<Read>(padded(5'000'000));
    const Result<GgufFile> read = read_gguf(large);
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(read->metadata.at(0).text()->size(), 5'000'000u);
    large->bytes.pop_back();
    EXPECT_EQ(text_of(read_gguf(large)), text_of(parse_gguf(as_bytes(large->bytes))));
}

TEST_P(Malformed, NothingIsAllocatedBeyondTheFilesSize) {
    if (!can_count_allocations()) GTEST_SKIP() << "no way to count allocations on this system";
    size_t most = 0;
    for (const Case& one : corpus(GetParam())) {
        if (one.expected.empty()) continue;
        const std::string file = read_file(one.path);
        const AllocationPeak peak;
        const bool loaded = load(GetParam(), one.path).has_value();
        const size_t used = peak.bytes();
        EXPECT_FALSE(loaded);
        EXPECT_LE(used, file.size() + kConstantBytes) << one.path;
        most = std::max(most, used);
    }
    RecordProperty("most_bytes_allocated", std::to_string(most));
    std::printf("%s: at most %zu bytes allocated for a refused file\n", GetParam(), most);
}

/// Valid files with every single bit flipped and truncated at every length: no crash, no promise broken,
/// bounded cost. The bytes end at a page without access, so that a read past them stops the test. A truncated
/// file is rejected, except csv, which has no end mark, and gguf, whose last bytes may be padding.
TEST_P(Malformed, EveryBitFlipAndEveryCutOfAValidFileIsSafe) {
    if (!can_count_allocations()) GTEST_SKIP() << "no way to count allocations on this system";
    const std::string format = GetParam();
    const auto parse = [&](std::string_view file) {
        if (format == "safetensors") return parse_safetensors(as_bytes(file)).has_value();
        if (format == "npy") return parse_npy(as_bytes(file)).has_value();
        if (format == "npz") return parse_npz(as_bytes(file)).has_value();
        if (format == "gguf") return parse_gguf(as_bytes(file)).has_value();
        if (format == "csv") return parse_csv(as_bytes(file)).has_value();
        return parse_png(as_bytes(file)).has_value();
    };
    size_t refused = 0;
    for (const Case& one : corpus(format)) {
        if (!one.expected.empty()) continue;
        const std::string file = read_file(one.path);
        const WalledMemory memory(file.size());
        const auto check = [&](const std::string& changed, bool may_load) {
            char* at = reinterpret_cast<char*>(memory.data() + memory.size() - changed.size());
            memcpy(at, changed.data(), changed.size());
            const AllocationPeak peak;
            const bool loaded = parse({at, changed.size()});
            ASSERT_TRUE(may_load || !loaded) << one.path << ", cut to " << changed.size() << " bytes";
            if (loaded) return;
            ++refused;
            ASSERT_LE(peak.bytes(), changed.size() + kConstantBytes) << one.path;
        };
        for (size_t i = 0; i < file.size(); ++i) {
            check(file.substr(0, i), format == "csv" || format == "gguf");
            for (int bit = 0; bit < 8; ++bit) {
                std::string flipped = file;
                flipped[i] = static_cast<char>(flipped[i] ^ 1 << bit);
                check(flipped, true);
            }
        }
    }
    EXPECT_GT(refused, 100u);
}

INSTANTIATE_TEST_SUITE_P(Corpus, Malformed,
                         testing::Values("safetensors", "npy", "npz", "csv", "png", "gguf"),
                         [](const auto& format) { return std::string(format.param); });

TEST(MalformedLarge, AHeaderOfTwentyMegabytesCostsLessThanItself) {
    if (!can_count_allocations()) GTEST_SKIP() << "no way to count allocations on this system";
    // The densest header there is, rejected at the very end of the checks: every name twice.
    std::string header = "{";
    for (int i = 0; header.size() < 20'000'000; ++i) {
        if (i != 0) header += ',';
        header += '"';
        header += std::to_string(i / 2);
        header += "\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}";
    }
    header += "}";
    std::string file;
    for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
    file += header + '\0';
    const AllocationPeak peak;
    const auto loaded = parse_safetensors(as_bytes(file));
    const size_t used = peak.bytes();
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().text.find("the name appears twice"), std::string::npos);
    EXPECT_LE(used, file.size() + kConstantBytes);
    EXPECT_GT(used, 1'000'000u) << "the counter does not count";
}

/// The texts that cost a tree most for their size, and what each reader of JSON may take for one: four times
/// its size and a constant, whether it is rejected or served.
TEST(Json, CostsAtMostFourTimesTheFile) {
    if (!can_count_allocations()) GTEST_SKIP() << "no way to count allocations on this system";
    constexpr size_t kSize = 900'000;
    const auto list = [](std::string_view open, std::string_view item, std::string_view close) {
        std::string text(open);
        while (text.size() < kSize) text.append(item) += ',';
        text.pop_back();
        return text.append(close);
    };
    std::string deep(20, '[');
    deep += std::string(20, ']');
    const auto cost = [](size_t size, const char* reader, const auto& read) {
        const AllocationPeak peak;
        read();
        EXPECT_LE(peak.bytes(), 4 * size + (1u << 20)) << reader;
    };
    const auto open = [](std::string config, std::string index) {
        std::vector<NamedFile> files = {{"config.json", std::make_shared<HeldFile>(std::move(config))}};
        if (!index.empty())
            files.push_back({"model.safetensors.index.json", std::make_shared<HeldFile>(std::move(index))});
        return files;
    };
    for (const std::string& item : {std::string("[]"), std::string("{}"), std::string("0"),
                                    std::string("\"\""), std::string("null"), std::string("[0]"), deep}) {
        const std::string text = list("[", item, "]"), object = list("{\"a\":[", item, "]}");
        cost(text.size(), "parse_json", [&] { EXPECT_TRUE(parse_json(text)) << item; });
        cost(text.size(), "parse_json, refused", [&] { EXPECT_FALSE(parse_json(text + "]")) << item; });
        cost(object.size(), "add_model_config", [&] {
            TensorSet set;
            EXPECT_FALSE(files::add_model_config(as_bytes(object), set)) << item;
        });
        const auto config = open(object, "");
        cost(object.size(), "config.json", [&] { EXPECT_FALSE(load_checkpoint(config)); });
        const auto index = open("{}", list("{\"weight_map\":[", item, "]}"));
        cost(object.size(), "index.json", [&] { EXPECT_FALSE(load_checkpoint(index)); });
    }
    // An index of a million files, of which the first is missing; a header of the shortest entries, served.
    std::string many = "{\"weight_map\":{", header = "{";
    for (int n = 0; many.size() < kSize; ++n)
        many += (n ? ",\"" : "\"") + std::to_string(n) + "\":\"" + std::to_string(n) + ".safetensors\"";
    for (int n = 0; header.size() < kSize; ++n)
        header += (n ? ",\"" : "\"") + std::to_string(n) +
                  "\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[" + std::to_string(n) + "," +
                  std::to_string(n + 1) + "]}";
    const size_t count = size_t(std::count(header.begin(), header.end(), '[')) / 2;
    header += "}";
    std::string file;
    for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
    file += header + std::string(count, 'x');
    const auto index = open("{}", many + "}}");
    cost(many.size(), "index of many files", [&] { EXPECT_FALSE(load_checkpoint(index)); });
    auto folder = open("{}", "");
    folder.push_back({"model.safetensors", std::make_shared<HeldFile>(file)});
    cost(file.size(), "safetensors of a model", [&] {
        const Result<Checkpoint> read = load_checkpoint(folder);
        ASSERT_TRUE(read) << read.error().text;
        EXPECT_NE(read->find("17"), nullptr);
    });
    cost(file.size(), "safetensors", [&] { EXPECT_TRUE(parse_safetensors(as_bytes(file))); });
}

/// The values of a text are read back, at any place.
TEST(Json, ValuesAreThoseOfTheText) {
    const Result<JsonValue> json =
        parse_json(R"({"a": [1, -2.5e3, "x\u00e9\n", [], {}, null, true, false], "": {"b": "c"}, "a": 2})");
    ASSERT_TRUE(json) << json.error().text;
    const JsonValue a = (*json)["a"];
    ASSERT_EQ(a.items().size(), 8u);
    EXPECT_EQ(a.items()[1].number(), -2500.0);
    EXPECT_EQ(a.items()[2].text(), "x\xc3\xa9\n");
    EXPECT_TRUE(a.items()[3].items().empty());
    EXPECT_TRUE(a.items()[6].boolean());
    EXPECT_EQ(a.items()[7].scalar_text(), "false");
    EXPECT_EQ((*json)[""]["b"].text(), "c");
    EXPECT_FALSE(json->find("b"));
    std::string names;
    for (const auto& [name, value] : json->members()) names += name + ";";
    EXPECT_EQ(names, "a;;a;");
    // A value keeps the text alive; long ones have a size of several bytes.
    const std::string text(300, 'y');
    const JsonValue kept = parse_json("[[\"" + text + "\", 7]]")->items()[0];
    EXPECT_EQ(kept.items()[0].text(), text);
    EXPECT_EQ(kept.items()[1].number(), 7);
    EXPECT_FALSE(parse_json("[NaN]"));
    const Result<JsonValue> python = parse_json("[NaN, -Infinity, Infinity]", 4, JsonNumbers::python);
    ASSERT_TRUE(python);
    EXPECT_TRUE(std::isnan(python->items()[0].number()));
    EXPECT_EQ(python->items()[1].number(), -INFINITY);
}

/// A tensor of a type that nobody here reads rejects nothing but itself.
TEST(Unsupported, TensorsAreListedWithTheirReason) {
    const std::string header =
        R"({"q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"s":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[4,7]},)"
        R"("t":{"dtype":"F4","shape":[2],"data_offsets":[7,8]}})";
    std::string file;
    for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
    file += header + std::string(8, '\0');
    const Result<TensorSet> set = parse_safetensors(as_bytes(file));
    ASSERT_TRUE(set) << set.error().text;
    EXPECT_NE(set->find("q"), nullptr);
    EXPECT_EQ(set->find("s"), nullptr);
    EXPECT_EQ(set->why_missing("s"), "is stored as F8_E4M3, which is not supported");
    EXPECT_EQ(set->why_missing("other"), "is not in the file");
    const std::vector<NamedFile> folder = {{"config.json", std::make_shared<HeldFile>("{}")},
                                           {"model.safetensors", std::make_shared<HeldFile>(file)}};
    const Result<Checkpoint> model = load_checkpoint(folder);
    ASSERT_TRUE(model) << model.error().text;
    float value = 0;
    const Result<void> read = read_rows(*model->find("s"), 0, {&value, 1});
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().text.find("'s' is stored as F8_E4M3"), std::string::npos) << read.error().text;
    // An npz file with an array of texts.
    TensorSet arrays;
    arrays.tensors.push_back(*make_tensor("q", {1}, {2}));
    arrays.tensors.push_back(*make_tensor("names", {9}, std::vector<float>(9)));
    files::MemorySink sink;
    ASSERT_FALSE(files::encode_npz(arrays, {.compress = false}, sink));
    std::string npz(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size());
    const auto checksum = [](std::string_view part) { return files::crc32_of(as_bytes(part)); };
    const size_t array = npz.rfind("\x93NUMPY"), size = 128 + 9 * 4;
    std::string before(4, '\0'), after(4, '\0');
    const uint32_t old = checksum(std::string_view(npz).substr(array, size));
    npz.replace(npz.find("<f4", array), 3, "<U9"), npz.replace(npz.find("(9,)", array), 4, "(1,)");
    const uint32_t now = checksum(std::string_view(npz).substr(array, size));
    memcpy(before.data(), &old, 4), memcpy(after.data(), &now, 4);
    for (size_t at = 0; (at = npz.find(before, at)) != std::string::npos;) npz.replace(at, 4, after);
    const Result<TensorSet> texts = parse_npz(as_bytes(npz));
    ASSERT_TRUE(texts) << texts.error().text;
    EXPECT_NE(texts->find("q"), nullptr);
    EXPECT_NE(texts->why_missing("names").find("descr '<U9'"), std::string::npos)
        << texts->why_missing("names");
    // Rows of whole blocks of bytes that are there.
    StoredWeight cut;
    cut.type = FOVEA_Q8_0, cut.shape = {2, 32}, cut.size_bytes = 34, cut.bytes = as_bytes(file).first(34);
    std::vector<float> row(32);
    EXPECT_TRUE(read_rows(cut, 0, row));
    EXPECT_FALSE(read_rows(cut, 1, row));
    row.resize(16);
    EXPECT_FALSE(read_rows(cut, 0, row));
}

}  // namespace
}  // namespace fovea
