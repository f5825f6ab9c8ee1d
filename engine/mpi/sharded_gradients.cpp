// Gradients of one call over many ranks. Every chunk comes to the ranks that need it in the order of its
// number, and what it gives is added at once: each sum has one order, whoever holds its terms.
#include "mpi/agreement.hpp"
#include "mpi/chunk_call.hpp"
#include "mpi/exchange.hpp"

#include <chrono>
#include <climits>
#include <string>

namespace fovea::mpi {
namespace {

constexpr uint32_t kShared = FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V;

uint32_t gradients_of(const FoveaAttentionBackwardDesc& backward) {
    return backward.gradients ? backward.gradients : kShared;
}

std::optional<Error> refusal(const ShardedGradients& call) {
    FoveaAttentionDesc without_sinks = call.desc;
    without_sinks.flags &= ~uint32_t(FOVEA_FLAG_SINKS);
    if (auto error = refusal_of_shards(without_sinks, call.chunk, call.whole)) return error;
    const FoveaAttentionBackwardDesc& g = call.backward;
    if (g.gradients & ~kShared) return bad("gradients", "gradients of a sharded call are Q, K and V");
    if (g.accumulate) return bad("accumulate", "gradients of a sharded call cannot be added to others");
    const std::pair<FoveaDtype, const char*> types[] = {
        {g.do_type, "do_type"}, {g.dq_type, "dq_type"}, {g.dk_type, "dk_type"}, {g.dv_type, "dv_type"}};
    for (const auto& [type, field] : types)
        if (type != FOVEA_F32 && type != FOVEA_F16 && type != FOVEA_BF16)
            return Error{FOVEA_INVALID_ARGUMENT, field,
                         std::string(field) + " must be FOVEA_F32, FOVEA_F16 or FOVEA_BF16"};
    return std::nullopt;
}

// A tensor that lies beside others in a rank's chunks.
struct Part {
    const void* data;
    uint64_t row_bytes;  // of one row of all heads and entries
};

class Run {
  public:
    Run(const OwnComm& comm, Engine& engine, const ShardedGradients& call, const RunOptions& options)
        : comm_(comm),
          engine_(engine),
          call_(call),
          options_(options),
          chunks_(call.desc, call.whole),
          rank_(uint32_t(comm.rank())),
          ranks_(uint32_t(comm.size())),
          gradients_(gradients_of(call.backward)),
          queries_{Shards(call.desc.len_q, call.chunk, ranks_), {}, {}},
          keys_{Shards(call.desc.len_kv, call.chunk, ranks_), {}, {}} {
        const FoveaAttentionDesc& d = call.desc;
        const auto row = [&](uint32_t heads, uint32_t dim, FoveaDtype type) {
            return uint64_t{d.batch} * heads * dim * element_bytes(type);
        };
        queries_.parts = {{call.q, row(d.heads_q, d.dim_qk, d.q_type)},
                          {call.o, row(d.heads_q, d.dim_v, d.o_type)},
                          {call.d_o, row(d.heads_q, d.dim_v, call.backward.do_type)},
                          {call.lse, row(d.heads_q, 1, FOVEA_F32)}};
        if (call.backward.has_lse_gradient)
            queries_.parts.push_back({call.dlse, row(d.heads_q, 1, FOVEA_F32)});
        keys_.parts = {{call.k, row(d.heads_kv, d.dim_qk, d.k_type)},
                       {call.v, row(d.heads_kv, d.dim_v, d.v_type)}};
    }

    // What can be refused before a message is sent.
    std::optional<Error> prepare() {
        if (auto error = prepare(queries_, "q", "q, o, d_o, lse or dlse is null, and this rank has rows"))
            return error;
        if (auto error = prepare(keys_, "k", "k or v is null, and this rank has rows")) return error;
        const FoveaAttentionDesc& d = call_.desc;
        const auto room = [&](uint32_t gradient, const Side& side, const void* to, uint64_t numbers,
                              std::vector<float>& sums) {
            if (!(gradients_ & gradient)) return true;
            sums.assign(side.shards.rows_of_rank(rank_) * d.batch * numbers, 0.0f);
            return sums.empty() || to != nullptr;
        };
        if (!room(FOVEA_GRAD_Q, queries_, call_.dq, uint64_t{d.heads_q} * d.dim_qk, dq_))
            return bad("dq", "dq is null, and this rank has rows");
        if (!room(FOVEA_GRAD_K, keys_, call_.dk, uint64_t{d.heads_kv} * d.dim_qk, dk_))
            return bad("dk", "dk is null, and this rank has rows");
        if (!room(FOVEA_GRAD_V, keys_, call_.dv, uint64_t{d.heads_kv} * d.dim_v, dv_))
            return bad("dv", "dv is null, and this rank has rows");
        for (Exchange& exchange : exchanges_)
            exchange.reserve(call_.chunk * std::max(row_bytes(queries_), row_bytes(keys_)),
                             std::max(queries_.parts.size(), keys_.parts.size()));
        report_.bytes_held = exchanges_[0].bytes() + exchanges_[1].bytes() +
                             (dq_.size() + dk_.size() + dv_.size()) * sizeof(float);
        return std::nullopt;
    }

    // Ends with the first error of this rank's computing in `own`; an error that is returned is MPI's.
    Result<void> run(std::optional<Error>& own) {
        if (gradients_ & FOVEA_GRAD_Q)
            if (Result<void> r = pass(keys_, queries_, own); !r) return r;
        if (gradients_ & (FOVEA_GRAD_K | FOVEA_GRAD_V))
            if (Result<void> r = pass(queries_, keys_, own); !r) return r;
        return {};
    }

    void store() const {
        store_numbers(dq_.data(), dq_.size(), call_.backward.dq_type, call_.dq);
        store_numbers(dk_.data(), dk_.size(), call_.backward.dk_type, call_.dk);
        store_numbers(dv_.data(), dv_.size(), call_.backward.dv_type, call_.dv);
    }

    ShardReport& report() { return report_; }

  private:
    struct Side {
        Shards shards;
        std::vector<Part> parts;
        std::vector<uint64_t> own;  // chunks of this rank
    };
    // The tensors of one chunk of a side.
    using Pieces = std::array<const std::byte*, 5>;

    static uint64_t row_bytes(const Side& side) {
        uint64_t bytes = 0;
        for (const Part& part : side.parts) bytes += part.row_bytes;
        return bytes;
    }

    std::optional<Error> prepare(Side& side, const char* field, const char* text) const {
        side.own = side.shards.chunks_of(rank_);
        for (const Part& part : side.parts) {
            if (call_.chunk * part.row_bytes > INT_MAX)
                return bad("chunk",
                           "a chunk of the batch is above 2^31 bytes, which is what MPI sends at a time");
            if (!side.own.empty() && !part.data) return bad(field, text);
        }
        return std::nullopt;
    }

    // Chunk `n` of this rank's, whose rows begin at row `at` of the rank's tensors.
    static Pieces own_pieces(const Side& side, uint64_t at) {
        Pieces pieces{};
        for (size_t n = 0; n < side.parts.size(); ++n)
            pieces[n] = static_cast<const std::byte*>(side.parts[n].data) + at * side.parts[n].row_bytes;
        return pieces;
    }
    uint64_t rows_before(const Side& side, uint64_t chunk) const {
        uint64_t rows = 0;
        for (const uint64_t own : side.own)
            if (own < chunk) rows += side.shards.rows_of(own);
        return rows;
    }

    bool sees(uint64_t query_chunk, uint64_t key_chunk) const {
        return chunks_.sees(queries_.shards, query_chunk, keys_.shards, key_chunk);
    }
    // Does chunk `chunk` of `sent` meet something of rank `rank` on the other side?
    bool needs(uint32_t rank, const Side& sent, uint64_t chunk, const Side& there) const {
        for (const uint64_t other : there.shards.chunks_of(rank))
            if (&sent == &keys_ ? sees(other, chunk) : sees(chunk, other)) return true;
        return false;
    }

    Result<void> start(Exchange& exchange, const Side& sent, uint64_t chunk, const Side& there) {
        const uint32_t owner = sent.shards.owner(chunk);
        const uint64_t rows = sent.shards.rows_of(chunk);
        if (owner != rank_) {
            if (!needs(rank_, sent, chunk, there)) return {};
            std::vector<uint64_t> sizes;
            for (const Part& part : sent.parts) sizes.push_back(rows * part.row_bytes);
            report_.bytes_received += rows * row_bytes(sent);
            return exchange.receive(comm_.get(), int(owner), sizes);
        }
        const Pieces pieces = own_pieces(sent, rows_before(sent, chunk));
        std::vector<Span> spans;
        for (size_t n = 0; n < sent.parts.size(); ++n)
            spans.push_back({pieces[n], rows * sent.parts[n].row_bytes});
        for (uint32_t rank = 0; rank < ranks_; ++rank) {
            if (rank == rank_ || !needs(rank, sent, chunk, there)) continue;
            report_.bytes_sent += rows * row_bytes(sent);
            if (Result<void> r = exchange.send(comm_.get(), int(rank), spans); !r) return r;
        }
        return {};
    }

    // Each chunk of `sent` in turn to the chunks of `there` that this rank holds, the next one under way
    // meanwhile. A message is waited for where it is read, or where its memory is needed again.
    Result<void> pass(const Side& sent, const Side& there, std::optional<Error>& own) {
        const uint64_t count = sent.shards.count();
        if (count > 0)
            if (Result<void> r = start(exchanges_[0], sent, 0, there); !r) return r;
        for (uint64_t chunk = 0; chunk < count; ++chunk) {
            Exchange& present = exchanges_[chunk % 2];
            Exchange& next = exchanges_[(chunk + 1) % 2];
            if (chunk + 1 < count) {
                if (Result<void> r = next.wait(); !r) return r;
                if (Result<void> r = start(next, sent, chunk + 1, there); !r) return r;
            }
            flying_ = &next;
            if (!needs(rank_, sent, chunk, there)) continue;
            Pieces pieces{};
            if (sent.shards.owner(chunk) == rank_) {
                pieces = own_pieces(sent, rows_before(sent, chunk));
            } else {
                if (Result<void> r = present.wait(); !r) return r;
                for (size_t n = 0; n < sent.parts.size(); ++n) pieces[n] = present.block(n);
                ++report_.passes;
            }
            if (!own) own = guarded([&] { return against_all(sent, chunk, pieces, there); });
        }
        for (Exchange& exchange : exchanges_)
            if (Result<void> r = exchange.wait(); !r) return r;
        flying_ = nullptr;
        return {};
    }

    std::optional<Error> against_all(const Side& sent, uint64_t chunk, const Pieces& pieces,
                                     const Side& there) {
        const bool keys_sent = &sent == &keys_;
        uint64_t at = 0;
        for (const uint64_t own : there.own) {
            const Pieces ours = own_pieces(there, at);
            const uint64_t query_chunk = keys_sent ? own : chunk, key_chunk = keys_sent ? chunk : own;
            const uint64_t rows = there.shards.rows_of(own);
            if (sees(query_chunk, key_chunk))
                if (auto error = add(query_chunk, keys_sent ? ours : pieces, key_chunk,
                                     keys_sent ? pieces : ours, keys_sent, at))
                    return error;
            at += rows;
        }
        return std::nullopt;
    }

    // `at`: where the rows of this rank's chunk begin among its own, to whose gradients it is added.
    std::optional<Error> add(uint64_t query_chunk, const Pieces& q, uint64_t key_chunk, const Pieces& k,
                             bool to_queries, uint64_t at) {
        const FoveaAttentionDesc& d = call_.desc;
        const uint64_t query_rows = queries_.shards.rows_of(query_chunk),
                       key_rows = keys_.shards.rows_of(key_chunk);
        const auto room = [&](std::vector<float>& sums, bool wanted, uint64_t numbers) {
            return wanted && !sums.empty() ? sums.data() + at * d.batch * numbers : nullptr;
        };
        const BackwardQueries queries{{queries_.shards.first_row(query_chunk), query_rows, query_rows},
                                      q[0],
                                      q[1],
                                      q[2],
                                      reinterpret_cast<const float*>(q[3]),
                                      reinterpret_cast<const float*>(q[4]),
                                      room(dq_, to_queries, uint64_t{d.heads_q} * d.dim_qk)};
        const BackwardKeys keys{{keys_.shards.first_row(key_chunk), key_rows, key_rows},
                                k[0],
                                k[1],
                                room(dk_, !to_queries, uint64_t{d.heads_kv} * d.dim_qk),
                                room(dv_, !to_queries, uint64_t{d.heads_kv} * d.dim_v)};
        RunOptions watched = options_;
        watched.progress = [&](double done) {
            if (flying_) report_.bytes_in_flight = std::max(report_.bytes_in_flight, flying_->in_flight());
            return !options_.progress || options_.progress((double(report_.calls) + done) / calls_to_do());
        };
        for (uint32_t b = 0; b < d.batch; ++b)
            if (auto error =
                    chunks_.run_backward(engine_, b, queries, keys, call_.backward, watched, report_))
                return error;
        return std::nullopt;
    }
    double calls_to_do() const {
        const double pairs = double(queries_.own.size()) * double(keys_.shards.count()) +
                             double(keys_.own.size()) * double(queries_.shards.count());
        return std::max(1.0, pairs * call_.desc.batch);
    }

    const OwnComm& comm_;
    Engine& engine_;
    const ShardedGradients& call_;
    const RunOptions& options_;
    ChunkCalls chunks_;
    uint32_t rank_, ranks_, gradients_;
    Side queries_, keys_;
    std::vector<float> dq_, dk_, dv_;  // of this rank's chunks, in float32 until all is added
    Exchange exchanges_[2];
    Exchange* flying_ = nullptr;
    ShardReport report_;
};

}  // namespace

Result<ShardReport> attention_backward(MPI_Comm host, Engine& engine, const ShardedGradients& call,
                                       const RunOptions& options) {
    const auto began = std::chrono::steady_clock::now();
    const Result<OwnComm> comm = OwnComm::of(host);
    if (!comm) return comm.error();
    if (Result<void> r = agree_on(comm->get(), &call.desc, sizeof call.desc, "desc"); !r) return r.error();
    if (Result<void> r = agree_on(comm->get(), &call.backward, sizeof call.backward, "backward"); !r)
        return r.error();
    if (Result<void> r = agree_on(comm->get(), &call.chunk, sizeof call.chunk, "chunk"); !r) return r.error();
    std::optional<Error> own = refusal(call);
    if (Result<void> r = agree(comm->get(), own); !r) return r.error();

    Run run(*comm, engine, call, options);
    own = guarded([&] { return run.prepare(); });
    if (Result<void> r = agree(comm->get(), own); !r) return r.error();
    if (Result<void> r = run.run(own); !r) return r.error();
    if (Result<void> r = agree(comm->get(), own); !r) return r.error();
    run.store();
    run.report().seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return run.report();
}

}  // namespace fovea::mpi
