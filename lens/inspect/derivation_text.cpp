#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/format.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace fovea {
namespace {

// The digits that read back to the same float32, as JSON, Python and CSV readers take them.
std::string exact(float value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0.0f ? "inf" : "-inf";
    std::array<char, 64> text;
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string python_number(float value) {
    return std::isfinite(value) ? exact(value) : "float('" + exact(value) + "')";
}

std::string padded(std::string text, size_t width) {
    if (text.size() < width) text.insert(0, width - text.size(), ' ');
    return text;
}

// The terms to show: all, or those with the largest products, in the order of d.
std::vector<size_t> shown_terms(const Derivation& derivation, size_t most) {
    std::vector<size_t> order(derivation.terms.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (order.size() <= most) return order;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return std::fabs(derivation.terms[a].product) > std::fabs(derivation.terms[b].product);
    });
    order.resize(most);
    std::sort(order.begin(), order.end());
    return order;
}

class Text {
  public:
    Text(const Derivation& derivation, const DerivationStyle& style) : d_(derivation), style_(style) {}

    std::string write() {
        heading();
        products();
        score_steps();
        weight_steps();
        values();
        return std::move(text_);
    }

  private:
    static constexpr size_t kColumn = 13;

    std::string number(float value) const { return format_value(value, style_.decimals); }

    void line(const std::string& text) { text_.append(text).append(1, '\n'); }

    void step(const std::string& name, float value, const std::string& formula) {
        std::string text = name;
        text.append(text.size() < 9 ? 9 - text.size() : 1, ' ').append(padded(number(value), kColumn));
        if (!formula.empty()) text.append("   ").append(formula);
        line(text);
    }

    void columns(const std::string& first, std::initializer_list<std::string> rest) {
        std::string text = padded(first, 9);
        for (const std::string& cell : rest) text += padded(cell, kColumn);
        line(text);
    }

    void heading() {
        const auto token = [](std::string_view given, const char* what, uint64_t index) {
            std::string text = what;
            text.append(" ").append(std::to_string(index));
            if (!given.empty()) text.append(" '").append(given).append("'");
            return text;
        };
        std::string text = "batch " + std::to_string(d_.cell.batch);
        text.append(", head ").append(std::to_string(d_.cell.head)).append(": ");
        text.append(token(style_.query_token, "query", d_.cell.query)).append(" against ");
        text.append(token(style_.key_token, "key", d_.cell.key));
        line(text);
    }

    void products() {
        if (d_.terms.empty()) return;
        columns("d", {"q", "k", "q * k", "sum"});
        const std::vector<size_t> shown = shown_terms(d_, style_.most_terms);
        for (const size_t i : shown) {
            const DerivationTerm& term = d_.terms[i];
            columns(std::to_string(i),
                    {number(term.q), number(term.k), number(term.product), number(term.running_sum)});
        }
        if (shown.size() < d_.terms.size()) {
            line("  (the " + std::to_string(shown.size()) + " largest of " + std::to_string(d_.terms.size()) +
                 " products)");
        }
    }

    void score_steps() {
        step("dot", d_.dot, "sum of q[d] * k[d]");
        step("score", d_.score, "dot * " + number(d_.scale));
        if (d_.softcap > 0.0f) {
            const std::string limit = number(d_.softcap);
            step("capped", d_.capped, limit + " * tanh(score / " + limit + ")");
        }
        if (d_.has_alibi) {
            const int64_t distance = static_cast<int64_t>(d_.cell.key) - d_.position;
            step("alibi", d_.alibi, number(d_.alibi_slope) + " * " + std::to_string(distance));
        }
        if (d_.has_bias) step("bias", d_.bias, "");
        step("masked", d_.masked,
             d_.hidden_by.empty() ? "the query sees this key" : "hidden by " + d_.hidden_by);
    }

    void weight_steps() {
        step("max", d_.row_max,
             "of the row's " + std::to_string(d_.visible_keys) + " visible keys" +
                 (d_.has_sink ? " and the sink" : ""));
        step("exp", d_.exponential,
             d_.hidden_by.empty() ? "exp(" + number(d_.masked) + " - " + number(d_.row_max) + ")"
                                  : "a hidden key has none");
        if (d_.has_sink)
            step("sink", d_.sink_term, "exp(" + number(d_.sink) + " - " + number(d_.row_max) + ")");
        step("sum", d_.denominator, "of exp over the row");
        step("weight", d_.weight, number(d_.exponential) + " / " + number(d_.denominator));
        if (d_.has_dropout) {
            step("dropped", d_.dropped_weight, d_.kept ? "weight * " + number(d_.keep_scale) : "dropped");
        }
    }

    void values() {
        if (d_.values.empty()) return;
        columns("d", {"v", "weight * v", "context"});
        const size_t shown = std::min(d_.values.size(), style_.most_terms);
        for (size_t i = 0; i < shown; ++i) {
            const DerivationValue& value = d_.values[i];
            columns(std::to_string(i),
                    {number(value.value), number(value.contribution), number(value.context)});
        }
        if (shown < d_.values.size()) {
            line("  (the first " + std::to_string(shown) + " of " + std::to_string(d_.values.size()) +
                 " dimensions)");
        }
    }

    const Derivation& d_;
    const DerivationStyle& style_;
    std::string text_;
};

// Name, value and formula of the scalar steps, for the formats that take every digit.
std::vector<std::pair<std::string, float>> steps_of(const Derivation& d) {
    std::vector<std::pair<std::string, float>> steps = {
        {"dot", d.dot}, {"scale", d.scale}, {"score", d.score}};
    if (d.softcap > 0.0f) steps.emplace_back("capped", d.capped);
    if (d.has_alibi) steps.emplace_back("alibi", d.alibi);
    if (d.has_bias) steps.emplace_back("bias", d.bias);
    steps.emplace_back("masked", d.masked);
    steps.emplace_back("row_max", d.row_max);
    steps.emplace_back("exponential", d.exponential);
    if (d.has_sink) steps.emplace_back("sink_term", d.sink_term);
    steps.emplace_back("denominator", d.denominator);
    steps.emplace_back("weight", d.weight);
    if (d.has_dropout) steps.emplace_back("dropped_weight", d.dropped_weight);
    return steps;
}

}  // namespace

std::string derivation_text(const Derivation& derivation, const DerivationStyle& style) {
    return Text(derivation, style).write();
}

std::string derivation_csv(const Derivation& derivation) {
    std::string text = "d,q,k,product,running_sum\n";
    for (size_t i = 0; i < derivation.terms.size(); ++i) {
        const DerivationTerm& term = derivation.terms[i];
        text += std::to_string(i);
        for (const float value : {term.q, term.k, term.product, term.running_sum})
            text.append(",").append(exact(value));
        text += '\n';
    }
    text += "\nstep,value\n";
    for (const auto& [name, value] : steps_of(derivation))
        text.append(name).append(",").append(exact(value)) += '\n';
    text += "\nd,v,contribution,context\n";
    for (size_t i = 0; i < derivation.values.size(); ++i) {
        const DerivationValue& value = derivation.values[i];
        text += std::to_string(i);
        for (const float v : {value.value, value.contribution, value.context})
            text.append(",").append(exact(v));
        text += '\n';
    }
    return text;
}

std::string derivation_python(const Derivation& derivation) {
    const Derivation& d = derivation;
    std::string text = "import math\n# batch ";
    const auto add = [&text](const char* words, uint64_t count) {
        text.append(words) += std::to_string(count);
    };
    const auto put = [&text](const char* words, float value) { text.append(words) += python_number(value); };
    add("", d.cell.batch);
    add(", head ", d.cell.head);
    add(", query ", d.cell.query);
    add(", key ", d.cell.key);
    text += "\nq = ";
    for (size_t i = 0; i < d.terms.size(); ++i) put(i == 0 ? "[" : ", ", d.terms[i].q);
    text += "]\nk = ";
    for (size_t i = 0; i < d.terms.size(); ++i) put(i == 0 ? "[" : ", ", d.terms[i].k);
    put("]\nscore = sum(a * b for a, b in zip(q, k)) * ", d.scale);
    if (d.softcap > 0.0f) {
        put("\nscore = ", d.softcap);
        put(" * math.tanh(score / ", d.softcap);
        text += ')';
    }
    if (d.has_alibi) {
        put("\nscore += ", d.alibi);
        text += "  # ALiBi";
    }
    if (d.has_bias) {
        put("\nscore += ", d.bias);
        text += "  # bias";
    }
    if (!d.hidden_by.empty()) text.append("\nscore = -math.inf  # ") += d.hidden_by;
    put("\nexponential = math.exp(score - ", d.row_max);
    put(")  # the row's largest\nweight = exponential / ", d.denominator);
    text += "  # the row's sum\n";
    if (d.has_dropout) {
        put("weight *= ", d.kept ? d.keep_scale : 0.0f);
        text += "  # dropout\n";
    }
    return text.append("print(weight)  # ").append(exact(d.dropped_weight)) + '\n';
}

namespace {

std::string latex_number(float value, int decimals) {
    if (std::isinf(value)) return value > 0.0f ? "\\infty" : "-\\infty";
    std::string text = format_value(value, decimals);
    const size_t e = text.find('e');
    if (e == std::string::npos) return text;
    const int exponent = std::atoi(text.c_str() + e + 1);
    text.resize(e);
    return text.append(" \\cdot 10^{").append(std::to_string(exponent)).append("}");
}

std::string latex_factor(float value, int decimals) {
    std::string text = latex_number(value, decimals);
    if (value < 0.0f) text.insert(0, 1, '(').append(1, ')');
    return text;
}

}  // namespace

std::string derivation_latex(const Derivation& derivation, const DerivationStyle& style) {
    const Derivation& d = derivation;
    std::string text;
    const auto put = [&](const char* words, float value) {
        text.append(words) += latex_number(value, style.decimals);
    };
    const auto put_factor = [&](const char* words, float value) {
        text.append(words) += latex_factor(value, style.decimals);
    };
    const auto begin_line = [&](const char* name) {
        text.append(name).append("_{").append(std::to_string(d.cell.query)) += ',';
        text.append(std::to_string(d.cell.key)) += "} &= ";
    };
    constexpr size_t kMaxProducts = 64;
    const size_t shown = std::min(d.terms.size(), kMaxProducts);
    if (shown < d.terms.size())
        text.append("% the first 64 of ").append(std::to_string(d.terms.size())) +=
            " products; the sum is of all\n";
    text += "\\begin{aligned}\nq \\cdot k &= ";
    for (size_t i = 0; i < shown; ++i) {
        put_factor(i == 0 ? "" : " + ", d.terms[i].q);
        put_factor(" \\cdot ", d.terms[i].k);
    }
    if (shown < d.terms.size()) text += " + \\dots";
    put(" = ", d.dot);
    begin_line(" \\\\\ns");
    put_factor("", d.dot);
    put(" \\cdot ", d.scale);
    put(" = ", d.score);
    if (d.masked != d.score) {
        begin_line(" \\\\\ns'");
        if (!d.hidden_by.empty()) {
            text.append("\\text{").append(d.hidden_by) += '}';
        } else {
            if (d.softcap > 0.0f) put("", d.softcap), text += " \\tanh(";
            put("", d.score);
            if (d.softcap > 0.0f) put(" / ", d.softcap), text += ')';
            if (d.has_alibi) put_factor(" + ", d.alibi);
            if (d.has_bias) put_factor(" + ", d.bias);
        }
        put(" = ", d.masked);
    }
    begin_line(" \\\\\na");
    put("\\frac{e^{", d.masked);
    put_factor(" - ", d.row_max);
    put("}}{", d.denominator);
    put("} = ", d.weight);
    if (d.has_dropout) put(" \\rightarrow ", d.dropped_weight);
    return text + "\n\\end{aligned}\n";
}

}  // namespace fovea
