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
    std::string q, k;
    for (const DerivationTerm& term : d.terms) {
        q.append(q.empty() ? "" : ", ").append(python_number(term.q));
        k.append(k.empty() ? "" : ", ").append(python_number(term.k));
    }
    std::string text = "import math\n";
    text.append("# batch ")
        .append(std::to_string(d.cell.batch))
        .append(", head ")
        .append(std::to_string(d.cell.head));
    text.append(", query ")
        .append(std::to_string(d.cell.query))
        .append(", key ")
        .append(std::to_string(d.cell.key));
    text.append("\nq = [").append(q).append("]\nk = [").append(k).append("]\n");
    text.append("score = sum(a * b for a, b in zip(q, k)) * ").append(python_number(d.scale)).append("\n");
    if (d.softcap > 0.0f) {
        const std::string limit = python_number(d.softcap);
        text.append("score = ").append(limit).append(" * math.tanh(score / ").append(limit).append(")\n");
    }
    if (d.has_alibi) text.append("score += ").append(python_number(d.alibi)).append("  # ALiBi\n");
    if (d.has_bias) text.append("score += ").append(python_number(d.bias)).append("  # bias\n");
    if (!d.hidden_by.empty()) text.append("score = -math.inf  # ").append(d.hidden_by).append("\n");
    text.append("exponential = math.exp(score - ")
        .append(python_number(d.row_max))
        .append(")  # the row's largest\n");
    text.append("weight = exponential / ").append(python_number(d.denominator)).append("  # the row's sum\n");
    if (d.has_dropout)
        text.append("weight *= ").append(python_number(d.kept ? d.keep_scale : 0.0f)).append("  # dropout\n");
    text.append("print(weight)  # ").append(exact(d.dropped_weight)).append("\n");
    return text;
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
    const auto number = [&](float value) { return latex_number(value, style.decimals); };
    const auto factor = [&](float value) { return latex_factor(value, style.decimals); };
    std::string at = "_{";
    at.append(std::to_string(d.cell.query)).append(1, ',').append(std::to_string(d.cell.key)).append(1, '}');
    std::string sum;
    const size_t shown = std::min<size_t>(d.terms.size(), 4);
    for (size_t i = 0; i < shown; ++i) {
        sum.append(i == 0 ? "" : " + ")
            .append(factor(d.terms[i].q))
            .append(" \\cdot ")
            .append(factor(d.terms[i].k));
    }
    if (shown < d.terms.size()) sum += " + \\dots";
    std::string text = "\\begin{aligned}\n";
    text.append("q \\cdot k &= ").append(sum).append(" = ").append(number(d.dot)).append(" \\\\\n");
    text.append("s")
        .append(at)
        .append(" &= ")
        .append(factor(d.dot))
        .append(" \\cdot ")
        .append(number(d.scale));
    text.append(" = ").append(number(d.score)).append(" \\\\\n");
    if (d.masked != d.score)
        text.append("s'").append(at).append(" &= ").append(number(d.masked)).append(" \\\\\n");
    text.append("a").append(at).append(" &= \\frac{e^{").append(number(d.masked)).append(" - ");
    text.append(factor(d.row_max))
        .append("}}{")
        .append(number(d.denominator))
        .append("} = ")
        .append(number(d.weight));
    if (d.has_dropout) text.append(" \\rightarrow ").append(number(d.dropped_weight));
    return text.append("\n\\end{aligned}\n");
}

}  // namespace fovea
