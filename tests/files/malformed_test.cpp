// Every file of the committed corpus: refused with the expected words, in one printable line, at no cost
// beyond the file's own size.
#include <fovea/files/checkpoint.hpp>

#include <algorithm>
#include <map>

#include "allocations.hpp"
#include "scratch.hpp"
#include "support/wall.hpp"

namespace fovea {
namespace {

using namespace test;

/// What a reader may use beside the file's size, whatever the file says: zlib's state, one npy header, the
/// message.
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

// Whether the file loads, by the reader of its format; the error otherwise.
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

/// A file that is read, not mapped, is refused in the same words, and costs no more.
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

/// Valid files with every single bit flipped and every length cut: no crash, no promise broken, bounded cost.
/// The bytes end at a page without access, so that a read past them stops the test. A file that was cut is
/// refused but for csv, which has no end of its own, and gguf, whose last bytes may be padding.
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
    // The densest header there is, refused at the very end of the checks: every name twice.
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

}  // namespace
}  // namespace fovea
