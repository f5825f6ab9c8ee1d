// Each field of an attention call occurs in three places: in fovea.h with its allowed values, in `fovea
// attend --help`, and in the table of errors of tests/unit/refusal_test.cpp. Also tests errors as a user sees
// them.
#include "commands/command_run.hpp"

#include <regex>
#include <set>

namespace fovea::test {
namespace {

std::string source(const char* path) { return read_file(std::filesystem::path(FOVEA_SOURCES) / path); }

// Members of FoveaAttentionDesc, from the header's text.
std::vector<std::string> fields_of_the_description() {
    std::string header = source("engine/include/fovea/fovea.h");
    const size_t begin = header.find("typedef struct FoveaAttentionDesc {");
    EXPECT_NE(begin, header.npos);
    std::string body = header.substr(begin + 1, header.find("} FoveaAttentionDesc;") - begin);
    body = std::regex_replace(body, std::regex(R"(/\*[\s\S]*?\*/)"), "");
    std::vector<std::string> fields;
    const std::regex declaration(R"(\n\s+\w+ ([\w, ]+);)"), name(R"(\w+)");
    for (std::sregex_iterator at(body.begin(), body.end(), declaration), end; at != end; ++at) {
        const std::string names = (*at)[1].str();
        for (std::sregex_iterator n(names.begin(), names.end(), name); n != end; ++n)
            fields.push_back(n->str());
    }
    return fields;
}

bool has_word(const std::string& text, const std::string& word) {
    return std::regex_search(text, std::regex("\\b" + word + "\\b"));
}

TEST(Refusals, each_field_is_in_the_help_and_in_the_table_of_refusals) {
    const Scratch scratch;
    const std::string help = run_command(scratch, "attend --help").output;
    const std::string table = source("tests/unit/refusal_test.cpp");
    // Every value of these means something.
    const std::set<std::string> never_refused = {"dropout_seed", "dropout_offset"};
    const std::vector<std::string> fields = fields_of_the_description();
    EXPECT_GE(fields.size(), 40u);
    for (const std::string& field : fields) {
        EXPECT_TRUE(has_word(help, field)) << field << " is not in `fovea attend --help`";
        const bool refused = std::regex_search(table, std::regex("\"" + field + "[\".]"));
        EXPECT_EQ(refused, !never_refused.contains(field)) << field << " in tests/unit/refusal_test.cpp";
    }
}

struct BadCall {
    const char *what, *field;
    std::vector<uint64_t> q, k, v;
    const char* options;
};

TEST(Refusals, a_person_sees_one_line_with_field_value_and_limit) {
    const std::vector<uint64_t> plain{1, 2, 5, 4};
    const BadCall calls[] = {
        {"heads that do not divide",
         "error: tensor 'q' has 3 heads and k has 2; the heads of q must be a multiple of those of k",
         {1, 3, 5, 4},
         {1, 2, 5, 4},
         {1, 2, 5, 4},
         ""},
        {"rows of other sizes",
         "tensor 'k' has a head size of 6 and q has 4; the two must be equal",
         plain,
         {1, 2, 5, 6},
         {1, 2, 5, 4},
         ""},
        {"other batches", "; the first axis, the batch, must be the same", {2, 2, 5, 4}, plain, plain, ""},
        {"other lengths", "tensor 'v'", plain, plain, {1, 2, 6, 4}, ""},
        {"other ranks", "all three must have as many axes", plain, {2, 5, 4}, {2, 5, 4}, ""},
        {"five axes", "5 axes", {1, 1, 2, 5, 4}, plain, plain, ""},
        {"no head size", "error: dim_qk is 0; it must be at least 1", {1, 2, 5, 0}, {1, 2, 5, 0}, plain, ""},
        {"a window of -2", "error: --window LEFT is -2", plain, plain, plain, "--window -2,0"},
        {"an offset past 2^30", "error: --q-offset is 4000000000", plain, plain, plain,
         "--q-offset 4000000000"},
        {"a scale of infinity", "error: --scale is inf", plain, plain, plain, "--scale inf"},
        {"a dropout of everything", "error: --dropout is 1", plain, plain, plain, "--dropout 1"},
        {"a workspace of nothing", "error: --workspace is 8", plain, plain, plain,
         "--kernel reference --workspace 8"},
        {"a kernel of another backend", "error: --kernel flash_coopmat2 ", plain, plain, plain,
         "--kernel flash_coopmat2"},
        {"a kernel without matrices", "error: --kernel flash ", plain, plain, plain,
         "--kernel flash --outputs weights"},
    };
    for (const BadCall& call : calls) {
        SCOPED_TRACE(call.what);
        const Scratch scratch;
        TensorSet set;
        const std::vector<uint64_t>* shapes[] = {&call.q, &call.k, &call.v};
        for (int n = 0; n < 3; ++n) {
            uint64_t count = 1;
            for (const uint64_t extent : *shapes[n]) count *= extent;
            const std::vector<float> values(count, 0.5f);
            set.tensors.push_back(make_tensor(std::string(1, "qkv"[n]), *shapes[n], values).value());
        }
        ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", set));
        expect_refused(run_command(scratch, "attend IN --out OUT --backend cpu " + std::string(call.options)),
                       call.field);
        EXPECT_FALSE(std::filesystem::exists(scratch / "out.safetensors"));
    }
}

}  // namespace
}  // namespace fovea::test
