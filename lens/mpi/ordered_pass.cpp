#include "mpi/ordered_pass.hpp"

#include <algorithm>
#include <climits>

namespace fovea::mpi {

uint64_t Side::row_bytes() const {
    uint64_t bytes = 0;
    for (const Part& part : parts) bytes += part.row_bytes;
    return bytes;
}

std::optional<Error> Side::prepare(uint32_t rank, uint64_t chunk, const char* field, const char* text) {
    own = shards.chunks_of(rank);
    for (const Part& part : parts) {
        if (chunk * part.row_bytes > INT_MAX)
            return bad(
                "chunk",
                "a chunk of the batch is above 2^31 bytes, the limit of an MPI message; take smaller chunks");
        if (!own.empty() && !part.data) return bad(field, text);
    }
    return std::nullopt;
}

Pieces Side::pieces_at(uint64_t row) const {
    Pieces pieces{};
    for (size_t n = 0; n < parts.size(); ++n)
        pieces[n] = static_cast<const std::byte*>(parts[n].data) + row * parts[n].row_bytes;
    return pieces;
}

uint64_t Side::rows_before(uint64_t chunk) const {
    uint64_t rows = 0;
    for (const uint64_t mine : own)
        if (mine < chunk) rows += shards.rows_of(mine);
    return rows;
}

void OrderedPass::reserve(uint64_t chunk, const Side& a, const Side& b) {
    for (Exchange& exchange : exchanges_)
        exchange.reserve(chunk * std::max(a.row_bytes(), b.row_bytes()),
                         std::max(a.parts.size(), b.parts.size()));
}

bool OrderedPass::needed_by(uint32_t rank, uint64_t chunk, const Side& there, const Meets& meets) const {
    for (const uint64_t other : there.shards.chunks_of(rank))
        if (meets(chunk, other)) return true;
    return false;
}

Result<void> OrderedPass::start(Exchange& exchange, uint64_t chunk, const Side& sent, const Side& there,
                                const Meets& meets) {
    const auto rank = uint32_t(comm_.rank()), ranks = uint32_t(comm_.size());
    const uint32_t owner = sent.shards.owner(chunk);
    const uint64_t rows = sent.shards.rows_of(chunk);
    if (owner != rank) {
        if (!needed_by(rank, chunk, there, meets)) return {};
        std::vector<uint64_t> sizes;
        for (const Part& part : sent.parts) sizes.push_back(rows * part.row_bytes);
        report_.bytes_received += rows * sent.row_bytes();
        return exchange.receive(comm_.get(), int(owner), sizes);
    }
    const Pieces pieces = sent.pieces_at(sent.rows_before(chunk));
    std::vector<Span> spans;
    for (size_t n = 0; n < sent.parts.size(); ++n)
        spans.push_back({pieces[n], rows * sent.parts[n].row_bytes});
    for (uint32_t to = 0; to < ranks; ++to) {
        if (to == rank || !needed_by(to, chunk, there, meets)) continue;
        report_.bytes_sent += rows * sent.row_bytes();
        if (Result<void> r = exchange.send(comm_.get(), int(to), spans); !r) return r;
    }
    return {};
}

// A message is waited for where it is read, or where its memory is needed again.
Result<void> OrderedPass::run(const Side& sent, const Side& there, const Meets& meets, const Body& body,
                              std::optional<Error>& own) {
    const auto rank = uint32_t(comm_.rank());
    const uint64_t count = sent.shards.count();
    if (count > 0)
        if (Result<void> r = start(exchanges_[0], 0, sent, there, meets); !r) return r;
    for (uint64_t chunk = 0; chunk < count; ++chunk) {
        Exchange& present = exchanges_[chunk % 2];
        Exchange& next = exchanges_[(chunk + 1) % 2];
        if (chunk + 1 < count) {
            if (Result<void> r = next.wait(); !r) return r;
            if (Result<void> r = start(next, chunk + 1, sent, there, meets); !r) return r;
        }
        flying_ = &next;
        if (!needed_by(rank, chunk, there, meets)) continue;
        Pieces pieces{};
        if (sent.shards.owner(chunk) == rank) {
            pieces = sent.pieces_at(sent.rows_before(chunk));
        } else {
            if (Result<void> r = present.wait(); !r) return r;
            for (size_t n = 0; n < sent.parts.size(); ++n) pieces[n] = present.block(n);
            ++report_.passes;
        }
        uint64_t row = 0;
        for (const uint64_t mine : there.own) {
            if (!own && meets(chunk, mine)) {
                look_at_messages();
                own = guarded([&] { return body(chunk, pieces, mine, there.pieces_at(row), row); });
            }
            row += there.shards.rows_of(mine);
        }
    }
    for (Exchange& exchange : exchanges_)
        if (Result<void> r = exchange.wait(); !r) return r;
    flying_ = nullptr;
    return {};
}

void OrderedPass::look_at_messages() {
    if (flying_) report_.bytes_in_flight = std::max(report_.bytes_in_flight, flying_->in_flight());
}

}  // namespace fovea::mpi
