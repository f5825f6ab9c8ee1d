// fovea heads: the same bytes for any number of threads and after a kill, and its errors.
// tests/inspect/heads_test.py compares its metrics with numpy's.
#include "command_run.hpp"

#include <cstring>
#include <map>

namespace fovea {
namespace {

using namespace test;
namespace fs = std::filesystem;

// Words that repeat; the library's induction model reads letters.
std::string corpus_text(size_t texts) {
    std::string out;
    for (size_t n = 0; n < texts; ++n) {
        std::string word;
        for (size_t i = 0; i < 5 + n % 7; ++i) word += char('a' + (n * 7 + i * i * 3 + i) % 26);
        for (size_t i = 0; i < 4; ++i) out += word;
        out += '\n';
    }
    return out;
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const fs::directory_entry& one : fs::recursive_directory_iterator(folder))
        if (one.is_regular_file())
            files[one.path().lexically_relative(folder).string()] = read_file(one.path());
    return files;
}

struct Heads {
    Scratch scratch;
    std::string words = "heads induction --corpus \"" + (scratch / "corpus.txt").string() + "\"";

    Heads() { write_file(scratch / "corpus.txt", corpus_text(60)); }
    CommandRun run(const std::string& out, const std::string& more = {}) const {
        return run_command(scratch, words + " --out \"" + (scratch / out).string() + "\" " + more);
    }
    std::map<std::string, std::string> files(const std::string& out) const { return files_in(scratch / out); }
};

TEST(HeadsCommand, writes_the_same_bytes_with_any_number_of_threads) {
    const Heads heads;
    ASSERT_EQ(heads.run("one", "--threads 1").exit_code, 0);
    const CommandRun run = heads.run("three", "--threads 3");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    EXPECT_TRUE(run.output.starts_with("induction: 4 heads over 60 texts, ")) << run.output;
    const auto files = heads.files("one");
    EXPECT_TRUE(files == heads.files("three"));
    EXPECT_EQ(files.size(), 14u);
    for (const char* name :
         {"index.html", "heads.csv", "pages/L1H0.html", "induction/headvis/corpus/config.json",
          "induction/headvis/corpus/heads/L0H1.json"})
        EXPECT_TRUE(files.contains(name)) << name;
    EXPECT_NE(files.at("heads.csv").find("\n0,0,previous token,"), std::string::npos)
        << files.at("heads.csv");
    EXPECT_NE(files.at("heads.csv").find("\n1,0,induction,"), std::string::npos) << files.at("heads.csv");
}

// A sample opens in the page as this text, this head and this cell.
TEST(HeadsCommand, samples_link_to_the_page_with_their_text) {
    const Heads heads;
    write_file(heads.scratch / "corpus.txt", "abcdefabcdef\n");
    ASSERT_EQ(heads.run("out", "--page https://example.org/fovea/").exit_code, 0);
    const std::string page = heads.files("out").at("pages/L1H0.html");
    const size_t at = page.find("href=\"https://example.org/fovea/#v=1&amp;level=");
    ASSERT_NE(at, std::string::npos) << page;
    const std::string address = page.substr(at, page.find("\">", at) - at);
    for (const char* part : {"&amp;task=induction", "&amp;head=2", "&amp;text=abcdefabc"})
        EXPECT_NE((address + "&").find(part), std::string::npos) << address;
    EXPECT_EQ(page.find("<script"), std::string::npos);
    for (const std::string given : {"/fovea/", "httpd/fovea.html"}) {
        const std::string out = given.substr(0, 5) == "httpd" ? "relative" : "absolute";
        ASSERT_EQ(heads.run(out, "--page " + given).exit_code, 0);
        const std::string link = "href=\"" + std::string(out == "relative" ? "../" : "") + given + "#v=1";
        EXPECT_NE(heads.files(out).at("pages/L1H0.html").find(link), std::string::npos) << link;
    }
}

// Tokens are shown with their spaces, and a text without two tokens is left out.
TEST(HeadsCommand, samples_of_published_models_join_to_the_text) {
    const Heads heads;
    const fs::path model = heads.scratch / "small", corpus = heads.scratch / "a.jsonl";
    fs::create_directory(model);
    for (const char* file : {"config.json", "model.safetensors"})
        fs::copy(std::string(FOVEA_SOURCES) + "/tests/model/families/llama2/" + file, model / file);
    const auto page_of = [&](const std::string& out, const std::string& texts) {
        write_file(corpus, texts);
        const CommandRun run =
            run_command(heads.scratch, "heads \"" + model.string() + "\" --corpus \"" + corpus.string() +
                                           "\" --out \"" + (heads.scratch / out).string() + "\"");
        EXPECT_EQ(run.exit_code, 0) << run.error;
        EXPECT_NE(run.output.find(" heads over 2 texts, "), std::string::npos) << run.output;
        return heads.files(out).at("pages/L0H0.html");
    };
    const auto words = [](const std::string& page) {
        return std::regex_replace(page, std::regex("<[^>]*>"), "");
    };
    const std::string by_id =
        page_of("ids", "{\"text\": \"12 7 3 12 7\"}\n{\"text\": \" \"}\n{\"text\": \"5 6 5\"}\n");
    EXPECT_NE(words(by_id).find(" 12 7 3 12 7"), std::string::npos) << by_id;
    write_file(model / "tokenizer.json",
               R"({"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,)"
               R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,)"
               R"("use_regex": false}, "decoder": {"type": "ByteLevel", "add_prefix_space": false,)"
               R"("trim_offsets": true, "use_regex": false}, "model": {"type": "BPE",)"
               R"("vocab": {"a": 3, "b": 4, "ab": 5, "\u0120": 6, "\u0120ab": 7, "\u0120b": 8},)"
               R"("merges": ["a b", "\u0120 ab", "\u0120 b"]}})");
    const std::string by_text =
        page_of("words", "{\"text\": \"ab ab b ab\"}\n{\"text\": \"\"}\n{\"text\": \"b ab ab\"}\n");
    EXPECT_NE(words(by_text).find("ab ab b ab"), std::string::npos) << by_text;
    EXPECT_NE(by_text.find("<code> ab</code>"), std::string::npos) << by_text;
    EXPECT_NE(by_text.find("&amp;text=ab+ab\""), std::string::npos) << by_text;
    write_file(model / "tokenizer.json",
               R"({"version": "1.0", "added_tokens": [{"id": 2, "content": "[CLS]", "special": true}],)"
               R"("normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor":)"
               R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},)"
               R"({"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens":)"
               R"({"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}}},)"
               R"("decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}, "model":)"
               R"({"type": "WordPiece", "unk_token": "[CLS]", "continuing_subword_prefix": "##",)"
               R"("max_input_chars_per_word": 100, "vocab": {"[CLS]": 2, "cat": 3, "play": 4, "##ing": 5,)"
               R"("##s": 6, ".": 7, "a": 8}}})");
    const std::string by_piece =
        page_of("pieces", "{\"text\": \"a cat plays. playing cat.\"}\n{\"text\": \"cat cat\"}\n");
    EXPECT_NE(words(by_piece).find("[CLS]a cat plays. playing cat."), std::string::npos) << by_piece;
    EXPECT_TRUE(std::regex_search(by_piece, std::regex("<(span|mark)[^>]*>(<b>)?ing<"))) << by_piece;
    EXPECT_TRUE(std::regex_search(by_piece, std::regex("&amp;text=(a|cat)\\+[^\"]*\""))) << by_piece;
}

// The line of a person who waits: how far it is, and how long it will take.
TEST(HeadsCommand, shows_its_progress_on_a_terminal) {
    if (std::system("script --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no `script` here";
    const Heads heads;
    write_file(heads.scratch / "corpus.txt", corpus_text(4000));
    const CommandRun run = run_shell(heads.scratch, "script -qec \" FOVEA heads induction --corpus " +
                                                        (heads.scratch / "corpus.txt").string() + " --out " +
                                                        (heads.scratch / "out").string() + " \" /dev/null");
    ASSERT_EQ(run.exit_code, 0) << run.output << run.error;
    EXPECT_TRUE(std::regex_search(
        run.output, std::regex("\r\x1b\\[Kheads: [0-9]+%, [0-9]+ of 4000 texts, [0-9]+ s left\r")))
        << run.output;
}

// Names of the folder that the command uses itself.
TEST(HeadsCommand, a_model_may_be_named_like_a_file_of_the_run) {
    const Heads heads;
    for (const char* name : {"unfinished", "heads.journal", ".unfinished", ".heads.journal", "index.html",
                             "Heads.csv", "pages"}) {
        SCOPED_TRACE(name);
        const fs::path model = heads.scratch / (std::string(name) + ".safetensors");
        fs::copy(std::string(FOVEA_SOURCES) + "/lens/model/learned/induction.safetensors", model);
        const std::string out = std::string("out") + name;
        const CommandRun run =
            run_command(heads.scratch, "heads \"" + model.string() + "\" --texts 2 --corpus \"" +
                                           (heads.scratch / "corpus.txt").string() + "\" --out \"" +
                                           (heads.scratch / out).string() + "\"");
        ASSERT_EQ(run.exit_code, 0) << run.error;
        const auto files = heads.files(out);
        EXPECT_EQ(files.size(), 14u);
        EXPECT_TRUE(files.contains("index.html") && files.contains("heads.csv"));
    }
}

// Some editors write a byte order mark.
TEST(HeadsCommand, a_byte_order_mark_is_no_text) {
    const Heads heads;
    write_file(heads.scratch / "corpus.txt", "abcdefabcdef\n");
    ASSERT_EQ(heads.run("plain").exit_code, 0);
    write_file(heads.scratch / "corpus.txt",
               "\xef\xbb\xbf"
               "abcdefabcdef\n");
    ASSERT_EQ(heads.run("marked").exit_code, 0);
    EXPECT_TRUE(heads.files("plain") == heads.files("marked"));
}

// A run that ends in the middle of a text: the journal's last record is cut.
TEST(HeadsCommand, goes_on_after_a_kill_with_the_same_bytes) {
    const Heads heads;
    ASSERT_EQ(heads.run("whole").exit_code, 0);
    // A file that may have 30 blocks of 512 bytes: the disk is full after some texts.
    const CommandRun stopped = run_shell(heads.scratch, "ulimit -f 30; FOVEA " + heads.words + " --out \"" +
                                                            (heads.scratch / "part").string() + "\"");
    expect_refused(stopped,
                   "heads.journal cannot be written: File too large; the texts that are done are kept");
    EXPECT_EQ(heads.files("part").size(), 1u);
    const fs::path journal = heads.scratch / "part" / ".heads.journal";
    const std::string bytes = read_file(journal);
    for (const size_t cut : {size_t{0}, size_t{1}, size_t{700}, bytes.size() - 10, bytes.size()}) {
        SCOPED_TRACE(cut);
        fs::remove_all(heads.scratch / "part");
        fs::create_directory(heads.scratch / "part");
        write_file(journal, bytes.substr(0, bytes.size() - cut));
        const CommandRun run = heads.run("part");
        ASSERT_EQ(run.exit_code, 0) << run.error;
        EXPECT_EQ(run.error.find(" of 60 texts are done already") == std::string::npos,
                  cut + 10 >= bytes.size())
            << run.error;
        EXPECT_TRUE(heads.files("part") == heads.files("whole"));
    }
    // A changed byte ends what is read, and its text runs again.
    std::string changed = bytes;
    changed[bytes.size() / 2] = char(changed[bytes.size() / 2] ^ 1);
    fs::remove_all(heads.scratch / "part");
    fs::create_directory(heads.scratch / "part");
    write_file(journal, changed);
    ASSERT_EQ(heads.run("part").exit_code, 0);
    EXPECT_TRUE(heads.files("part") == heads.files("whole"));
    // So does a record whose rows do not fit its text, though its hash is right.
    changed = bytes;
    const size_t head = bytes.find("\n\n") + 2;
    uint64_t size = 0, hash = 0xcbf29ce484222325u;
    std::memcpy(&size, &bytes[head], 8);
    ++changed[head + 16];  // the number of tokens
    for (size_t n = 0; n < size; ++n) hash = (hash ^ uint8_t(changed[head + 16 + n])) * 0x100000001b3u;
    std::memcpy(&changed[head + 8], &hash, 8);
    fs::remove_all(heads.scratch / "part");
    fs::create_directory(heads.scratch / "part");
    write_file(journal, changed);
    ASSERT_EQ(heads.run("part").exit_code, 0);
    EXPECT_TRUE(heads.files("part") == heads.files("whole"));
}

// Files of a folder that the model does not need come and go.
TEST(HeadsCommand, goes_on_after_another_model_came_into_the_folder) {
    const Heads heads;
    const fs::path model = heads.scratch / "models" / "model.gguf", corpus = heads.scratch / "ids.txt";
    fs::create_directory(model.parent_path());
    fs::copy(std::string(FOVEA_SOURCES) + "/tests/model/families/gpt2/model.gguf", model);
    std::string texts;
    for (size_t n = 0; n < 60; ++n)
        texts += std::to_string(2 + n % 20) + " 3 4 " + std::to_string(n % 7) + "\n";
    write_file(corpus, texts);
    const std::string words = "FOVEA heads \"" + model.string() + "\" --corpus \"" + corpus.string() +
                              "\" --out \"" + (heads.scratch / "out").string() + "\"";
    expect_refused(run_shell(heads.scratch, "ulimit -f 30; " + words), "the texts that are done are kept");
    write_file(model.parent_path() / "another.gguf", "not a model");
    const CommandRun run = run_shell(heads.scratch, words);
    ASSERT_EQ(run.exit_code, 0) << run.error;
    EXPECT_NE(run.error.find(" of 60 texts are done already"), std::string::npos) << run.error;
}

TEST(HeadsCommand, rejects_the_journal_of_another_run) {
    const Heads heads;
    (void)run_shell(heads.scratch, "ulimit -f 30; FOVEA " + heads.words + " --out \"" +
                                       (heads.scratch / "part").string() + "\"");
    const std::string before = read_file(heads.scratch / "part" / ".heads.journal");
    ASSERT_FALSE(before.empty());
    expect_refused(heads.run("part", "--length 20"), "another run: its length is 128, that of this run 20");
    expect_refused(heads.run("part", "--texts 20"), "its number of texts is 60, that of this run 20");
    expect_refused(
        run_command(heads.scratch, "heads recall --corpus \"" + (heads.scratch / "corpus.txt").string() +
                                       "\" --out \"" + (heads.scratch / "part").string() + "\""),
        "its model is induction, that of this run recall");
    write_file(heads.scratch / "corpus.txt", corpus_text(59) + "abcabcabc\n");
    expect_refused(heads.run("part"), "its corpus fingerprint is ");
    EXPECT_EQ(read_file(heads.scratch / "part" / ".heads.journal"), before);
    // A journal that is shorter than the header of this run.
    const size_t model = before.find("model\t");
    write_file(heads.scratch / "part" / ".heads.journal", before.substr(0, model) + "model\tother\n");
    expect_refused(heads.run("part"), "another run: its model is other, that of this run induction; give");
    write_file(heads.scratch / "part" / ".heads.journal", "short");
    expect_refused(heads.run("part"), "another run: it was written by another version; give");
}

TEST(HeadsCommand, rejects_bad_input_and_leaves_nothing) {
    const Heads heads;
    const auto with = [&](const std::string& name, const std::string& bytes) {
        write_file(heads.scratch / name, bytes);
        return run_command(heads.scratch, "heads induction --corpus \"" + (heads.scratch / name).string() +
                                              "\" --out \"" + (heads.scratch / "out").string() + "\"");
    };
    expect_refused(with("a.txt", ""), "a.txt is empty; it must have a text on each line");
    expect_refused(with("a.txt", "\n \n"), "a.txt has only empty lines");
    expect_refused(with("a.txt", "good\n\xff\xfe"), "a.txt is not text: byte 5 is not UTF-8; give");
    expect_refused(with("a.txt", std::string("good\0bad", 8)), "a.txt is not text: byte 4 is 0; give");
    expect_refused(with("a.jsonl", "good\n"),
                   "a.jsonl: text 0, counted from 0 without empty lines, is not JSON");
    expect_refused(with("a.jsonl", "{\"txt\": \"a\"}\n"),
                   "a.jsonl: text 0, counted from 0 without empty lines, has no member \"text\"");
    expect_refused(with("a.jsonl", "{\"text\": \"abab\"}\n\n{\"text\": 3}\n"),
                   "a.jsonl: text 1, counted from 0 without empty lines, has no member \"text\"");
    expect_refused(with("a.jsonl", "{\"text\": \"\"}\n"), "a.jsonl has no text of at least 2 tokens");
    expect_refused(heads.run("no/such/folder"), "no/such/folder cannot be made: No such file");
    expect_refused(heads.run("corpus.txt"), "corpus.txt exists and is not a folder; give a new name");
    expect_refused(heads.run("."), " is not empty; give a new folder");
    expect_refused(heads.run("out", "--length 1"), "--length is 1; it must be from 2 to 128");
    expect_refused(heads.run("out", "--texts 0"), "--texts is 0; it must be at least 1");
    expect_refused(run_command(heads.scratch, "heads induction --out x"), "--corpus is missing");
    expect_refused(run_command(heads.scratch, "heads"), "the model is missing");
    expect_refused(run_command(heads.scratch, "heads /nowhere/at/all --out x --corpus \"" +
                                                  (heads.scratch / "corpus.txt").string() + "\""),
                   "cannot open /nowhere/at/all: No such");
    EXPECT_FALSE(fs::exists(heads.scratch / "out"));
    // The disk is full when the results are written: only the journal stays.
    const CommandRun full =
        run_shell(heads.scratch, "ulimit -f 12; FOVEA " + heads.words + " --texts 1 --out \"" +
                                     (heads.scratch / "full").string() + "\"");
    expect_refused(full, "cannot be written: File too large; the texts that are done are kept");
    for (const auto& [name, bytes] : heads.files("full")) EXPECT_EQ(name, ".heads.journal");
    ASSERT_EQ(heads.run("full", "--texts 1").exit_code, 0);
    expect_refused(heads.run("full", "--texts 1"), "full is not empty; give a new folder");
}

}  // namespace
}  // namespace fovea
