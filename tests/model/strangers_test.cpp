// Untrusted configurations, tokenizers and indexes: tests/model/strangers.json lists each with its error
// line. GGUF files have a separate corpus (tests/fuzz/corpus/gguf).

#include "support/scratch.hpp"

#include <fovea/model/checkpoint_model.hpp>
#include <fovea/tokenizer.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace fovea {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A new folder with the weights of a small Llama.
class Strangers : public testing::Test {
  protected:
    void SetUp() override {
        fs::copy_file(model() / "model.safetensors", folder_ / "model.safetensors");
        Result<JsonValue> read = parse_json(text_of(fs::path(FOVEA_STRANGERS)), 64);
        ASSERT_TRUE(read) << read.error().text;
        cases_ = std::move(*read);
    }

    static fs::path model() { return fs::path(FOVEA_FAMILIES) / "llama2"; }
    void write(const char* name, std::string_view text) const {
        std::ofstream(folder_ / name, std::ios::binary) << text;
    }
    // Returns the error of opening the folder, without the folder's name and the list of families.
    std::string refusal() const {
        const Result<CheckpointModel> opened = CheckpointModel::open(folder_);
        if (opened) return "(opened)";
        EXPECT_FALSE(opened.error().field.empty());
        std::string text = opened.error().text;
        for (size_t at = text.find(folder_.string()); at != std::string::npos;
             at = text.find(folder_.string()))
            text.erase(at, folder_.string().size());
        if (const size_t at = text.find(known_families()); at != std::string::npos)
            text.replace(at, known_families().size(), "FAMILIES");
        return text;
    }
    // Runs each case of a list; returns how many there are.
    template <class Say>
    size_t check(const char* list, Say say) const {
        const auto& rows = cases_[list].items();
        for (const JsonValue& row : rows) {
            const std::string given(row.items()[0].text()), said = say(given);
            EXPECT_EQ(said, row.items()[1].text()) << given;
            for (const char c : said)
                EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << given;
        }
        return rows.size();
    }

    const test::Scratch scratch_;
    const fs::path folder_ = scratch_.folder();
    JsonValue cases_;
};

TEST_F(Strangers, configurations_are_refused_with_the_key_and_the_reason) {
    const std::string valid = text_of(model() / "config.json");
    const size_t count = check("config", [&](const std::string& member) {
        // The first of two members of one name counts.
        write("config.json", "{" + member + "," + valid.substr(valid.find('{') + 1));
        return refusal();
    });
    EXPECT_GE(count, 75u);
}

TEST_F(Strangers, indexes_are_refused_with_the_tensor_and_the_reason) {
    write("config.json", text_of(model() / "config.json"));
    const size_t count = check("index", [&](const std::string& index) {
        write("model.safetensors.index.json", index);
        return refusal();
    });
    EXPECT_GE(count, 20u);
}

TEST_F(Strangers, tokenizers_are_refused_with_the_part_and_the_reason) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no utf8proc";
    const size_t count = check("tokenizer", [](const std::string& json) {
        const Result<TextTokenizer> made = TextTokenizer::parse(json);
        return made ? std::string("(opened)") : made.error().text;
    });
    EXPECT_GE(count, 70u);
}

}  // namespace
}  // namespace fovea
