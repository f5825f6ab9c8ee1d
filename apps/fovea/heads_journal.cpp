#include "heads_journal.hpp"

#include "arguments.hpp"
#include "output_file.hpp"

#include <fovea/files.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "problem/fnv1a.hpp"

namespace fovea::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "fovea heads journal 1\n";

uint64_t hash_of(std::string_view bytes) {
    return fnv1a(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

template <class T>
void put(std::string& to, std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    to.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}
template <class T>
void put(std::string& to, const T& value) {
    put(to, std::span<const T>(&value, 1));
}

// Reads from a record; false where it is too short.
class RecordReader {
  public:
    explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}
    template <class T>
    bool get(std::span<T> values) {
        if (bytes_.size() - at_ < values.size_bytes()) return false;
        if (!values.empty()) std::memcpy(values.data(), bytes_.data() + at_, values.size_bytes());
        at_ += values.size_bytes();
        return true;
    }
    template <class T>
    bool get(T& value) {
        return get(std::span<T>(&value, 1));
    }
    template <class T>
    bool get(std::vector<T>& values) {
        uint64_t count = 0;
        if (!get(count) || count > (bytes_.size() - at_) / sizeof(T)) return false;
        values.resize(size_t(count));
        return get(std::span<T>(values));
    }
    uint64_t at() const { return at_; }

  private:
    std::string_view bytes_;
    uint64_t at_ = 0;
};

// False also where the lists do not fit a text of so many tokens.
bool get_rows(RecordReader& from, uint64_t tokens, SparseRows& rows) {
    if (!from.get(rows.counts) || !from.get(rows.keys) || !from.get(rows.values)) return false;
    return rows.counts.size() == tokens && rows.values.size() == rows.keys.size() &&
           std::accumulate(rows.counts.begin(), rows.counts.end(), size_t{0}) == rows.keys.size() &&
           std::all_of(rows.keys.begin(), rows.keys.end(), [&](uint32_t key) { return key < tokens; });
}

void put_rows(std::string& to, const SparseRows& rows) {
    const auto list = [&](const auto& values) {
        put(to, uint64_t(values.size()));
        put(to, std::span(values));
    };
    list(rows.counts), list(rows.keys), list(rows.values);
}

bool seek(std::FILE* file, uint64_t place) {
#ifdef _WIN32
    return _fseeki64(file, int64_t(place), SEEK_SET) == 0;
#else
    return fseeko(file, off_t(place), SEEK_SET) == 0;
#endif
}

bool read_at(std::FILE* file, uint64_t place, std::string& bytes) {
    return seek(file, place) && std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size();
}

// The bytes of the record that begins at `place`; nothing where it is cut or changed.
bool read_record(std::FILE* file, uint64_t place, uint64_t file_bytes, std::string& payload) {
    std::string head(16, '\0');
    if (file_bytes - place < head.size() || !read_at(file, place, head)) return false;
    uint64_t size = 0, hash = 0;
    RecordReader reader(head);
    if (!reader.get(size) || !reader.get(hash) || size > file_bytes - place - head.size()) return false;
    payload.resize(size_t(size));
    return read_at(file, place + head.size(), payload) && hash_of(payload) == hash;
}

// `place` is that of the payload in the file.
bool parse(const std::string& payload, uint64_t place, size_t heads, TextRecord& record) {
    RecordReader from(payload);
    uint64_t samples = 0;
    if (!from.get(record.counts) || !from.get(record.sums) || !from.get(samples)) return false;
    if (record.sums.size() != (record.counts.rows ? heads : 0)) return false;
    for (uint64_t n = 0; n < samples; ++n) {
        uint32_t head = 0;
        if (!from.get(head) || head >= heads) return false;
        record.samples.emplace_back(head, place + from.at());
        SparseRows rows;
        if (!get_rows(from, record.counts.rows, rows)) return false;
    }
    return true;
}

std::string header_of(const HeadsJournal::Identity& identity) {
    std::string text(kMagic);
    for (const auto& [name, value] : identity) text += name + '\t' + value + '\n';
    return text + '\n';
}

// The first line of the header that differs, as a sentence.
std::string difference(std::string_view found, const HeadsJournal::Identity& identity) {
    if (!found.starts_with(kMagic)) return "it was written by another version";
    std::vector<std::string_view> lines = split(found.substr(kMagic.size()), '\n');
    for (size_t n = 0; n < identity.size(); ++n) {
        const auto& [name, value] = identity[n];
        const std::string_view line = n < lines.size() ? lines[n] : std::string_view();
        if (!line.starts_with(name + '\t')) return "it was written by another version";
        if (line.substr(name.size() + 1) != value)
            return "its " + name + " is " + printable_name(line.substr(name.size() + 1)) +
                   ", that of this run " + printable_name(value);
    }
    return "it was written by another version";
}

}  // namespace

Error HeadsJournal::cannot(const char* what) const {
    return Error{FOVEA_IO_ERROR, "--out",
                 printable_name(path_.string(), 400) + " cannot be " + what + ": " + std::strerror(errno)};
}

Result<HeadsJournal> HeadsJournal::open(const fs::path& path, const Identity& identity, size_t heads,
                                        const std::function<void(TextRecord)>& use) {
    HeadsJournal out;
    out.path_ = path;
    const std::string header = header_of(identity);
    std::error_code code;
    const bool exists = fs::exists(path, code);
    errno = 0;
    out.file_.reset(std::fopen(path.string().c_str(), exists ? "r+b" : "w+bx"));
    if (!out.file_) return out.cannot("written");
    std::FILE* const file = out.file_.get();
    const uint64_t bytes = exists ? fs::file_size(path, code) : 0;
    std::string found(size_t(std::min<uint64_t>(bytes, header.size())), '\0');
    if (!read_at(file, 0, found)) return out.cannot("read");
    // A header that was cut is written again.
    if (!header.starts_with(found))
        return Error{FOVEA_INVALID_ARGUMENT, "--out",
                     printable_name(path.string(), 400) + " belongs to another run: " +
                         difference(found, identity) + "; give another --out, or delete that file"};
    if (found.size() < header.size() &&
        (!seek(file, 0) || std::fwrite(header.data(), 1, header.size(), file) != header.size() ||
         std::fflush(file) != 0))
        return out.cannot("written");
    out.end_ = header.size();
    std::string payload;
    while (out.end_ < bytes && read_record(file, out.end_, bytes, payload)) {
        TextRecord record;
        if (!parse(payload, out.end_ + 16, heads, record)) break;
        use(std::move(record));
        out.end_ += 16 + payload.size();
    }
    if (out.end_ < bytes) fs::resize_file(path, out.end_, code);
    if (code)
        return Error{FOVEA_IO_ERROR, "--out", printable_name(path.string(), 400) + ": " + code.message()};
    return out;
}

Result<void> HeadsJournal::append(TextRecord& record, std::span<const SparseRows> rows) {
    std::string payload;
    put(payload, record.counts);
    put(payload, uint64_t(record.sums.size()));
    put(payload, std::span<const HeadSums>(record.sums));
    put(payload, uint64_t(rows.size()));
    for (size_t n = 0; n < rows.size(); ++n) {
        put(payload, record.samples[n].first);
        record.samples[n].second = end_ + 16 + payload.size();
        put_rows(payload, rows[n]);
    }
    std::string head;
    put(head, uint64_t(payload.size())), put(head, hash_of(payload));
    const HeldInterrupts held;
    std::FILE* const file = file_.get();
    errno = 0;
    if (!seek(file, end_) || std::fwrite(head.data(), 1, head.size(), file) != head.size() ||
        std::fwrite(payload.data(), 1, payload.size(), file) != payload.size() || std::fflush(file) != 0)
        return cannot("written");
    end_ += head.size() + payload.size();
    return {};
}

Result<SparseRows> HeadsJournal::rows(uint64_t place) const {
    SparseRows out;
    std::FILE* const file = file_.get();
    errno = 0;
    const auto list = [&](auto& values) {
        uint64_t count = 0;
        if (std::fread(&count, sizeof count, 1, file) != 1 || count > end_) return false;
        values.resize(size_t(count));
        return count == 0 ||
               std::fread(values.data(), sizeof values[0], values.size(), file) == values.size();
    };
    if (!seek(file, place) || !list(out.counts) || !list(out.keys) || !list(out.values))
        return cannot("read");
    return out;
}

}  // namespace fovea::app
