#include "document/comparison.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

std::string shape_text(const Stage& stage) {
    return std::to_string(stage.rows) + " x " + std::to_string(stage.columns);
}

double jensen_shannon(std::span<const float> a, std::span<const float> b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double p = double(a[i]), q = double(b[i]), m = (p + q) / 2;
        if (p > 0) sum += p * std::log(p / m) / 2;
        if (q > 0) sum += q * std::log(q / m) / 2;
    }
    return sum;
}

}  // namespace

HeadDifference difference_of(const Stage& a, uint32_t head_a, const Stage& b, uint32_t head_b, uint64_t row) {
    const std::span<const float> va = a.head_values(head_a), vb = b.head_values(head_b);
    HeadDifference found;
    double sum = 0;
    size_t where = 0, count = 0;
    for (size_t i = 0; i < va.size(); ++i) {
        const double difference = std::abs(double(va[i]) - double(vb[i]));
        if (!std::isfinite(difference)) continue;
        sum += difference;
        ++count;
        if (difference > found.largest) found.largest = difference, where = i;
    }
    if (count > 0) found.mean = sum / double(count);
    found.row = where / a.columns, found.column = where % a.columns;
    found.jensen_shannon =
        jensen_shannon(va.subspan(row * a.columns, a.columns), vb.subspan(row * a.columns, a.columns));
    return found;
}

bool same_cells_hidden(const Stage& a, uint32_t head_a, const Stage& b, uint32_t head_b) {
    for (uint64_t row = 0; row < a.rows; ++row)
        for (uint64_t column = 0; column < a.columns; ++column)
            if (a.hidden(head_a, row, column) != b.hidden(head_b, row, column)) return false;
    return true;
}

Comparison comparison_of(const Workbench& bench) {
    const Stage& now = bench.stage();
    Comparison c;
    c.b = &now;
    if (const KeptResult* kept = bench.past.kept()) {
        c.a = kept->result->find_stage(now.name);
        c.head_b = bench.view.head;
        if (!c.a) {
            c.why_not = "The saved result A has no stage \xe2\x80\x9c" + now.name + "\xe2\x80\x9d.";
        } else if (c.a->rows != now.rows || c.a->columns != now.columns) {
            c.why_not = now.name + " is " + shape_text(*c.a) + " in the saved result A and " +
                        shape_text(now) + " now: only results with equal shapes can be compared.";
        } else {
            c.head_a = std::min(kept->head, uint32_t(c.a->heads - 1));
        }
        return c;
    }
    c.a = &now;
    if (now.heads < 2) {
        c.why_not = now.name +
                    " has one head. Choose a level from 5 to 7 or a file, or save this result as A and "
                    "change level, text or parameters.";
        return c;
    }
    c.head_a = bench.view.head;
    c.head_b = bench.view.compared_head >= 0 ? uint32_t(bench.view.compared_head)
                                             : uint32_t((c.head_a + 1) % now.heads);
    return c;
}

std::pair<std::string, std::string> differing_settings(const Settings& a, const Settings& b) {
    std::pair<std::string, std::string> words;
    const auto tell = [&](const std::string& of_a, const std::string& of_b) {
        if (of_a == of_b) return;
        words.first += (words.first.empty() ? "" : ", ") + of_a;
        words.second += (words.second.empty() ? "" : ", ") + of_b;
    };
    const auto both = [&](const auto& words_of) { tell(words_of(a), words_of(b)); };
    const auto is = [](bool on, const std::string& name) { return (on ? "" : "no ") + name; };
    both([](const Settings& s) { return subject_name(s); });
    both([](const Settings& s) {
        return "\xe2\x80\x9c" + s.text.substr(0, s.text.find(' ', 16)) + "\xe2\x80\x9d";
    });
    both([](const Settings& s) {
        const std::string key(mask_key(s));
        return key == "none" ? "no mask" : key + " mask";
    });
    both([&](const Settings& s) { return is(is_scaled(s), "scale"); });
    both([](const Settings& s) { return "temperature " + format_number(s.temperature, 3); });
    both([](const Settings& s) {
        return s.softcap > 0 ? "softcap " + format_number(s.softcap, 3) : std::string("no softcap");
    });
    both([&](const Settings& s) { return is(s.alibi, "ALiBi"); });
    both([&](const Settings& s) { return is(s.rope, "RoPE"); });
    both([](const Settings& s) {
        return s.dropout_p > 0 ? "dropout " + format_number(s.dropout_p, 3) : std::string("no dropout");
    });
    both([](const Settings& s) { return "seed " + std::to_string(s.seed); });
    both([](const Settings& s) { return "layer " + std::to_string(s.mapping.layer); });
    both([](const Settings& s) { return std::to_string(s.heads) + " heads"; });
    both([](const Settings& s) { return std::string(precision_name(s.precision)); });
    return words;
}

}  // namespace fovea::visualizer
