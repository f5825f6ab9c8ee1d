// Chat templates against Jinja2 itself: chat_templates.json holds what it made (make_chat_templates.py).
#include <gtest/gtest.h>

#include <fovea/chat_template.hpp>
#include <fovea/files/json.hpp>

#include <fstream>
#include <iterator>

namespace fovea {
namespace {

Result<std::string> rendered(std::string_view jinja, const std::vector<ChatMessage>& chat,
                             bool answers = true) {
    const Result<ChatTemplate> made = ChatTemplate::parse(jinja, "<s>", "</s>");
    if (!made) return made.error();
    return made->render(chat, answers);
}

TEST(ChatTemplate, gives_the_text_of_jinja) {
    std::ifstream file(FOVEA_CHAT_TEMPLATES, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Result<JsonValue> json = parse_json(text);
    ASSERT_TRUE(json) << json.error().text;
    std::vector<std::vector<ChatMessage>> chats;
    for (const JsonValue& chat : (*json)["chats"].items()) {
        chats.emplace_back();
        for (const JsonValue& message : chat.items())
            chats.back().push_back(
                {std::string(message.items()[0].text()), std::string(message.items()[1].text())});
    }
    size_t compared = 0, rejected = 0;
    for (const JsonValue& one : (*json)["templates"].items())
        for (const JsonValue& run : one["runs"].items()) {
            const auto chat = size_t(run["chat"].number());
            const Result<std::string> got =
                rendered(one["template"].text(), chats.at(chat), run["answers"].boolean());
            const std::string label = std::string(one["name"].text()) + ", chat " + std::to_string(chat) +
                                      ":\n" + std::string(one["template"].text());
            if (run.find("error")) {
                EXPECT_FALSE(got) << label;
                ++rejected;
            } else if (!got) {
                ADD_FAILURE() << label << "\n" << got.error().text;
            } else {
                EXPECT_EQ(*got, run["text"].text()) << label;
                ++compared;
            }
        }
    EXPECT_GT(compared, 150u);
    EXPECT_GT(rejected, 20u);
}

// Unsupported parts are rejected by an error that names them and their line.
TEST(ChatTemplate, names_what_it_does_not_support) {
    const struct {
        const char *jinja, *says;
    } cases[] = {
        {"a\n{% include 'x' %}", "line 2: the statement 'include' is not supported"},
        {"{{ x | wordwrap(3) }}", "line 1: the filter 'wordwrap' is not supported"},
        {"{{ x is sameas y }}", "line 1: the test 'sameas' is not supported"},
        {"{{ 2 ** 3 }}", "line 1: the operator ** is not supported"},
        {"{% for x in y recursive %}{% endfor %}", "line 1: a recursive loop is not supported"},
        {"{% if true %}", "line 1: a statement has no end: endif is missing"},
        {"{{ 'a }}", "line 1: a text has no closing quote"},
        {"\n\n{{ a b }}", "line 3: 'b' is found where the end of the tag is needed"},
        {"{{ $ }}", "line 1: '$' is not part of Jinja"},
        {"{# a", "line 1: a comment has no end #}"},
        {"{{ a", "line 1: a tag has no end }}"},
        {"{% break %}", "line 1: 'break' is outside of a loop"},
        {"{{ 'a'.zfill(3) }}", "line 1: the method 'zfill' of a text with these arguments is not supported"},
        {"{{ 'a'.replace('', 'b') }}", "'replace' of an empty text is not supported"},
        {"{{ 'a'.strip('\u00e9') }}", "characters beyond ASCII are stripped, which is not supported"},
        {"{{ [1] | tojson(sort_keys=true) }}",
         "tojson with ensure_ascii, separators or sort_keys is not supported"},
        {"{{ [1] | join(sep=1) }}", "the filter 'join' with these arguments is not supported"},
        {"{{ {} | dictsort(true) }}", "the filter 'dictsort' with these arguments is not supported"},
        {"{{ namespace({'a': 1}) }}", "'namespace' with these arguments is not supported"},
        {"{{ 'a' is eq(other='a') }}", "a test with a named argument is not supported"},
        {"{{ raise_exception('roles must alternate') }}",
         "the model's chat template rejects the messages: roles must alternate"},
    };
    for (const auto& one : cases) {
        const Result<std::string> got = rendered(one.jinja, {{"user", "x"}});
        ASSERT_FALSE(got) << one.jinja;
        EXPECT_NE(got.error().text.find(one.says), std::string::npos) << got.error().text;
    }
}

// Templates are untrusted: each of these would take more time or memory than there is.
TEST(ChatTemplate, bounds_what_a_template_takes) {
    std::string deep, brackets(100000, '(');
    for (int i = 0; i < 1000; ++i) deep += "{% if true %}";
    std::string doubling = "{% set x = ['0123456789'] %}";
    for (int i = 0; i < 60; ++i) doubling += "{% set x = [x, x] %}";
    const std::string cases[] = {
        deep,
        "{{ " + brackets + " }}",
        "{{ " + std::string(100000, '-') + "1 }}",
        doubling + "{{ x }}",
        "{% for a in range(1000000) %}{% for b in range(1000000) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
        "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}",
        "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "{{ range(99999999999) | list }}",
        "{{ 'a' * 999999999 }}",
        "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
        "{{ (range(100000) | list) | join('b' * 1000000) }}",
        "{{ 999999999999999999 * 999999999999999999 }}",
        std::string(2 << 20, 'x'),
    };
    for (const std::string& one : cases) {
        const Result<std::string> got = rendered(one, {{"user", "x"}});
        EXPECT_FALSE(got) << one.substr(0, 80);
    }
}

}  // namespace
}  // namespace fovea
