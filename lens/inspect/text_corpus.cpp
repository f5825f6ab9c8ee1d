#include <fovea/inspect/text_corpus.hpp>

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "files/sha256.hpp"
#include "files/utf8.hpp"

namespace fovea {
namespace {

namespace fs = std::filesystem;

Error bad(std::string text) { return {FOVEA_INVALID_ARGUMENT, "corpus", std::move(text)}; }

}  // namespace

Result<TextCorpus> TextCorpus::open(const fs::path& file, uint64_t texts) {
    TextCorpus out;
    out.path_ = printable_name(file.string(), 400);
    out.name_ = file.stem().string();
    out.is_json_ = file.extension() == ".jsonl";
    std::error_code code;
    if (fs::is_directory(file, code)) return bad(out.path_ + " is a folder; give a file of texts");
    errno = 0;
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream all;
    if (stream) all << stream.rdbuf();
    if (!stream) return bad(out.path_ + " cannot be read: " + std::strerror(errno ? errno : EIO));
    if (all.view().empty()) return bad(out.path_ + " is empty; it must have a text on each line");
    const std::string_view read = all.view();
    out.bytes_.assign(read.begin(), read.end());
    const std::string_view bytes(out.bytes_.data(), out.bytes_.size());
    const size_t fault = std::min(files::utf8_fault(bytes), bytes.find('\0'));
    if (fault < bytes.size())
        return bad(out.path_ + " is not text: byte " + std::to_string(fault) +
                   (bytes[fault] == '\0' ? " is 0" : " is not UTF-8") +
                   "; give a file with a text on each line, or .jsonl with \"text\" "
                   "in each line");
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    for (std::string_view rest = bytes.substr(bytes.starts_with(kByteOrderMark) ? 3 : 0); !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (std::all_of(line.begin(), line.end(), [](char c) { return std::isspace(uint8_t(c)) != 0; }))
            continue;
        out.lines_.push_back(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
        if (out.lines_.size() == texts) break;
    }
    if (out.lines_.empty()) return bad(out.path_ + " has only empty lines; it must have a text on each line");
    for (size_t n = 0; out.is_json_ && n < out.lines_.size(); ++n)
        if (const Result<std::string> one = out.text(n); !one) return one.error();
    return out;
}

Result<std::string> TextCorpus::text(size_t n) const {
    if (!is_json_) return std::string(lines_[n]);
    const Result<JsonValue> value = parse_json(lines_[n]);
    const auto found = value ? value->find("text") : std::nullopt;
    if (!found || found->kind() != JsonValue::Kind::text)
        return bad(path_ + ": text " + std::to_string(n) + ", counted from 0 without empty lines," +
                   (value ? " has no member \"text\"" : " is not JSON: " + value.error().text) +
                   "; each line of a .jsonl file must be an object with \"text\"");
    return std::string(found->text());
}

std::string TextCorpus::fingerprint() const { return sha256(std::as_bytes(std::span(bytes_))); }

std::string model_fingerprint(std::span<const fs::path> files) {
    constexpr uint64_t kEnd = 1u << 16;
    std::string text;
    for (const fs::path& path : files) {
        std::error_code code;
        const uint64_t size = fs::file_size(path, code);
        if (code) continue;
        text += path.filename().string() + ' ' + std::to_string(size) + '\n';
        std::ifstream file(path, std::ios::binary);
        for (const uint64_t place : {uint64_t{0}, size - std::min(size, kEnd)}) {
            std::string bytes(size_t(std::min(size, kEnd)), '\0');
            file.seekg(std::streamoff(place));
            file.read(bytes.data(), std::streamsize(bytes.size()));
            text += bytes;
        }
    }
    return sha256(std::as_bytes(std::span(text)));
}

}  // namespace fovea
