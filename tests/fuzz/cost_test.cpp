// Reading costs memory and time in proportion to the file: each reader on the shapes of input that cost most
// for their size, at two sizes. Rejected or served, at most four times the file and 1 MiB; four times the
// input takes less than six times as long. A shape is what a file could be of: many keys, deep or empty
// values, long texts.
#include <fovea/files/checkpoint.hpp>
#include <fovea/files/json.hpp>
#include <fovea/model/learned.hpp>
#include <fovea/model/session.hpp>
#include <fovea/tokenizer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>

#include "files/allocations.hpp"
#include "files/encoders.hpp"
#include "files/inflater.hpp"
#include "files/scratch.hpp"
#include "model/checkpoint/families.hpp"
#if defined(FOVEA_HAS_ONNX)
#include "onnx/model_file.hpp"
#endif

namespace fovea {
namespace {

using namespace test;

constexpr size_t kSize = 96 << 10, kTimes = 4;
constexpr double kRatio = 6, kSpareSeconds = 0.02;  // the time that the clock and other programs may add

using Reader = std::function<void(const std::string&)>;

struct Row {
    const char* name;
    Reader read;
    std::function<std::string(size_t)> make;  // makes a file of about this many bytes
    double times = 4;  // memory as a multiple of the file's size; more for readers that build objects
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

// Pieces number 0, 1, ... with a comma between them, up to `size` bytes.
std::string many(size_t size, const std::function<std::string(size_t)>& piece, const char* between = ",") {
    std::string all;
    for (size_t n = 0; all.size() < size; ++n) {
        if (n) all += between;
        all += piece(n);
    }
    return all;
}

std::function<std::string(size_t)> within(std::string before, std::function<std::string(size_t)> piece,
                                          std::string after, const char* between = ",") {
    return [=](size_t size) { return before + many(size, piece, between) + after; };
}

std::string quoted(size_t n) { return "\"" + std::to_string(n) + "\""; }
std::string key(size_t n) { return quoted(n) + ":0"; }
std::string pair(size_t n) { return quoted(n) + ":" + std::to_string(n); }
std::function<std::string(size_t)> always(std::string text) {
    return [=](size_t) { return text; };
}
// One text, as long as the file.
std::function<std::string(size_t)> text(std::string before, std::string after) {
    return [=](size_t size) { return before + std::string(size, 'x') + after; };
}

// Little-endian, as all binary formats here are.
std::string number(uint64_t value, int bytes) {
    std::string all;
    for (int i = 0; i < bytes; ++i) all += char(value >> (8 * i));
    return all;
}
std::string counted(std::string_view text) { return number(text.size(), 8) + std::string(text); }

std::function<std::string(size_t)> safetensors(std::function<std::string(size_t)> header) {
    return [=](size_t size) {
        const std::string text = header(size);
        return number(text.size(), 8) + text + '\0';
    };
}

// `data` bytes for each tensor.
std::function<std::string(size_t)> gguf(bool tensors, std::function<std::string(size_t)> piece,
                                        size_t data = 0) {
    return [=](size_t size) {
        std::string all;
        uint64_t count = 0;
        while (all.size() + data * count < size) all += piece(count++);
        return "GGUF" + number(3, 4) + number(tensors ? count : 0, 8) + number(tensors ? 0 : count, 8) + all +
               std::string(64 + data * count, '\0');
    };
}
std::string gguf_key(size_t n) { return counted(std::to_string(n)) + number(0, 4) + '\1'; }
std::string gguf_tensor(size_t n) {  // Writes a tensor of one element.
    return counted(std::to_string(n)) + number(1, 4) + number(1, 8) + number(0, 4) + number(32 * n, 8);
}
std::string gguf_empty_tensor(size_t n) {
    return counted(std::to_string(n)) + number(1, 4) + number(0, 8) + number(0, 4) + number(0, 8);
}

// A tokenizer with nothing but what its kind needs.
std::function<std::string(size_t)> gguf_tokenizer(std::string model) {
    return [=](size_t size) {
        std::string tokens, scores;
        uint64_t count = 0;
        for (; tokens.size() < size; ++count)
            tokens += counted(std::to_string(count)), scores += number(0, 4);
        const auto key = [](std::string_view name, uint32_t type) {
            return counted("tokenizer.ggml." + std::string(name)) + number(type, 4);
        };
        const auto list = [&](std::string_view name, uint32_t type, uint64_t elements,
                              const std::string& all) {
            return key(name, 9) + number(type, 4) + number(elements, 8) + all;
        };
        return "GGUF" + number(3, 4) + number(0, 8) + number(6, 8) + key("model", 8) + counted(model) +
               key("cls_token_id", 4) + number(0, 4) + key("seperator_token_id", 4) + number(0, 4) +
               list("tokens", 8, count, tokens) + list("scores", 6, count, scores) +
               list("merges", 8, 0, "") + std::string(64, '\0');
    };
}

std::string saved_npz(size_t size) {
    TensorSet set;
    for (size_t n = 0; n * 220 < size; ++n)
        set.tensors.push_back(make_tensor(std::to_string(n), {1}, std::vector<float>{1}).value());
    files::MemorySink sink;
    EXPECT_FALSE(files::encode_npz(set, {}, sink));
    return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

std::string chunk(std::string kind, const std::string& data) {
    kind += data;
    std::string all;
    for (const uint64_t value : {uint64_t{data.size()}, uint64_t{files::crc32_of(as_bytes(kind))}}) {
        std::string big = number(value, 4);
        std::reverse(big.begin(), big.end());
        all += all.empty() ? big + kind : big;
    }
    return all;
}
std::string png_of_notes(size_t size) {
    const std::string head =
        std::string("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", std::string("\0\0\0\2\0\0\0\2\x8\0\0\0\0", 13));
    return head +
           many(
               size, [](size_t) { return chunk("tEXt", std::string("a\0b", 3)); }, "") +
           chunk("IEND", "");
}

const std::string kSessionHead = R"({"format":"fovea-session","version":1,"state":{"level":2}})";
std::function<std::string(size_t)> session(std::string before, std::function<std::string(size_t)> piece,
                                           std::string after) {
    return within(kSessionHead.substr(0, kSessionHead.size() - 1) + "," + before, std::move(piece),
                  after + "}");
}

// A learned model whose sample is its vocabulary.
std::string learned(size_t size) {
    const std::string words = many(
        size / 3, [](size_t n) { return std::to_string(n); }, " ");
    const auto tokens = uint64_t(std::count(words.begin(), words.end(), ' ')) + 1;
    TensorSet file;
    file.metadata = {{"task", "sort"}, {"heads", "1"}, {"vocabulary", words}, {"sample", words}};
    const auto add = [&](const char* name, Shape shape) {
        file.tensors.push_back(make_tensor(name, shape, std::vector<float>(shape[0] * shape[1])).value());
    };
    add("embedding.weight", {tokens, 1});
    for (const char* name : {"query", "key", "value", "output"})
        add((std::string("layers.0.") + name + ".weight").c_str(), {1, 1});
    add("unembedding.weight", {tokens, 1});
    files::MemorySink sink;
    EXPECT_FALSE(files::encode_safetensors(file, sink));
    return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

// Readers that let go of what they read.
const Reader kSafetensors = [](const std::string& file) {
    static_cast<void>(parse_safetensors(as_bytes(file)));
};
const Reader kNpy = [](const std::string& file) { static_cast<void>(parse_npy(as_bytes(file))); };
const Reader kNpz = [](const std::string& file) { static_cast<void>(parse_npz(as_bytes(file))); };
const Reader kCsv = [](const std::string& file) { static_cast<void>(parse_csv(as_bytes(file))); };
const Reader kPng = [](const std::string& file) { static_cast<void>(parse_png(as_bytes(file))); };
const Reader kGguf = [](const std::string& file) { static_cast<void>(parse_gguf(as_bytes(file))); };
const Reader kJson = [](const std::string& file) { static_cast<void>(parse_json(file)); };
const Reader kTokenizer = [](const std::string& file) { static_cast<void>(TextTokenizer::parse(file)); };
const Reader kGgufTokenizer = [](const std::string& file) {
    const Result<GgufFile> read = parse_gguf(as_bytes(file));
    if (!read) FAIL() << read.error().text;
    const Result<TextTokenizer> made = TextTokenizer::parse(*read);
    EXPECT_TRUE(made) << made.error().text;
};
const Reader kSession = [](const std::string& file) { static_cast<void>(read_session(file)); };
const Reader kAddress = [](const std::string& file) { static_cast<void>(read_address(file)); };

const Row kRows[] = {
    {"safetensors_tensors", kSafetensors,
     safetensors(within(
         "{",
         [](size_t n) { return quoted(n / 2) + ":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}"; },
         "}"))},
    {"safetensors_notes", kSafetensors,
     safetensors(within(
         "{\"__metadata__\":{", [](size_t n) { return quoted(n) + ":\"\""; }, "}}"))},
    {"safetensors_lists", kSafetensors, safetensors(within("{\"a\":[", always("[]"), "]}"))},
    {"npy_header", kNpy,
     [](size_t size) {
         const std::string head =
             "{'descr': '<f4', 'fortran_order': False, 'shape': (" + many(size, always("1")) + "), }";
         return std::string("\x93NUMPY\2\0", 8) + number(head.size(), 4) + head;
     }},
    {"npz_entries", kNpz, saved_npz},
    {"csv_rows", kCsv, within("", always("1,2,3"), "", "\n")},
    {"csv_columns", kCsv, within("", always("1.5"), "\n")},
    {"csv_quotes", kCsv, within("", quoted, "\n")},
    {"csv_lines", kCsv, within("", always(""), "1", "\n")},
    {"png_notes", kPng, png_of_notes},
    {"gguf_keys", kGguf, gguf(false, gguf_key)},
    {"gguf_tensors", kGguf, gguf(true, gguf_tensor, 32)},
    {"gguf_empty_tensors", kGguf, gguf(true, gguf_empty_tensor), 7.5},
    {"gguf_texts", kGguf,
     gguf(false,
          [](size_t n) {
              return counted(std::to_string(n)) + number(9, 4) + number(8, 4) + number(4, 8) +
                     std::string(32, '\0');
          })},
    {"json_lists", kJson, within("[", always("[]"), "]")},
    {"json_numbers", kJson, within("[", always("1"), "]")},
    {"json_keys", kJson, within("{", key, "}")},
    {"json_depth", kJson, within("[", always("[[[[[[[[]]]]]]]]"), "]")},
    {"json_open", kJson, within("", always("["), "", "")},
    {"json_text", kJson, text("[\"", "\"]")},
    {"json_escapes", kJson, within("\"", always("\\u00e9"), "\"", "")},
    {"config_keys",
     [](const std::string& file) {
         const Result<JsonValue> json = parse_json(file);
         Checkpoint files;
         if (json) files.config = *json, static_cast<void>(read_config(files));
     },
     within("{\"model_type\":\"llama\",", key, "}")},
    {"index",
     [](const std::string& file) {
         struct Held final : StoredFile {
             explicit Held(std::string_view all) : bytes(all) {}
             uint64_t size_bytes() const noexcept override { return bytes.size(); }
             std::span<const std::byte> held() const noexcept override { return as_bytes(bytes); }
             Result<void> read(uint64_t first, std::span<std::byte> out) const override {
                 std::ranges::copy(held().subspan(first, out.size()), out.begin());
                 return {};
             }
             std::string_view bytes;
         };
         const NamedFile files[] = {{"config.json", std::make_shared<Held>("{}")},
                                    {"model.safetensors.index.json", std::make_shared<Held>(file)}};
         static_cast<void>(load_checkpoint(files));
     },
     within(
         "{\"weight_map\":{",
         [](size_t n) { return quoted(n) + ":\"" + std::to_string(n % 97) + ".safetensors\""; }, "}}")},
    {"tokenizer_words", kTokenizer,
     within(R"({"model":{"type":"WordPiece","unk_token":"0","vocab":{)", pair, "}}}")},
    {"tokenizer_pieces", kTokenizer,
     within(R"({"model":{"type":"Unigram","unk_id":0,"vocab":[)",
            [](size_t n) { return "[" + quoted(n) + ",-1.5]"; }, "]}}")},
    {"tokenizer_merges", kTokenizer,
     within(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[)", always("\"a b\""), "]}}")},
    {"tokenizer_merges_that_differ", kTokenizer,
     [](size_t size) {
         // Each number is made of the number without its last digit, and that digit.
         std::string merges;
         const auto token = [&](size_t n) {
             const std::string text = std::to_string(n);
             if (n > 9)
                 merges += (merges.empty() ? "\"" : ",\"") + text.substr(0, text.size() - 1) + " " +
                           text.back() + "\"";
             return pair(n);
         };
         const std::string vocabulary = many(size / 2, token);
         return R"({"model":{"type":"BPE","vocab":{)" + vocabulary + "},\"merges\":[" + merges + "]}}";
     }},
    {"tokenizer_added", kTokenizer,
     within(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"added_tokens":[)",
            [](size_t n) {
                return "{\"id\":" + std::to_string(n + 1) + ",\"content\":" + quoted(n) +
                       ",\"special\":true}";
            },
            "]}")},
    {"tokenizer_added_alone", kTokenizer,
     within(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"added_tokens":[)",
            [](size_t n) { return "{\"id\":1,\"content\":" + quoted(n) + "}"; }, "]}")},
    {"tokenizer_gguf_words", kGgufTokenizer, gguf_tokenizer("bert")},
    {"tokenizer_gguf_pieces", kGgufTokenizer, gguf_tokenizer("t5")},
    {"tokenizer_gguf_pairs", kGgufTokenizer, gguf_tokenizer("gpt2")},
    {"tokenizer_lists", kTokenizer,
     within(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"more":[)", always("[]"), "]}")},
    {"session_keys", kSession, within(R"({"format":"fovea-session","version":1,"state":{)", key, "}}")},
    {"session_parts", kSession, session("", key, "")},
    {"session_locked", kSession, session("\"locked\":[", always("[]"), "]")},
    {"session_lists", kSession, session("\"more\":[", always("[]"), "]")},
    {"session_tokens", kSession, session("\"tensors\":{\"tokens\":[", always("\"a\""), "]}"), 9.1},
    {"session_tensors", kSession, session("\"tensors\":{", key, "}")},
    {"session_values", kSession,
     [](size_t size) {
         const std::string data = "\"f32\":\"" + std::string(size / 16 * 16, 'A') + "\"}";
         const std::string tensor = "{\"shape\":[1," + std::to_string(size / 16 * 3) + ",1]," + data;
         return kSessionHead.substr(0, kSessionHead.size() - 1) + ",\"tensors\":{\"q\":" + tensor +
                ",\"k\":" + tensor + "}}";
     }},
    {"address_keys", kAddress,
     within(
         "", [](size_t n) { return std::to_string(n) + "="; }, "", "&")},
    {"address_same_key", kAddress, within("", always("seed=1"), "", "&")},
    {"address_edits", kAddress,
     within(
         "edits=", [](size_t n) { return "inputs+" + std::to_string(n % 60000) + "+1+2"; }, "", ",")},
    {"address_hidden", kAddress, within("hidden=", always("1"), "", ",")},
    {"learned_sample",
     [](const std::string& file) {
         const Result<TensorSet> read = parse_safetensors(as_bytes(file));
         ASSERT_TRUE(read) << read.error().text;
         EXPECT_TRUE(read_learned_model(*read));
     },
     learned},
#if defined(FOVEA_HAS_ONNX)
    {"onnx_fields",
     [](const std::string& file) {
         static_cast<void>(onnx::parse_tensor(as_bytes(file))),
             static_cast<void>(onnx::parse_model(as_bytes(file)));
     },
     within("", always(std::string("\x78\1", 2)), "", "")},
    {"onnx_opsets", [](const std::string& file) { static_cast<void>(onnx::parse_model(as_bytes(file))); },
     within("", always(std::string("\x42\2\x10\x17", 4)), "", "")},
#endif
};

class Cost : public testing::TestWithParam<Row> {};

// The least of three: others run on this machine too.
double seconds_of(const Row& row, const std::string& file) {
    double least = 1e9;
    for (int n = 0; n < 3; ++n) {
        const std::clock_t begin = std::clock();
        row.read(file);
        least = std::min(least, double(std::clock() - begin) / CLOCKS_PER_SEC);
        if (least > 1) break;
    }
    return least;
}

TEST_P(Cost, grows_with_the_file) {
    if (!can_count_allocations()) GTEST_SKIP() << "no way to count allocations on this system";
    const Row& row = GetParam();
    row.read(row.make(100));  // fills tables that are made only once, which are not a file's cost
    double seconds[2];
    for (const size_t times : {size_t{1}, kTimes}) {
        const std::string file = row.make(kSize * times);
        size_t used = 0;
        {
            const AllocationPeak peak;
            row.read(file);
            used = peak.bytes();
        }
        EXPECT_LE(double(used), row.times * double(file.size()) + (1 << 20))
            << double(used) / double(file.size()) << " times the " << file.size() << " bytes of the file";
        seconds[times != 1] = seconds_of(row, file);
        std::printf("%s: %zu bytes, %.2f times that allocated, %.2f ms\n", row.name, file.size(),
                    double(used) / double(file.size()), 1e3 * seconds[times != 1]);
    }
    EXPECT_LE(seconds[1], kRatio * seconds[0] + kSpareSeconds)
        << "four times the input after " << seconds[0] << " s";
}

INSTANTIATE_TEST_SUITE_P(Readers, Cost, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace fovea
