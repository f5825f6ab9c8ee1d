// Writes JSON without streams or locales, which would double the size of the module.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fovea::web {

// Commas are put where they belong. NaN and infinities become the strings "nan", "inf", "-inf".
class JsonText {
  public:
    JsonText& begin_object() { return open('{'); }
    JsonText& end_object() { return close('}'); }
    JsonText& begin_array() { return open('['); }
    JsonText& end_array() { return close(']'); }
    JsonText& key(std::string_view name);

    JsonText& text(std::string_view value);
    JsonText& texts(std::span<const std::string> values);
    JsonText& number(double value);  // as many digits as a float32 needs to read back
    JsonText& whole(int64_t value);
    JsonText& boolean(bool value);
    JsonText& numbers(std::span<const float> values);
    JsonText& shape(std::span<const uint64_t> sizes);

    const std::string& str() const { return out_; }

  private:
    JsonText& open(char c);
    JsonText& close(char c);
    void separate();

    std::string out_;
    bool needs_comma_ = false;
};

}  // namespace fovea::web
