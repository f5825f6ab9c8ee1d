// The report of `fovea heads`: index.html with all heads by role, and a page for each head with its samples.
#include "heads_survey.hpp"

#include "output_file.hpp"

#include <fovea/files.hpp>
#include <fovea/inspect/head_role.hpp>
#include <fovea/model/session.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <numeric>

#include "xml_text.hpp"

namespace fovea::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--paper:#fbfaf7;--surface:#fff;--sunken:#f4f3ee;--line:#e2dfd7;--ink:#1b1b1f;--soft:#5e5c57;
--accent:#2447d6;--previous:#2447d6;--induction:#b4560a;--first:#7a7a2e;--same:#14804a;--self:#8a3aa8;--none:#8b8880}
@media(prefers-color-scheme:dark){:root{--paper:#131417;--surface:#1a1b20;--sunken:#1f2127;--line:#31333b;--ink:#ecebe6;--soft:#a3a39f;
--accent:#93a8ff;--previous:#7d97ff;--induction:#ffb26b;--first:#cdc96a;--same:#6fd39c;--self:#d79bee;--none:#757884}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1120px;padding:32px 24px 64px;background:var(--paper);color:var(--ink);
font:16px/1.5 Inter,system-ui,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",Arial,sans-serif}
h1{font-size:28px;line-height:1.2;margin:8px 0}h2{font-size:19px;margin:40px 0 4px}h3{font-size:15px;margin:24px 0 4px}
p{margin:4px 0 12px;max-width:68ch}p,figcaption,th,.note{color:var(--soft)}p strong{color:var(--ink)}a{color:var(--accent)}
nav{display:flex;gap:20px;flex-wrap:wrap}
.scroll{overflow-x:auto;padding:2px 0 8px}
.grid{border-spacing:3px;margin-left:-3px}.grid th{font-weight:400;font-size:13px;text-align:right;padding-right:6px;white-space:nowrap}
.grid thead th{text-align:center;padding:0}.grid td{padding:0}
.grid a{display:grid;place-items:center;width:32px;height:28px;border-radius:5px;text-decoration:none;font-size:13px;font-weight:600;
color:var(--ink);background:color-mix(in srgb,var(--role) calc(var(--share)*70%),var(--sunken))}
.grid a:hover,.grid a:focus-visible{outline:2px solid var(--ink);outline-offset:1px}
.split{display:flex;flex-wrap:wrap;gap:16px 48px;align-items:flex-start}.split>.scroll{max-width:100%}
.roles{flex:1 1 320px;display:grid;grid-template-columns:repeat(auto-fill,minmax(290px,1fr));gap:16px;list-style:none;margin:24px 0;padding:0}
.roles>li{background:var(--surface);border:1px solid var(--line);border-radius:12px;padding:14px 16px}
.roles h3{margin:0;display:flex;gap:10px;align-items:center}.roles h3 span{margin-left:auto;color:var(--soft);font-weight:400}
.roles p{font-size:14px;margin:2px 0 8px}.roles ol{list-style:none;margin:0;padding:0}
.roles ol a{display:grid;grid-template-columns:52px 1fr 40px;gap:8px;align-items:center;text-decoration:none;font-size:14px;line-height:26px}
.bar{height:8px;border-radius:4px;background:var(--sunken);overflow:hidden}.bar i{display:block;height:100%;background:var(--role)}
.pill{display:inline-grid;place-items:center;min-width:26px;height:24px;border-radius:5px;padding:0 7px;font-size:13px;font-weight:600;
background:color-mix(in srgb,var(--role) 60%,var(--sunken))}
table.plain{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
.plain th,.plain td{padding:4px 14px 4px 0;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
.pair .plain{justify-self:start;min-width:min(300px,100%)}.plain th:first-child,.plain td:first-child,.plain .left{text-align:left}.plain th{font-weight:400}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:8px 40px}figure{margin:12px 0}
figcaption{font-size:14px;margin-bottom:4px}svg{width:100%;height:auto;display:block}svg rect{fill:var(--role)}svg text{fill:var(--soft);font-size:11px}
.sample{background:var(--surface);border:1px solid var(--line);border-radius:12px;padding:12px 16px;margin:10px 0}
.sample blockquote{margin:0 0 6px;white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.9;font-size:15px}
.sample span,.sample mark{padding:2px 1px;border-right:1px solid var(--line);-webkit-box-decoration-break:clone;box-decoration-break:clone}
.sample b,.sample mark{border-radius:4px;color:inherit;font-weight:400}.sample b{padding:2px;box-shadow:0 0 0 2px var(--ink)}
.sample mark{background:color-mix(in srgb,var(--role) calc(var(--w)*65%),transparent)}.sample i{color:var(--soft);font-style:normal}
.note{font-size:14px;margin:0}code{font-size:14px;background:var(--sunken);border-radius:4px;padding:0 3px;white-space:pre-wrap}
@media(max-width:480px){body{padding:20px 16px 48px}h1{font-size:24px}.roles{grid-template-columns:1fr}}
)";

// A role's letter in the grid and its color.
struct RoleLook {
    std::string_view role, letter, color;
};
constexpr RoleLook kLooks[] = {{"previous token", "P", "previous"}, {"induction", "I", "induction"},
                               {"first token", "F", "first"},       {"same token", "S", "same"},
                               {"the token itself", "T", "self"},   {"no clear role", "", "none"}};

const RoleLook& look_of(std::string_view role) {
    return *std::find_if(std::begin(kLooks), std::end(kLooks) - 1,
                         [&](const RoleLook& one) { return one.role == role; });
}

std::string role_style(std::string_view role) {
    return "--role:var(--" + std::string(look_of(role).color) + ")";
}

std::string format(const char* pattern, ...) {
    char text[256];
    std::va_list list;
    va_start(list, pattern);
    std::vsnprintf(text, sizeof text, pattern, list);
    va_end(list);
    return text;
}

// Text for a page, with its line ends shown.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : xml_text(text)) out += c == '\n' ? std::string("↵\n") : std::string(1, c);
    return out;
}

std::string head_name(const HeadFound& h) { return std::to_string(h.layer) + "." + std::to_string(h.head); }
std::string page_name(const HeadFound& h) {
    return "L" + std::to_string(h.layer) + "H" + std::to_string(h.head) + ".html";
}

std::string page(std::string_view title, const std::string& body) {
    return "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
           "content=\"width=device-width\">\n<title>" +
           escaped(title) + "</title>\n<style>" + kStyle + "</style>\n" + body + "</html>\n";
}

// "Looks at the token before": of one head or many.
std::string sentence_of(std::string_view role, const HeadsFound& found) {
    constexpr std::string_view kThisHead = "This head ";
    std::string sentence = escaped(head_role(role, found.model->task()).sentence);
    if (sentence.starts_with(kThisHead)) {
        sentence.erase(0, kThisHead.size());
        sentence[0] = char(std::toupper(uint8_t(sentence[0])));
    }
    return sentence;
}

std::string value_text(double value) { return std::isnan(value) ? "–" : format("%.3f", value); }

std::string count_text(uint64_t count, const char* one, const char* many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
}

// ---- the index ----

std::string grid_html(const HeadsFound& found) {
    std::string out = "<div class=\"scroll\"><table class=\"grid\"><thead><tr><th></th>";
    for (uint64_t h = 0; h < found.model->heads; ++h)
        out += "<th scope=\"col\">" + std::to_string(h) + "</th>";
    out += "</tr></thead>\n";
    for (const HeadFound& h : found.heads) {
        if (h.head == 0) out += "<tr><th scope=\"row\">layer " + std::to_string(h.layer) + "</th>";
        const std::string label =
            "head " + head_name(h) + ": " + std::string(h.role) + ", " + value_text(role_share(h.metrics));
        const double share = h.role == "no clear role" ? 0.0 : std::min(1.0, role_share(h.metrics));
        out += "<td><a href=\"pages/" + page_name(h) + "\" title=\"" + label + "\" aria-label=\"" + label +
               "\" style=\"" + role_style(h.role) + format(";--share:%.2f", share) + "\">" +
               std::string(look_of(h.role).letter) + "</a></td>";
        if (h.head + 1 == found.model->heads) out += "</tr>\n";
    }
    return out + "</table></div>\n";
}

std::string roles_html(const HeadsFound& found) {
    constexpr size_t kMost = 6;
    std::string out = "<ul class=\"roles\">\n";
    for (const RoleLook& look : kLooks) {
        std::vector<const HeadFound*> heads;
        for (const HeadFound& h : found.heads)
            if (h.role == look.role) heads.push_back(&h);
        if (heads.empty()) continue;
        std::stable_sort(heads.begin(), heads.end(), [](const HeadFound* a, const HeadFound* b) {
            return role_share(a->metrics) > role_share(b->metrics);
        });
        const std::string sentence = sentence_of(look.role, found);
        out += "<li style=\"" + role_style(look.role) + "\"><h3>" +
               (look.letter.empty() ? "" : "<b class=\"pill\">" + std::string(look.letter) + "</b>") +
               std::string(look.role) + "<span>" + count_text(heads.size(), "head", "heads") +
               "</span></h3><p>" +
               (sentence.empty() ? "No score reaches " + format("%.1f", double(kMinJob)) : sentence) +
               ".</p><ol>";
        for (size_t n = 0; n < std::min(kMost, heads.size()); ++n) {
            const double share = role_share(heads[n]->metrics);
            out += "<li><a href=\"pages/" + page_name(*heads[n]) + "\">" + head_name(*heads[n]) +
                   format("<span class=\"bar\"><i style=\"width:%.0f%%\"></i></span>%.2f",
                          100 * std::min(1.0, share), share) +
                   "</a></li>";
        }
        out += "</ol></li>\n";
    }
    return out + "</ul>\n";
}

std::string table_html(const HeadsFound& found) {
    std::string out =
        "<div class=\"scroll\"><table class=\"plain\"><thead><tr><th>head</th><th class=\"left\">role</th>";
    for (const HeadMetricName& one : head_metric_names())
        out += "<th title=\"" + std::string(one.about) + "\">" + one.label + "</th>";
    out += "</tr></thead>\n";
    for (const HeadFound& h : found.heads) {
        out += "<tr><td><a href=\"pages/" + page_name(h) + "\">" + head_name(h) +
               "</a></td><td class=\"left\">" + std::string(h.role) + "</td>";
        for (const HeadMetricName& one : head_metric_names())
            out += "<td>" + value_text(h.metrics.*one.value) + "</td>";
        out += "</tr>\n";
    }
    return out + "</table></div>\n";
}

// ---- a head ----

std::string bars_svg(std::span<const double> values, const std::function<std::string(size_t)>& label,
                     size_t step) {
    constexpr double kWidth = 420, kHeight = 110;
    const double most = std::max(1e-9, *std::max_element(values.begin(), values.end())),
                 wide = kWidth / double(values.size());
    std::string out = format("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">", kWidth, kHeight + 18);
    for (size_t n = 0; n < values.size(); ++n) {
        const double tall = kHeight * values[n] / most;
        out += format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>", wide * double(n),
                      kHeight - tall, wide * 0.86, tall) +
               label(n) + ": " + format("%.6g", values[n]) + "</title></rect>";
        if (n % step == 0)
            out +=
                format("<text x=\"%.1f\" y=\"%.0f\">", wide * double(n), kHeight + 14) + label(n) + "</text>";
    }
    return out + "</svg>";
}

std::string tokens_html(const char* title, std::span<const std::pair<std::string, double>> tokens) {
    std::string out =
        std::string("<table class=\"plain\"><thead><tr><th>") + title + "</th><th>weight</th></tr></thead>";
    for (const auto& [token, weight] : tokens.subspan(0, std::min<size_t>(tokens.size(), 10)))
        out += "<tr><td><code>" + escaped(token) + "</code></td><td>" + format("%.2f", weight) + "</td></tr>";
    return out + "</table>";
}

// The strongest cell of a sample apart from row 0 and key 0, and the weights of its row.
struct Strongest {
    uint64_t query = 0, key = 0;
    double weight = 0;
    std::vector<double> row;  // by key
};

Strongest strongest_of(const ShownSample& sample) {
    Strongest out;
    size_t at = 0, row_at = 0;
    for (uint64_t i = 0; i < sample.rows.counts.size(); ++i) {
        const size_t first = at;
        for (uint32_t n = 0; n < sample.rows.counts[i]; ++n, ++at)
            if (const double w = sample.rows.values[at] / 1e4;
                i > 0 && sample.rows.keys[at] > 0 && w > out.weight)
                out.query = i, out.key = sample.rows.keys[at], out.weight = w, row_at = first;
    }
    out.row.resize(sample.tokens.size());
    for (uint32_t n = 0; n < sample.rows.counts[out.query]; ++n)
        out.row[sample.rows.keys[row_at + n]] = sample.rows.values[row_at + n] / 1e4;
    return out;
}

// The text as the page reads it, up to the token after the strongest cell; empty if an address cannot hold
// it.
std::string address_of(const HeadsFound& found, const HeadFound& head, const ShownSample& sample,
                       const Strongest& cell) {
    constexpr size_t kLongest = 6000;
    Session session = level_session(found.model->task().empty() ? 2 : 1, found.model->task());
    session.text =
        found.model->typed(std::span(sample.ids).first(size_t(std::max(cell.query, cell.key)) + 1));
    if (session.text.empty()) return {};
    if (!found.model->task().empty()) {
        session.head = uint32_t(head.layer * found.model->heads + head.head);
        session.row = uint32_t(cell.query), session.column = uint32_t(cell.key);
    }
    const std::string address = write_address(session);
    return address.size() > kLongest ? std::string() : found.page + "#" + address;
}

// True if an address does not depend on the page that has it.
bool is_absolute(std::string_view address) {
    return address.starts_with('/') || address.find("://") != std::string_view::npos;
}

std::string sample_html(const HeadsFound& found, const HeadFound& head, const ShownSample& sample) {
    constexpr uint64_t kBefore = 24, kAfter = 8;
    const Strongest cell = strongest_of(sample);
    const auto shown = [&](uint64_t n) {
        return (n + kBefore >= cell.query && n <= cell.query + kAfter) ||
               (n + kAfter >= cell.key && n <= cell.key + kAfter);
    };
    std::string out = "<div class=\"sample\"><blockquote>";
    bool gap = false;
    for (uint64_t n = 0; n < sample.tokens.size(); ++n) {
        if (!shown(n)) {
            if (!gap) out += "<i> … </i>";
            gap = true;
            continue;
        }
        gap = false;
        const std::string text = escaped(sample.tokens[n]);
        const std::string inside = n == cell.query ? "<b>" + text + "</b>" : text;
        out += cell.row[n] > 0 ? format("<mark style=\"--w:%.2f\" title=\"%.3f\">",
                                        std::min(1.0, cell.row[n]), cell.row[n]) +
                                     inside + "</mark>"
                               : "<span>" + inside + "</span>";
    }
    out += "</blockquote><p class=\"note\">" + format("%.2f", cell.weight) + " from <code>" +
           escaped(sample.tokens[cell.query]) + "</code> on <code>" + escaped(sample.tokens[cell.key]) +
           "</code>, ";
    const int64_t away = int64_t(cell.query) - int64_t(cell.key);
    out += away == 0
               ? "itself"
               : count_text(uint64_t(std::abs(away)), "token", "tokens") + (away > 0 ? " back" : " ahead");
    out += " · text " + std::to_string(sample.of.text);
    if (const std::string address = address_of(found, head, sample, cell); !address.empty())
        out += " · <a href=\"" + escaped(is_absolute(found.page) ? address : "../" + address) +
               "\">Open this text in Fovea</a>";
    return out + "</p></div>\n";
}

std::string metrics_html(const HeadsFound& found, const HeadFound& head) {
    std::string out =
        "<div class=\"scroll\"><table class=\"plain\"><thead><tr><th>metric</th><th>value</th><th>place "
        "among all heads</th></tr></thead>";
    for (const HeadMetricName& one : head_metric_names()) {
        const double value = head.metrics.*one.value;
        const auto higher =
            std::count_if(found.heads.begin(), found.heads.end(),
                          [&](const HeadFound& other) { return other.metrics.*one.value > value; });
        out +=
            "<tr><td title=\"" + std::string(one.about) + "\">" + one.label + "</td><td>" +
            value_text(value) + "</td><td>" +
            (std::isnan(value) ? "–"
                               : std::to_string(higher + 1) + " of " + std::to_string(found.heads.size())) +
            "</td></tr>";
    }
    return out + "</table></div>";
}

std::string figures_html(const HeadFound& head, std::span<const ShownSample> samples) {
    const SampleSums sums = sample_sums(samples);
    const std::vector<uint64_t> counts = activation_histogram(head.activations);
    const std::vector<double> activations(counts.begin(), counts.end());
    const auto edge = [](size_t n) { return std::to_string(SampleSums::kEdges[n]); };
    return "<div class=\"pair\"><figure><figcaption>Weight in the samples by tokens between query and "
           "key</figcaption>" +
           bars_svg(sums.distances, edge, 1) +
           "</figure><figure><figcaption>Texts by their largest weight, without the first "
           "token</figcaption>" +
           bars_svg(
               activations, [](size_t n) { return format("%.2f", double(n) / 50); }, 10) +
           "</figure></div><div class=\"pair\">" + tokens_html("query tokens", sums.queries) +
           tokens_html("key tokens", sums.keys) + "</div>\n";
}

}  // namespace

Result<void> write_report_index(const HeadsFound& found, const fs::path& folder) {
    const std::string name = escaped(found.model->name());
    const std::string body =
        "<h1>What the heads of " + name + " do</h1>\n<p>" + count_text(found.heads.size(), "head", "heads") +
        " over " + count_text(found.texts, "text", "texts") + " of <strong>" + escaped(found.corpus->name()) +
        "</strong>, " + count_text(found.counts.rows, "token", "tokens") + ", at most " +
        std::to_string(found.length) +
        " of each text. A head gets a role if its mean weight on the keys of that role is at least " +
        format("%.1f", double(kMinJob)) +
        ".</p>\n<h2>All heads by role</h2>\n<p>The stronger the color, the clearer the role. "
        "Choose a head to see its texts.</p>\n" +
        "<div class=\"split\">" + grid_html(found) + roles_html(found) +
        "</div>\n<h2>Metrics</h2>\n<p>Means over all tokens, as HeadVis defines them. <a "
        "href=\"heads.csv\">heads.csv</a> has all digits.</p>\n" +
        table_html(found);
    return write_text_file((folder / "index.html").string(), page("Heads of " + found.model->name(), body));
}

Result<void> write_report_head(const HeadsFound& found, const HeadFound& head,
                               std::span<const ShownSample> samples, const fs::path& folder) {
    const auto at = size_t(&head - found.heads.data());
    std::string body = "<nav><a href=\"../index.html\">All heads</a>";
    if (at > 0)
        body +=
            "<a href=\"" + page_name(found.heads[at - 1]) + "\">← " + head_name(found.heads[at - 1]) + "</a>";
    if (at + 1 < found.heads.size())
        body +=
            "<a href=\"" + page_name(found.heads[at + 1]) + "\">" + head_name(found.heads[at + 1]) + " →</a>";
    const std::string sentence = sentence_of(head.role, found);
    body +=
        "</nav>\n<main style=\"" + role_style(head.role) + "\"><h1>Head " + head_name(head) +
        " <b class=\"pill\">" + std::string(head.role) + "</b></h1>\n<p>" +
        (sentence.empty() ? "No score reaches " + format("%.1f", double(kMinJob)) + "; the largest is "
                          : sentence + ": its mean weight there is ") +
        format("%.2f", role_share(head.metrics)) + ".</p>\n" + metrics_html(found, head) +
        figures_html(head, samples) +
        "<h2>Texts that show it</h2>\n<p>The outlined token is the query of the strongest weight; the marked "
        "ones are its "
        "keys.</p>\n";
    for (uint32_t interval = HeadSampler::kIntervals; interval >= 1; --interval) {
        std::string part;
        for (const ShownSample& one : samples)
            if (one.of.interval == interval) part += sample_html(found, head, one);
        constexpr std::array kFifths = {"Lowest", "Second", "Third", "Fourth", "Highest"};
        if (!part.empty())
            body += std::string("<h3>") + kFifths[interval - 1] + " fifth of the texts</h3>\n" + part;
    }
    return write_text_file(
        (folder / "pages" / page_name(head)).string(),
        page("Head " + head_name(head) + " of " + found.model->name(), body + "</main>\n"));
}

}  // namespace fovea::app
