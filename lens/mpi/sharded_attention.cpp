#include "mpi/agreement.hpp"
#include "mpi/chunk_call.hpp"
#include "mpi/exchange.hpp"
#include "mpi/merge_tree.hpp"

#include <chrono>
#include <climits>
#include <cstring>
#include <limits>

namespace fovea::mpi {
namespace {

// Returns why a call cannot run over shards, or why the library rejects it.
std::optional<Error> refusal(const ShardedCall& call) {
    if (auto error = refusal_of_shards(call.desc, call.chunk, call.whole)) return error;
    if (call.queries_everywhere && call.desc.len_q > call.chunk)
        return bad("queries_everywhere", "queries_everywhere needs queries of at most one chunk");
    return std::nullopt;
}

class Run {
  public:
    Run(const OwnComm& comm, Engine& engine, const ShardedCall& call, const RunOptions& options)
        : comm_(comm),
          engine_(engine),
          call_(call),
          options_(options),
          chunks_(call.desc, call.whole),
          rank_(uint32_t(comm.rank())),
          ranks_(uint32_t(comm.size())),
          queries_(call.desc.len_q, call.chunk, call.queries_everywhere ? 1 : ranks_),
          keys_(call.desc.len_kv, call.chunk, ranks_),
          has_sinks_(call.desc.flags & FOVEA_FLAG_SINKS) {}

    // Makes the checks that need no message.
    std::optional<Error> prepare() {
        const FoveaAttentionDesc& d = call_.desc;
        k_row_ = uint64_t{d.batch} * d.heads_kv * d.dim_qk * element_bytes(d.k_type);
        v_row_ = uint64_t{d.batch} * d.heads_kv * d.dim_v * element_bytes(d.v_type);
        const uint64_t partial = d.heads_q * call_.chunk * (d.dim_v + uint64_t{1}) * sizeof(float) * d.batch;
        if (std::max(call_.chunk * std::max(k_row_, v_row_), partial) > INT_MAX)
            return bad("chunk",
                       "a chunk of the batch is above 2^31 bytes, which is what MPI sends at a time");
        own_queries_ = call_.queries_everywhere ? queries_.chunks_of(0) : queries_.chunks_of(rank_);
        own_keys_ = keys_.chunks_of(rank_);
        if (!own_queries_.empty() && (!call_.q || !call_.o))
            return bad("q", "q or o is null, and this rank has rows of them; give both");
        if (!own_keys_.empty() && (!call_.k || !call_.v))
            return bad("k", "k or v is null, and this rank has rows of them; give both");
        parts_ = has_sinks_ ? std::max<uint64_t>(keys_.count(), 1) : keys_.count();
        if (!call_.queries_everywhere) {
            uint64_t most = 0, blocks = 0;
            for (uint32_t rank = 0; rank < ranks_; ++rank) {
                if (rank == rank_) continue;
                most = std::max(most, keys_.rows_of_rank(rank));
                blocks = std::max<uint64_t>(blocks, 2 * keys_.chunks_of(rank).size());
            }
            for (Exchange& exchange : exchanges_) exchange.reserve(most * (k_row_ + v_row_), blocks);
        }
        for (const uint64_t chunk : own_queries_)
            for (uint32_t b = 0; b < call_.desc.batch; ++b)
                trees_.emplace_back(d.heads_q, queries_.rows_of(chunk), d.dim_v, parts_);
        return std::nullopt;
    }

    // Own keys first, then each other rank's, whose chunks come while the pass before is computed. Ends with
    // the first error of this rank's computing in `own`; an error that is returned is MPI's.
    Result<void> prefill(std::optional<Error>& own) {
        for (uint32_t pass = 0; pass < ranks_; ++pass) {
            const uint32_t from = (rank_ + pass) % ranks_;
            Exchange& present = exchanges_[pass % 2];
            Exchange& next = exchanges_[(pass + 1) % 2];
            if (pass + 1 < ranks_)
                if (Result<void> r = start(next, pass + 1); !r) return r;
            flying_ = pass + 1 < ranks_ ? &next : nullptr;
            std::vector<uint64_t> chunks = pass == 0 ? own_keys_ : wanted_by(rank_, from);
            uint64_t own_rows = 0;
            for (size_t n = 0; n < chunks.size() && !own; ++n) {
                const auto* k = pass == 0 ? static_cast<const std::byte*>(call_.k) + own_rows * k_row_
                                          : present.block(2 * n);
                const auto* v = pass == 0 ? static_cast<const std::byte*>(call_.v) + own_rows * v_row_
                                          : present.block(2 * n + 1);
                own_rows += keys_.rows_of(chunks[n]);
                own = guarded([&] { return against_all_queries(chunks[n], k, v); });
            }
            // Chunks that are not here are those that no query of ours sees.
            if (pass > 0 && !own) own = guarded([&] { return skip_rest(from, chunks); });
            if (pass == 0 && !own && keys_.count() == 0 && parts_ > 0)
                own = guarded([&] { return against_all_queries(0, nullptr, nullptr); });
            if (pass + 1 < ranks_)
                if (Result<void> r = next.wait(); !r) return r;
            if (pass > 0 && !chunks.empty()) ++report_.passes;
        }
        return {};
    }

    // Every rank against its own keys; then all results to all ranks.
    Result<void> decode(std::optional<Error>& own) {
        const FoveaAttentionDesc& d = call_.desc;
        const uint64_t rows = d.len_q, o_count = d.heads_q * rows * d.dim_v, lse_count = d.heads_q * rows,
                       each = (o_count + lse_count) * d.batch;
        if (rows == 0) return {};
        std::vector<std::vector<uint64_t>> chunks(ranks_);
        std::vector<int> counts(ranks_), firsts(ranks_);
        uint64_t all_parts = 0;
        for (uint32_t rank = 0; rank < ranks_; ++rank) all_parts += keys_.chunks_of(rank).size();
        std::vector<float> mine, all;
        own = guarded([&]() -> std::optional<Error> {
            if (std::max<uint64_t>(all_parts, 1) * each > INT_MAX)
                return bad(
                    "chunk",
                    "the results of all chunks have more than 2^31 elements, the limit; take larger chunks");
            all.resize(std::max<uint64_t>(all_parts, 1) * each);
            return results_of_own_keys(mine);
        });
        if (Result<void> r = agree(comm_.get(), own); !r) {
            own = r.error();
            agreed_ = true;
            return {};
        }
        uint64_t first = 0;
        for (uint32_t rank = 0; rank < ranks_; ++rank) {
            chunks[rank] = keys_.chunks_of(rank);
            if (keys_.count() == 0 && rank == 0 && parts_ > 0) chunks[rank] = {0};
            firsts[rank] = int(first * each);
            counts[rank] = int(chunks[rank].size() * each);
            first += chunks[rank].size();
        }
        all.resize(first * each);
        if (auto error = mpi_error(MPI_Allgatherv(mine.data(), int(mine.size()), MPI_FLOAT, all.data(),
                                                  counts.data(), firsts.data(), MPI_FLOAT, comm_.get()),
                                   "MPI_Allgatherv"))
            return *error;
        report_.bytes_sent = mine.size() * sizeof(float) * (ranks_ - 1);
        report_.bytes_received = (all.size() - mine.size()) * sizeof(float);
        report_.bytes_held = (all.size() + mine.size()) * sizeof(float);
        for (uint32_t rank = 0; rank < ranks_; ++rank)
            for (size_t n = 0; n < chunks[rank].size(); ++n)
                for (uint32_t b = 0; b < d.batch; ++b) {
                    const float* at =
                        all.data() + uint64_t(firsts[rank]) + n * each + b * (o_count + lse_count);
                    Partial partial{{at, at + o_count}, {at + o_count, at + o_count + lse_count}};
                    if (Result<void> r = trees_[b].add(chunks[rank][n], std::move(partial)); !r) {
                        own = r.error();
                        return {};
                    }
                }
        return {};
    }

    std::optional<Error> store() {
        const FoveaAttentionDesc& d = call_.desc;
        uint64_t o_at = 0, lse_at = 0;
        for (size_t n = 0; n < own_queries_.size(); ++n)
            for (uint32_t b = 0; b < d.batch; ++b) {
                Result<Partial> whole = trees_[n * d.batch + b].finish();
                if (!whole) return whole.error();
                store_numbers(whole->o.data(), whole->o.size(), d.o_type,
                              static_cast<std::byte*>(call_.o) + o_at * element_bytes(d.o_type));
                o_at += whole->o.size();
                if (call_.lse)
                    memcpy(call_.lse + lse_at, whole->lse.data(), whole->lse.size() * sizeof(float));
                lse_at += whole->lse.size();
            }
        return std::nullopt;
    }

    bool agreed() const { return agreed_; }
    ShardReport& report() { return report_; }

  private:
    // Computes what this rank's keys give every query: o and lse for each chunk and batch entry, zeros and
    // -inf for fully masked rows.
    std::optional<Error> results_of_own_keys(std::vector<float>& results) {
        const FoveaAttentionDesc& d = call_.desc;
        const uint64_t lse_count = d.heads_q * d.len_q;
        const auto add = [&](uint64_t chunk, const std::byte* k, const std::byte* v) -> std::optional<Error> {
            for (uint32_t b = 0; b < d.batch; ++b) {
                Result<Partial> partial = one(b, 0, chunk, 0, k, v);
                if (!partial) return partial.error();
                if (partial->lse.empty()) {
                    partial->o.assign(lse_count * d.dim_v, 0.0f);
                    partial->lse.assign(lse_count, -std::numeric_limits<float>::infinity());
                }
                results.insert(results.end(), partial->o.begin(), partial->o.end());
                results.insert(results.end(), partial->lse.begin(), partial->lse.end());
            }
            return std::nullopt;
        };
        uint64_t rows = 0;
        for (const uint64_t chunk : own_keys_) {
            if (auto error = add(chunk, static_cast<const std::byte*>(call_.k) + rows * k_row_,
                                 static_cast<const std::byte*>(call_.v) + rows * v_row_))
                return error;
            rows += keys_.rows_of(chunk);
        }
        if (keys_.count() == 0 && parts_ > 0 && rank_ == 0) return add(0, nullptr, nullptr);
        return std::nullopt;
    }

    // Chunks of rank `from` that some query of rank `to` sees, in ascending order.
    std::vector<uint64_t> wanted_by(uint32_t to, uint32_t from) const {
        std::vector<uint64_t> wanted;
        for (const uint64_t key_chunk : keys_.chunks_of(from)) {
            bool seen = false;
            for (const uint64_t query_chunk : queries_.chunks_of(to))
                seen = seen || chunks_.sees(queries_, query_chunk, keys_, key_chunk);
            if (seen) wanted.push_back(key_chunk);
        }
        return wanted;
    }

    Result<void> start(Exchange& exchange, uint32_t pass) {
        const uint32_t from = (rank_ + pass) % ranks_, to = (rank_ + ranks_ - pass) % ranks_;
        std::vector<Span> sent;
        const std::vector<uint64_t> theirs = wanted_by(to, rank_);
        uint64_t rows = 0;
        size_t next = 0;
        for (const uint64_t chunk : own_keys_) {
            const uint64_t held = keys_.rows_of(chunk);
            if (next < theirs.size() && theirs[next] == chunk) {
                ++next;
                sent.push_back({static_cast<const std::byte*>(call_.k) + rows * k_row_, held * k_row_});
                sent.push_back({static_cast<const std::byte*>(call_.v) + rows * v_row_, held * v_row_});
                report_.bytes_sent += held * (k_row_ + v_row_);
            }
            rows += held;
        }
        std::vector<uint64_t> sizes;
        for (const uint64_t chunk : wanted_by(rank_, from)) {
            sizes.push_back(keys_.rows_of(chunk) * k_row_);
            sizes.push_back(keys_.rows_of(chunk) * v_row_);
            report_.bytes_received += keys_.rows_of(chunk) * (k_row_ + v_row_);
        }
        if (Result<void> r = exchange.receive(comm_.get(), int(from), sizes); !r) return r;
        return exchange.send(comm_.get(), int(to), sent);
    }

    Result<Partial> one(uint32_t b, size_t query, uint64_t key_chunk, uint64_t query_row, const std::byte* k,
                        const std::byte* v) {
        const FoveaAttentionDesc& d = call_.desc;
        const uint64_t chunk = own_queries_[query], rows = queries_.rows_of(chunk);
        const auto* q = static_cast<const std::byte*>(call_.q) +
                        query_row * d.batch * d.heads_q * d.dim_qk * element_bytes(d.q_type);
        const uint64_t held = key_chunk < keys_.count() ? keys_.rows_of(key_chunk) : 0;
        RunOptions watched = options_;
        look_at_messages();
        watched.progress = [&](double done) {
            look_at_messages();
            return !options_.progress || options_.progress((double(report_.calls) + done) / calls_to_do());
        };
        return chunks_.run(engine_, b, {queries_.first_row(chunk), rows, rows}, q,
                           {keys_.first_row(key_chunk), held, held}, k, v, has_sinks_ && key_chunk == 0,
                           watched, report_);
    }
    // Before each slice: what is not through then is under way while it runs.
    void look_at_messages() {
        if (flying_) report_.bytes_in_flight = std::max(report_.bytes_in_flight, flying_->in_flight());
    }
    double calls_to_do() const {
        const double keys = double(call_.queries_everywhere ? own_keys_.size() : keys_.count());
        return std::max(1.0, double(own_queries_.size()) * call_.desc.batch * keys);
    }

    std::optional<Error> against_all_queries(uint64_t key_chunk, const std::byte* k, const std::byte* v) {
        uint64_t query_row = 0;
        for (size_t n = 0; n < own_queries_.size(); ++n) {
            for (uint32_t b = 0; b < call_.desc.batch; ++b) {
                Result<Partial> partial = one(b, n, key_chunk, query_row, k, v);
                if (!partial) return partial.error();
                MergeTree& tree = trees_[n * call_.desc.batch + b];
                const uint64_t before = tree.bytes_waiting();
                if (Result<void> r = tree.add(key_chunk, std::move(*partial)); !r) return r.error();
                bytes_waiting_ += tree.bytes_waiting() - before;
            }
            query_row += queries_.rows_of(own_queries_[n]);
        }
        const uint64_t held = bytes_waiting_ + exchanges_[0].bytes() + exchanges_[1].bytes();
        report_.bytes_held = std::max(report_.bytes_held, held);
        return std::nullopt;
    }

    std::optional<Error> skip_rest(uint32_t from, const std::vector<uint64_t>& here) {
        size_t next = 0;
        for (const uint64_t chunk : keys_.chunks_of(from)) {
            if (next < here.size() && here[next] == chunk) {
                ++next;
                continue;
            }
            // Sinks are logits of chunk 0, seen or not.
            if (auto error = against_all_queries(chunk, nullptr, nullptr)) return error;
        }
        return std::nullopt;
    }

    const OwnComm& comm_;
    Engine& engine_;
    const ShardedCall& call_;
    const RunOptions& options_;
    ChunkCalls chunks_;
    uint32_t rank_, ranks_;
    Shards queries_, keys_;
    bool has_sinks_, agreed_ = false;
    uint64_t k_row_ = 0, v_row_ = 0, parts_ = 0;  // bytes of one row of all heads and entries
    std::vector<uint64_t> own_queries_, own_keys_;
    std::vector<MergeTree> trees_;  // by own query chunk, then batch entry
    Exchange exchanges_[2];
    Exchange* flying_ = nullptr;
    uint64_t bytes_waiting_ = 0;  // bytes of results in all trees
    ShardReport report_;
};

}  // namespace

Result<ShardReport> attention(MPI_Comm host, Engine& engine, const ShardedCall& call,
                              const RunOptions& options) {
    const auto began = std::chrono::steady_clock::now();
    const Result<OwnComm> comm = OwnComm::of(host);
    if (!comm) return comm.error();
    if (Result<void> r = agree_on(comm->get(), &call.desc, sizeof call.desc, "desc"); !r) return r.error();
    const uint64_t numbers[2] = {call.chunk, call.queries_everywhere};
    if (Result<void> r = agree_on(comm->get(), numbers, sizeof numbers, "chunk"); !r) return r.error();
    std::optional<Error> own = refusal(call);
    if (Result<void> r = agree(comm->get(), own); !r) return r.error();

    Run run(*comm, engine, call, options);
    own = guarded([&] { return run.prepare(); });
    if (Result<void> r = agree(comm->get(), own); !r) return r.error();
    const Result<void> passed = call.queries_everywhere ? run.decode(own) : run.prefill(own);
    if (!passed) return passed.error();
    if (run.agreed()) return *own;
    if (!own) own = guarded([&] { return run.store(); });
    if (Result<void> r = agree(comm->get(), own); !r) return r.error();
    run.report().seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return run.report();
}

}  // namespace fovea::mpi
