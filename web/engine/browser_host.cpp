#include "browser_host.hpp"

#include <fovea/tokenizer/characters.hpp>

#include <emscripten.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

// Places and sizes are doubles of JavaScript: exact up to 2^53.
EM_JS(int, host_read, (uint32_t file, double first, uint32_t size, void* out),
      { return Module["host"].read(file, first, size, out >>> 0); });
EM_JS(void, host_progress, (double share), { Module["host"].progress(share); });
EM_JS(void, host_classes, (uint32_t first, uint8_t* out), { Module["host"].classes(first, out >>> 0); });
// Returns the text after its size; the caller frees it.
EM_JS(uint32_t*, host_lower, (uint32_t character), { return Module["host"].lower(character); });
EM_JS(uint32_t*, host_normal, (int form, const char* text, uint32_t size),
      { return Module["host"].normal(form, text >>> 0, size); });
EM_JS(uint32_t*, host_graphemes, (const char* text, uint32_t size),
      { return Module["host"].graphemes(text >>> 0, size); });

namespace fovea {
namespace {

// Numbers or a text that the host allocated: a count, then what it counts.
struct HostAnswer {
    explicit HostAnswer(uint32_t* words) : words(words) {}
    ~HostAnswer() { std::free(words); }
    HostAnswer(const HostAnswer&) = delete;
    HostAnswer& operator=(const HostAnswer&) = delete;
    uint32_t count() const { return words ? *words : 0; }
    std::string_view text() const {
        return words ? std::string_view(reinterpret_cast<const char*>(words + 1), *words)
                     : std::string_view();
    }
    uint32_t* words;
};

class HostFile final : public StoredFile {
  public:
    HostFile(uint32_t index, uint64_t size_bytes) : index_(index), size_bytes_(size_bytes) {}
    uint64_t size_bytes() const noexcept override { return size_bytes_; }
    Result<void> read(uint64_t first, std::span<std::byte> out) const override {
        if (host_read(index_, double(first), uint32_t(out.size()), out.data())) return {};
        return Error{FOVEA_INVALID_ARGUMENT, "file",
                     "the file cannot be read any more: it was changed or moved; open it again"};
    }

  private:
    uint32_t index_;
    uint64_t size_bytes_;
};

class HeldFile final : public StoredFile {
  public:
    HeldFile(std::unique_ptr<std::byte[]> bytes, size_t size_bytes)
        : bytes_(std::move(bytes)), size_bytes_(size_bytes) {}
    uint64_t size_bytes() const noexcept override { return size_bytes_; }
    std::span<const std::byte> held() const noexcept override { return {bytes_.get(), size_bytes_}; }
    Result<void> read(uint64_t first, std::span<std::byte> out) const override {
        std::ranges::copy(held().subspan(size_t(first), out.size()), out.begin());
        return {};
    }

  private:
    std::unique_ptr<std::byte[]> bytes_;
    size_t size_bytes_;
};

}  // namespace

namespace web {

std::shared_ptr<const StoredFile> host_file(uint32_t index, uint64_t size_bytes) {
    return std::make_shared<HostFile>(index, size_bytes);
}

Result<std::shared_ptr<const StoredFile>> held_host_file(uint32_t index, uint64_t size_bytes) {
    std::unique_ptr<std::byte[]> bytes(
        size_bytes > SIZE_MAX / 2 ? nullptr : new (std::nothrow) std::byte[size_t(size_bytes)]);
    if (!bytes)
        return Error{FOVEA_OUT_OF_HOST_MEMORY, "file",
                     "not enough memory: the file needs " + std::to_string(size_bytes) + " bytes"};
    const HostFile file(index, size_bytes);
    constexpr uint64_t kStretchBytes = uint64_t{16} << 20;
    for (uint64_t done = 0; done < size_bytes; done += kStretchBytes) {
        tell_progress(double(done) / double(size_bytes));
        const std::span<std::byte> part(bytes.get() + done,
                                        size_t(std::min(kStretchBytes, size_bytes - done)));
        if (Result<void> r = file.read(done, part); !r) return r.error();
    }
    return std::shared_ptr<const StoredFile>(
        std::make_shared<HeldFile>(std::move(bytes), size_t(size_bytes)));
}

void tell_progress(double share) { host_progress(share); }

}  // namespace web

// ---- character_tables by the browser ----

namespace {

// Bits of one character, as model_host.ts sets them.
enum CharacterClass : uint8_t {
    kSpace = 1,
    kPunctuation = 2,
    kMark = 4,
    kNonspacingMark = 8,
    kNumber = 16,
    kWord = 32,
    kOther = 64
};

// Asked for in blocks of 256 characters.
uint8_t classes_of(uint32_t c) {
    static uint8_t* blocks[0x1100] = {};
    if (c > 0x10ffff) return 0;
    uint8_t*& block = blocks[c >> 8];
    if (!block) {
        block = new uint8_t[256];
        host_classes(c & ~0xffu, block);
    }
    return block[c & 0xff];
}

}  // namespace

bool has_character_tables() { return true; }
bool is_space(uint32_t c) { return classes_of(c) & kSpace; }
bool is_punctuation(uint32_t c) { return classes_of(c) & kPunctuation; }
bool is_mark(uint32_t c) { return classes_of(c) & kMark; }
bool is_nonspacing_mark(uint32_t c) { return classes_of(c) & kNonspacingMark; }
bool is_number(uint32_t c) { return classes_of(c) & kNumber; }
bool is_word(uint32_t c) { return classes_of(c) & kWord; }
bool is_other(uint32_t c) { return classes_of(c) & kOther; }
void append_lower(std::string& out, uint32_t c) { out += HostAnswer(host_lower(c)).text(); }
std::string normal_form(std::string_view text, NormalForm form) {
    return std::string(HostAnswer(host_normal(int(form), text.data(), uint32_t(text.size()))).text());
}
std::vector<size_t> grapheme_ends(std::string_view text) {
    const HostAnswer ends(host_graphemes(text.data(), uint32_t(text.size())));
    return ends.words ? std::vector<size_t>(ends.words + 1, ends.words + 1 + ends.count())
                      : std::vector<size_t>();
}

}  // namespace fovea
