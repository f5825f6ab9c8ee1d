// Gradients of one call over many ranks: keys come to the queries for dq, then queries to the keys for all
// that is summed over queries. What belongs to no row of a rank, slopes and sinks, is summed over the chunks
// in ascending order on every rank.
#include "mpi/ordered_pass.hpp"

#include <algorithm>
#include <climits>
#include <cmath>
#include <string>
#include <tuple>

namespace fovea::mpi {
namespace {

constexpr uint32_t kRows = FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V;
// Gradients that are sums over queries, one chunk of keys after the other.
constexpr uint32_t kOfKeys = FOVEA_GRAD_K | FOVEA_GRAD_V | FOVEA_GRAD_BIAS | FOVEA_GRAD_ALIBI;

uint32_t gradients_of(const FoveaAttentionBackwardDesc& backward) {
    return backward.gradients ? backward.gradients : kRows;
}

std::optional<Error> refusal(const ShardedGradients& call) {
    const FoveaAttentionBackwardDesc& g = call.backward;
    FoveaAttentionDesc read = call.desc;  // sinks are read only for their own gradient
    if (!(g.gradients & FOVEA_GRAD_SINKS)) read.flags &= ~uint32_t(FOVEA_FLAG_SINKS);
    if (auto error = refusal_of_shards(read, call.chunk, call.whole)) return error;
    const std::tuple<uint32_t, bool, const char*> needs[] = {
        {FOVEA_GRAD_BIAS, call.desc.bias.present != 0, "gradients has BIAS, and the call has no bias"},
        {FOVEA_GRAD_ALIBI, (call.desc.flags & FOVEA_FLAG_ALIBI) != 0,
         "gradients has ALIBI, and the call has no slopes"},
        {FOVEA_GRAD_SINKS, (call.desc.flags & FOVEA_FLAG_SINKS) != 0,
         "gradients has SINKS, and the call has no sinks"}};
    for (const auto& [gradient, present, text] : needs)
        if ((g.gradients & gradient) && !present) return bad("gradients", text);
    if (g.gradients & ~(kRows | kOfKeys | FOVEA_GRAD_SINKS))
        return bad("gradients", "gradients has unknown bits");
    if (g.accumulate) return bad("accumulate", "gradients of a sharded call cannot be added to others");
    const std::pair<FoveaDtype, const char*> types[] = {
        {g.do_type, "do_type"}, {g.dq_type, "dq_type"}, {g.dk_type, "dk_type"}, {g.dv_type, "dv_type"}};
    for (const auto& [type, field] : types)
        if (type != FOVEA_F32 && type != FOVEA_F16 && type != FOVEA_BF16)
            return Error{FOVEA_INVALID_ARGUMENT, field,
                         std::string(field) + " must be FOVEA_F32, FOVEA_F16 or FOVEA_BF16"};
    return std::nullopt;
}

float number_at(const std::byte* data, FoveaDtype type, uint64_t n) {
    if (type == FOVEA_F32) return reinterpret_cast<const float*>(data)[n];
    const uint16_t bits = reinterpret_cast<const uint16_t*>(data)[n];
    return type == FOVEA_F16 ? foveaHalfToFloat(bits) : foveaBfloatToFloat(bits);
}

class Run {
  public:
    Run(const OwnComm& comm, Engine& engine, const ShardedGradients& call, const RunOptions& options)
        : comm_(comm),
          engine_(engine),
          call_(call),
          options_(options),
          chunks_(call.desc, call.whole),
          rank_(uint32_t(comm.rank())),
          gradients_(gradients_of(call.backward)),
          queries_{Shards(call.desc.len_q, call.chunk, uint32_t(comm.size())), {}, {}},
          keys_{Shards(call.desc.len_kv, call.chunk, uint32_t(comm.size())), {}, {}},
          pass_(comm, report_) {
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

    // Makes the checks that need no message.
    std::optional<Error> prepare() {
        if (auto error = queries_.prepare(rank_, call_.chunk, "q",
                                          "q, o, d_o, lse or dlse is null, and this rank has rows"))
            return error;
        if (auto error = keys_.prepare(rank_, call_.chunk, "k", "k or v is null, and this rank has rows"))
            return error;
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
        if (gradients_ & FOVEA_GRAD_BIAS) dbias_.assign(bias_before(UINT64_MAX), 0.0f);
        if (!dbias_.empty() && !call_.dbias) return bad("dbias", "dbias is null, and this rank has keys");
        if (gradients_ & FOVEA_GRAD_ALIBI) {
            if (!call_.dalibi) return bad("dalibi", "dalibi is null");
            dalibi_.assign(keys_.shards.count() * d.heads_q, 0.0f);
        }
        if (gradients_ & FOVEA_GRAD_SINKS) {
            if (!call_.dsinks) return bad("dsinks", "dsinks is null");
            dsinks_.assign(queries_.shards.count() * d.heads_q, 0.0f);
        }
        if (std::max(dalibi_.size(), dsinks_.size()) > INT_MAX)
            return bad("chunk", "chunks times heads are above 2^31; take larger chunks");
        pass_.reserve(call_.chunk, queries_, keys_);
        report_.bytes_held = pass_.bytes() + (dq_.size() + dk_.size() + dv_.size() + dbias_.size() +
                                              dalibi_.size() + dsinks_.size()) *
                                                 sizeof(float);
        return std::nullopt;
    }

    // Ends with the first error of this rank's computing in `own`; an error that is returned is MPI's.
    Result<void> run(std::optional<Error>& own) {
        if (gradients_ & FOVEA_GRAD_Q)
            if (Result<void> r = pass_.run(
                    keys_, queries_, [&](uint64_t key, uint64_t query) { return sees(query, key); },
                    [&](uint64_t key, const Pieces& k, uint64_t query, const Pieces& q, uint64_t row) {
                        return add(query, q, key, k, true, row);
                    },
                    own);
                !r)
                return r;
        if (gradients_ & kOfKeys)
            if (Result<void> r = pass_.run(
                    queries_, keys_, [&](uint64_t query, uint64_t key) { return sees(query, key); },
                    [&](uint64_t query, const Pieces& q, uint64_t key, const Pieces& k, uint64_t row) {
                        return add(query, q, key, k, false, row);
                    },
                    own);
                !r)
                return r;
        if (gradients_ & FOVEA_GRAD_SINKS) add_sinks();
        if (Result<void> r = share(dalibi_); !r) return r;
        return share(dsinks_);
    }

    void store() const {
        store_numbers(dq_.data(), dq_.size(), call_.backward.dq_type, call_.dq);
        store_numbers(dk_.data(), dk_.size(), call_.backward.dk_type, call_.dk);
        store_numbers(dv_.data(), dv_.size(), call_.backward.dv_type, call_.dv);
        if (!dbias_.empty()) std::copy(dbias_.begin(), dbias_.end(), call_.dbias);
        if (gradients_ & FOVEA_GRAD_ALIBI) sum_of_chunks(dalibi_, call_.dalibi);
        if (gradients_ & FOVEA_GRAD_SINKS) sum_of_chunks(dsinks_, call_.dsinks);
    }

    ShardReport& report() { return report_; }

  private:
    bool sees(uint64_t query_chunk, uint64_t key_chunk) const {
        return chunks_.sees(queries_.shards, query_chunk, keys_.shards, key_chunk);
    }

    // Returns the elements of dbias in this rank's chunks of keys before `chunk`.
    uint64_t bias_before(uint64_t chunk) const {
        uint64_t columns = 0;
        for (const uint64_t own : keys_.own)
            if (own < chunk) columns += bias_columns(call_.desc, keys_.shards, own);
        return columns * bias_extents(call_.desc).all();
    }

    // `row`: where the rows of this rank's chunk begin among its own, to whose gradients it is added.
    std::optional<Error> add(uint64_t query_chunk, const Pieces& q, uint64_t key_chunk, const Pieces& k,
                             bool to_queries, uint64_t row) {
        const FoveaAttentionDesc& d = call_.desc;
        const uint64_t query_rows = queries_.shards.rows_of(query_chunk),
                       key_rows = keys_.shards.rows_of(key_chunk);
        const auto room = [&](std::vector<float>& sums, bool wanted, uint64_t numbers) {
            return wanted && !sums.empty() ? sums.data() + row * d.batch * numbers : nullptr;
        };
        const BackwardQueries queries{{queries_.shards.first_row(query_chunk), query_rows, query_rows},
                                      q[0],
                                      q[1],
                                      q[2],
                                      reinterpret_cast<const float*>(q[3]),
                                      reinterpret_cast<const float*>(q[4]),
                                      room(dq_, to_queries, uint64_t{d.heads_q} * d.dim_qk)};
        BackwardKeys keys{{keys_.shards.first_row(key_chunk), key_rows, key_rows},
                          k[0],
                          k[1],
                          room(dk_, !to_queries, uint64_t{d.heads_kv} * d.dim_qk),
                          room(dv_, !to_queries, uint64_t{d.heads_kv} * d.dim_v)};
        if (!to_queries && !dalibi_.empty()) keys.dalibi = dalibi_.data() + key_chunk * d.heads_q;
        if (!to_queries && bias_columns(d, keys_.shards, key_chunk) && !dbias_.empty())
            keys.dbias = dbias_.data() + bias_before(key_chunk);
        RunOptions watched = options_;
        watched.progress = [&](double done) {
            pass_.look_at_messages();
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

    // dsinks_h = - sum over rows of exp(sink_h - lse) delta, which needs no keys. A row of o that is zero
    // throughout, as one that sees no key is, counts as a product of zero with its gradient.
    void add_sinks() {
        const FoveaAttentionDesc& d = call_.desc;
        const auto* sinks = static_cast<const float*>(call_.whole[FOVEA_BIND_SINKS].data);
        uint64_t row = 0;
        for (const uint64_t chunk : queries_.own) {
            const uint64_t rows = queries_.shards.rows_of(chunk);
            const Pieces pieces = queries_.pieces_at(row);
            for (uint32_t h = 0; h < d.heads_q; ++h) {
                double sum = 0;
                for (uint32_t b = 0; b < d.batch; ++b)
                    for (uint64_t n = 0;
                         n < rows && queries_.shards.first_row(chunk) + n < chunks_.rows_of_entry(b); ++n)
                        sum += term_of_sink(pieces, (uint64_t{b} * d.heads_q + h) * rows + n, sinks[h]);
                dsinks_[chunk * d.heads_q + h] = float(-sum);
            }
            row += rows;
        }
    }
    double term_of_sink(const Pieces& pieces, uint64_t row, float sink) const {
        const FoveaAttentionDesc& d = call_.desc;
        double product = 0;
        bool zero = true;
        for (uint64_t n = row * d.dim_v; n < (row + 1) * d.dim_v; ++n) {
            const float o = number_at(pieces[1], d.o_type, n);
            zero = zero && o == 0;
            product += double(o) * number_at(pieces[2], call_.backward.do_type, n);
        }
        const float lse = number_at(pieces[3], FOVEA_F32, row);
        const double delta = (zero ? 0 : product) - (pieces[4] ? number_at(pieces[4], FOVEA_F32, row) : 0);
        return std::exp(double(sink) - double(lse)) * delta;
    }

    // Each value belongs to one rank and is 0 elsewhere, so its bits are sent as integers whose sum is
    // unchanged.
    Result<void> share(std::vector<float>& of_chunks) const {
        if (of_chunks.empty()) return {};
        if (auto error = mpi_error(MPI_Allreduce(MPI_IN_PLACE, of_chunks.data(), int(of_chunks.size()),
                                                 MPI_UINT32_T, MPI_BOR, comm_.get()),
                                   "MPI_Allreduce"))
            return *error;
        return {};
    }
    void sum_of_chunks(const std::vector<float>& of_chunks, float* to) const {
        const uint32_t heads = call_.desc.heads_q;
        for (uint32_t h = 0; h < heads; ++h) {
            double sum = 0;
            for (size_t n = h; n < of_chunks.size(); n += heads) sum += of_chunks[n];
            to[h] = float(sum);
        }
    }

    const OwnComm& comm_;
    Engine& engine_;
    const ShardedGradients& call_;
    const RunOptions& options_;
    ChunkCalls chunks_;
    uint32_t rank_, gradients_;
    Side queries_, keys_;
    std::vector<float> dq_, dk_, dv_, dbias_;  // this rank's chunks, in float32 until all is added
    std::vector<float> dalibi_, dsinks_;       // [chunks][Hq]: of keys, of queries
    ShardReport report_;
    OrderedPass pass_;
};

}  // namespace

Result<ShardReport> attention_backward(MPI_Comm host, Engine& engine, const ShardedGradients& call,
                                       const RunOptions& options) {
    return run_together<Run>(
        host, engine, call, call.backward, "backward", [&] { return refusal(call); }, options);
}

}  // namespace fovea::mpi
