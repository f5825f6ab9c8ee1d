#pragma once
// GGUF files that tests write: keys and tensors of a file that is there, changed, or of none.
#include <fovea/files/checkpoint.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

namespace fovea::test {

class GgufEdit {
  public:
    struct Value {
        uint32_t type = 0;
        bool is_array = false;
        uint64_t count = 1;
        std::string bytes;
    };
    struct Tensor {
        std::string name;
        std::vector<uint64_t> dims;  // fastest first
        uint32_t type = 0;           // ggml's number
        std::string bytes;
    };
    std::map<std::string, Value> keys;
    std::vector<Tensor> tensors;

    GgufEdit() = default;
    explicit GgufEdit(const std::filesystem::path& path) {
        const Result<GgufFile> file = load_gguf(path);
        EXPECT_TRUE(file) << (file ? "" : file.error().text);
        if (!file) return;
        for (const GgufValue& v : file->metadata)
            keys[std::string(v.key)] = {uint32_t(v.type), v.is_array, v.count, text_of(v.bytes)};
        for (const StoredWeight& w : file->weights)
            tensors.push_back({w.name, {w.shape.rbegin(), w.shape.rend()}, number_of(w), text_of(w.bytes)});
    }

    void set(const std::string& key, uint32_t v) { keys[key] = {4, false, 1, raw(v)}; }
    void set(const std::string& key, int v) { set(key, uint32_t(v)); }
    void set(const std::string& key, float v) { keys[key] = {6, false, 1, raw(v)}; }
    void set(const std::string& key, double v) { set(key, float(v)); }
    void set(const std::string& key, bool v) { keys[key] = {7, false, 1, std::string(1, char(v))}; }
    void set(const std::string& key, const char* v) { keys[key] = {8, false, 1, with_length(v)}; }
    void set(const std::string& key, const std::vector<std::string>& all) {
        std::string bytes;
        for (const std::string& one : all) bytes += with_length(one);
        keys[key] = {8, true, all.size(), bytes};
    }
    template <class Number>
    void set_array(const std::string& key, uint32_t type, const std::vector<Number>& all) {
        std::string bytes;
        for (const Number one : all) bytes += raw(one);
        keys[key] = {type, true, all.size(), bytes};
    }
    void add_f32(const std::string& name, std::vector<uint64_t> dims, const std::vector<float>& values) {
        std::string bytes;
        for (const float v : values) bytes += raw(v);
        tensors.push_back({name, std::move(dims), 0, bytes});
    }
    Tensor* find(std::string_view name) {
        for (Tensor& t : tensors)
            if (t.name == name) return &t;
        return nullptr;
    }
    void remove(std::string_view name) {
        std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
    }

    std::string text() const {
        std::string out =
            "GGUF" + raw(uint32_t(3)) + raw(uint64_t(tensors.size())) + raw(uint64_t(keys.size()));
        for (const auto& [key, v] : keys) {
            out += with_length(key);
            if (v.is_array) out += raw(uint32_t(9));
            out += raw(v.type);
            if (v.is_array) out += raw(v.count);
            out += v.bytes;
        }
        std::string data;
        for (const Tensor& t : tensors) {
            out += with_length(t.name) + raw(uint32_t(t.dims.size()));
            for (const uint64_t dim : t.dims) out += raw(dim);
            out += raw(t.type) + raw(uint64_t(data.size()));
            data += t.bytes;
            data.resize((data.size() + 31) / 32 * 32);
        }
        out.resize((out.size() + 31) / 32 * 32);
        return out + data;
    }
    void write(const std::filesystem::path& path) const {
        const std::string all = text();
        std::ofstream(path, std::ios::binary).write(all.data(), std::streamsize(all.size()));
    }

  private:
    template <class Number>
    static std::string raw(Number v) {
        std::string bytes(sizeof v, '\0');
        std::memcpy(bytes.data(), &v, sizeof v);
        return bytes;
    }
    static std::string with_length(const std::string& text) { return raw(uint64_t(text.size())) + text; }
    static std::string text_of(std::span<const std::byte> bytes) {
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    static uint32_t number_of(const StoredWeight& w) {
        for (const auto& [name, number] : {std::pair{"F32", 0u}, {"F16", 1u}, {"Q4_0", 2u}, {"Q8_0", 8u}})
            if (w.type_text == name) return number;
        ADD_FAILURE() << w.name << " is " << w.type_text;
        return 0;
    }
};

}  // namespace fovea::test
