#include "inspect/json.hpp"

#include <cstdlib>

namespace fovea {

// Recursive descent; every function leaves the position behind what it read and says whether it could.
class JsonReader {
  public:
    explicit JsonReader(std::string_view text) : rest_(text) {}

    bool value(JsonValue& out) {
        skip_space();
        if (rest_.empty()) return false;
        switch (rest_.front()) {
            case '{':
                return object(out);
            case '[':
                return array(out);
            case '"':
                out.kind_ = JsonValue::Kind::text;
                return string(out.text_);
            case 't':
                out.kind_ = JsonValue::Kind::boolean;
                return word("true", out.text_);
            case 'f':
                out.kind_ = JsonValue::Kind::boolean;
                return word("false", out.text_);
            case 'n':
                return word("null", out.text_);
            default:
                return number(out);
        }
    }

    bool at_end() {
        skip_space();
        return rest_.empty();
    }

  private:
    void skip_space() {
        const size_t count = rest_.find_first_not_of(" \n\r\t");
        rest_.remove_prefix(count == std::string_view::npos ? rest_.size() : count);
    }

    bool take(char c) {
        skip_space();
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }

    bool word(std::string_view expected, std::string& out) {
        if (!rest_.starts_with(expected)) return false;
        out = expected;
        rest_.remove_prefix(expected.size());
        return true;
    }

    bool number(JsonValue& out) {
        const size_t count = rest_.find_first_not_of("+-.0123456789eE");
        out.kind_ = JsonValue::Kind::number;
        out.text_ = rest_.substr(0, count);
        rest_.remove_prefix(out.text_.size());
        return !out.text_.empty();
    }

    bool string(std::string& out) {
        if (!take('"')) return false;
        while (!rest_.empty()) {
            char c = rest_.front();
            rest_.remove_prefix(1);
            if (c == '"') return true;
            if (c == '\\') {
                if (rest_.empty()) return false;
                c = rest_.front();
                rest_.remove_prefix(1);
                if (c == 'n') {
                    c = '\n';
                } else if (c == 't') {
                    c = '\t';
                } else if (c != '"' && c != '\\' && c != '/') {
                    return false;
                }
            }
            out.push_back(c);
        }
        return false;
    }

    bool array(JsonValue& out) {
        out.kind_ = JsonValue::Kind::array;
        take('[');
        if (take(']')) return true;
        do {
            if (!value(out.items_.emplace_back())) return false;
        } while (take(','));
        return take(']');
    }

    bool object(JsonValue& out) {
        out.kind_ = JsonValue::Kind::object;
        take('{');
        if (take('}')) return true;
        do {
            auto& [name, member] = out.members_.emplace_back();
            skip_space();
            if (!string(name) || !take(':') || !value(member)) return false;
        } while (take(','));
        return take('}');
    }

    std::string_view rest_;
};

double JsonValue::number() const { return std::strtod(std::string(number_text()).c_str(), nullptr); }
float JsonValue::number_f32() const { return std::strtof(std::string(number_text()).c_str(), nullptr); }

const JsonValue* JsonValue::find(std::string_view name) const {
    for (const auto& [key, value] : members_) {
        if (key == name) return &value;
    }
    return nullptr;
}

const JsonValue& JsonValue::operator[](std::string_view name) const {
    static const JsonValue kNull;
    const JsonValue* found = find(name);
    return found != nullptr ? *found : kNull;
}

std::optional<JsonValue> parse_json(std::string_view text) {
    JsonReader reader(text);
    JsonValue value;
    if (!reader.value(value) || !reader.at_end()) return std::nullopt;
    return value;
}

}  // namespace fovea
