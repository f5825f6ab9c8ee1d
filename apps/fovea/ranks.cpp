#include "ranks.hpp"

#include "attention_options.hpp"
#include "run_report.hpp"

#ifdef FOVEA_HAS_MPI

#include <fovea/mpi.hpp>

#include <algorithm>
#include <cstring>
#include <thread>
#endif

namespace fovea::app {

#ifdef FOVEA_HAS_MPI

struct Ranks::State {
    int rank = 0, size = 1, beside = 1;
    ~State() { MPI_Finalize(); }
};

namespace {

// Few queries stay where they are, and the keys too.
constexpr uint64_t kQueriesEverywhere = 64;

// Rows [first, first + rows) of every batch entry and head, from a strided tensor into one packed [B, H,
// rows, D], or back.
struct Rows {
    std::byte* tensor;
    FoveaStrides strides;
    uint64_t batch, heads, whole_rows, dim, size;

    template <class Move>
    void each(uint64_t first, uint64_t rows, std::byte* packed, const Move& move) const {
        FoveaStrides s = strides;
        if (s.batch == 0 && s.head == 0 && s.row == 0)
            s = {int64_t(heads * whole_rows * dim), int64_t(whole_rows * dim), int64_t(dim)};
        for (uint64_t b = 0; b < batch; ++b)
            for (uint64_t h = 0; h < heads; ++h)
                for (uint64_t n = 0; n < rows; ++n, packed += dim * size) {
                    const int64_t at =
                        int64_t(b) * s.batch + int64_t(h) * s.head + int64_t(first + n) * s.row;
                    move(tensor + at * int64_t(size), packed, dim * size);
                }
    }
    uint64_t bytes(uint64_t rows) const { return batch * heads * rows * dim * size; }
};

std::vector<std::byte> take(const Rows& rows, const mpi::Shards& shards, uint32_t rank) {
    std::vector<std::byte> packed(rows.bytes(shards.rows_of_rank(rank)));
    std::byte* to = packed.data();
    for (const uint64_t chunk : shards.chunks_of(rank)) {
        rows.each(shards.first_row(chunk), shards.rows_of(chunk), to,
                  [](const std::byte* from, std::byte* into, uint64_t size) { memcpy(into, from, size); });
        to += rows.bytes(shards.rows_of(chunk));
    }
    return packed;
}

// Chunk after chunk to rank 0, which puts it where it belongs.
Result<void> give(const Rows& rows, const mpi::Shards& shards, std::vector<std::byte>& packed, int rank) {
    uint64_t at = 0;
    std::vector<std::byte> received;
    for (uint64_t chunk = 0; chunk < shards.count(); ++chunk) {
        const uint64_t size = rows.bytes(shards.rows_of(chunk));
        const int owner = int(shards.owner(chunk));
        std::byte* from = packed.data() + at;
        if (owner == rank) at += size;
        int code = MPI_SUCCESS;
        if (owner == rank && rank != 0) code = MPI_Send(from, int(size), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        if (owner != 0 && rank == 0) {
            received.resize(size);
            code =
                MPI_Recv(received.data(), int(size), MPI_BYTE, owner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            from = received.data();
        }
        if (auto error = mpi::mpi_error(code, "the gathering of outputs")) return *error;
        if (rank == 0)
            rows.each(shards.first_row(chunk), shards.rows_of(chunk), from,
                      [](std::byte* to, const std::byte* data, uint64_t n) { memcpy(to, data, n); });
    }
    return {};
}

Rows rows_of(const AttentionCall& call, FoveaBinding binding, const FoveaStrides& strides, uint32_t heads,
             uint64_t length, uint32_t dim, FoveaDtype type) {
    return {static_cast<std::byte*>(call.bindings[binding].data),
            strides,
            call.desc.batch,
            heads,
            length,
            dim,
            type == FOVEA_F32 ? 4u : 2u};
}
Rows query_rows(const AttentionCall& call, FoveaBinding binding, const FoveaStrides& strides, uint32_t dim,
                FoveaDtype type) {
    return rows_of(call, binding, strides, call.desc.heads_q, uint64_t(call.desc.len_q), dim, type);
}
Rows key_rows(const AttentionCall& call, FoveaBinding binding, const FoveaStrides& strides, uint32_t dim,
              FoveaDtype type) {
    return rows_of(call, binding, strides, call.desc.heads_kv, uint64_t(call.desc.len_kv), dim, type);
}

// The gradient of the bias, of which each rank has the columns of its keys; none where it is not asked for.
class BiasGradient {
  public:
    BiasGradient(const AttentionCall& call, const mpi::Shards& keys, uint32_t rank)
        : to_(static_cast<float*>(call.bindings[FOVEA_BIND_DBIAS].data)), keys_(keys), rank_(rank) {
        const FoveaMatrixDesc& bias = call.desc.bias;
        columns_ = bias.keys ? bias.keys : call.desc.len_kv;
        outer_ = call.bindings[FOVEA_BIND_DBIAS].size_bytes / sizeof(float) / std::max<uint64_t>(columns_, 1);
    }
    uint64_t count() const {
        uint64_t count = 0;
        for (const uint64_t chunk : keys_.chunks_of(rank_)) count += outer_ * columns_of(chunk);
        return to_ ? count : 0;
    }
    // Collective: the whole of it to every rank's buffer, each number from the rank that has it.
    Result<void> give(const std::vector<float>& own) const {
        if (!to_) return {};
        const uint64_t all = outer_ * columns_;
        std::fill_n(to_, all, 0.0f);
        auto from = own.begin();
        for (const uint64_t chunk : keys_.chunks_of(rank_))
            for (uint64_t n = 0; n < outer_; ++n, from += ptrdiff_t(columns_of(chunk)))
                std::copy_n(from, columns_of(chunk), to_ + n * columns_ + keys_.first_row(chunk));
        constexpr uint64_t kAtATime = 1 << 30;
        for (uint64_t first = 0; first < all; first += kAtATime)
            if (auto error = mpi::mpi_error(
                    MPI_Allreduce(MPI_IN_PLACE, to_ + first, int(std::min(kAtATime, all - first)),
                                  MPI_UINT32_T, MPI_BOR, MPI_COMM_WORLD),
                    "MPI_Allreduce"))
                return *error;
        return {};
    }

  private:
    uint64_t columns_of(uint64_t chunk) const {
        const uint64_t first = std::min(columns_, keys_.first_row(chunk));
        return std::min(keys_.rows_of(chunk), columns_ - first);
    }
    float* to_;
    const mpi::Shards& keys_;
    uint32_t rank_;
    uint64_t columns_ = 0, outer_ = 0;
};

RunReport report_of(const mpi::ShardReport& done, const Engine& engine, uint64_t chunk, uint32_t ranks,
                    uint64_t calls, double seconds) {
    RunReport report;
    report.backend = engine.is_vulkan() ? FOVEA_BACKEND_VULKAN : FOVEA_BACKEND_CPU;
    report.kernel = done.kernel;
    report.device = engine.device().name;
    report.reason = done.reason + "; chunks of " + std::to_string(chunk) + " rows on " +
                    std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
    report.slices = calls;
    report.seconds = seconds;
    return report;
}

}  // namespace

Result<Ranks> Ranks::start() {
    int level = 0;
    if (auto error =
            mpi::mpi_error(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init"))
        return *error;
    auto state = std::make_unique<State>();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &state->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &state->size);
    MPI_Comm beside = MPI_COMM_NULL;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &beside) == MPI_SUCCESS) {
        MPI_Comm_size(beside, &state->beside);
        MPI_Comm_free(&beside);
    }
    return Ranks(std::move(state));
}

bool Ranks::first() const { return state_->rank == 0; }
uint32_t Ranks::size() const { return uint32_t(state_->size); }

Result<void> Ranks::agree(const Result<void>& own) {
    return mpi::agree(MPI_COMM_WORLD, own ? std::nullopt : std::optional<Error>(own.error()));
}

Result<Engine> Ranks::open_engine(EngineOptions options) {
    if (options.cpu_threads == 0)
        options.cpu_threads = std::max(1u, std::thread::hardware_concurrency() / uint32_t(state_->beside));
    Result<Engine> engine = app::open_engine(options);
    if (Result<void> r = agree(engine ? Result<void>() : engine.error()); !r) return r.error();
    return engine;
}

Result<RunReport> Ranks::attention(Engine& engine, AttentionCall& call, uint64_t chunk,
                                   const RunOptions& options) {
    const FoveaAttentionDesc& d = call.desc;
    const auto rank = uint32_t(state_->rank), ranks = uint32_t(state_->size);
    mpi::ShardedCall sharded;
    sharded.desc = d;
    sharded.chunk = chunk;
    sharded.queries_everywhere = d.len_q <= std::min(chunk, kQueriesEverywhere);
    sharded.whole = call.bindings;
    const mpi::Shards queries(d.len_q, chunk, sharded.queries_everywhere ? 1 : ranks),
        keys(d.len_kv, chunk, ranks);
    const uint32_t query_rank = sharded.queries_everywhere ? 0 : rank;
    const Rows o_rows = query_rows(call, FOVEA_BIND_O, d.o_strides, d.dim_v, d.o_type),
               lse_rows = query_rows(call, FOVEA_BIND_LSE, {}, 1, FOVEA_F32);
    const bool wants_lse = d.outputs & FOVEA_OUTPUT_LSE, wants_o = !d.outputs || d.outputs & FOVEA_OUTPUT_O;
    const std::vector<std::byte> q = take(query_rows(call, FOVEA_BIND_Q, d.q_strides, d.dim_qk, d.q_type),
                                          queries, query_rank),
                                 k = take(key_rows(call, FOVEA_BIND_K, d.k_strides, d.dim_qk, d.k_type), keys,
                                          rank),
                                 v = take(key_rows(call, FOVEA_BIND_V, d.v_strides, d.dim_v, d.v_type), keys,
                                          rank);
    // Nobody looks at the whole of them any more.
    for (const FoveaBinding taken : {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V})
        call.bindings[taken] = {}, call.files[taken].reset();
    std::vector<std::byte> o(o_rows.bytes(queries.rows_of_rank(query_rank))),
        lse(lse_rows.bytes(queries.rows_of_rank(query_rank)));
    sharded.q = q.data(), sharded.k = k.data(), sharded.v = v.data();
    sharded.o = o.data();
    if (wants_lse) sharded.lse = reinterpret_cast<float*>(lse.data());
    const Result<mpi::ShardReport> done = mpi::attention(MPI_COMM_WORLD, engine, sharded, options);
    if (!done) return done.error();
    const int giver = sharded.queries_everywhere ? 0 : state_->rank;
    if (giver == state_->rank) {
        if (wants_o)
            if (Result<void> r = give(o_rows, queries, o, giver); !r) return r.error();
        if (wants_lse)
            if (Result<void> r = give(lse_rows, queries, lse, giver); !r) return r.error();
    }
    return report_of(*done, engine, chunk, ranks, done->calls, done->seconds);
}

Result<RunReport> Ranks::gradients(Engine& engine, AttentionCall& call,
                                   const FoveaAttentionBackwardDesc& backward, uint64_t chunk,
                                   const RunOptions& options) {
    const FoveaAttentionDesc& d = call.desc;
    const auto rank = uint32_t(state_->rank), ranks = uint32_t(state_->size);
    const mpi::Shards queries(d.len_q, chunk, ranks), keys(d.len_kv, chunk, ranks);
    const std::vector<std::byte>
        q = take(query_rows(call, FOVEA_BIND_Q, d.q_strides, d.dim_qk, d.q_type), queries, rank),
        k = take(key_rows(call, FOVEA_BIND_K, d.k_strides, d.dim_qk, d.k_type), keys, rank),
        v = take(key_rows(call, FOVEA_BIND_V, d.v_strides, d.dim_v, d.v_type), keys, rank),
        d_o = take(query_rows(call, FOVEA_BIND_DO, backward.do_strides, d.dim_v, backward.do_type), queries,
                   rank);
    std::vector<std::byte> dlse;
    if (backward.has_lse_gradient)
        dlse = take(query_rows(call, FOVEA_BIND_DLSE, {}, 1, FOVEA_F32), queries, rank);
    const uint64_t rows = uint64_t{d.batch} * d.heads_q * queries.rows_of_rank(rank);
    std::vector<float> o(rows * d.dim_v), lse(rows);

    mpi::ShardedCall forward;
    forward.desc = d;
    if (is_oracle(backward.kernel)) forward.desc.kernel = backward.kernel;
    forward.chunk = chunk;
    forward.whole = call.bindings;
    forward.q = q.data(), forward.k = k.data(), forward.v = v.data();
    forward.o = o.data(), forward.lse = lse.data();
    const Result<mpi::ShardReport> made = mpi::attention(MPI_COMM_WORLD, engine, forward);
    if (!made) return made.error();

    const Rows dq_rows = query_rows(call, FOVEA_BIND_DQ, backward.dq_strides, d.dim_qk, backward.dq_type),
               dk_rows = key_rows(call, FOVEA_BIND_DK, backward.dk_strides, d.dim_qk, backward.dk_type),
               dv_rows = key_rows(call, FOVEA_BIND_DV, backward.dv_strides, d.dim_v, backward.dv_type);
    std::vector<std::byte> dq(dq_rows.bytes(queries.rows_of_rank(rank))),
        dk(dk_rows.bytes(keys.rows_of_rank(rank))), dv(dv_rows.bytes(keys.rows_of_rank(rank)));
    mpi::ShardedGradients sharded;
    sharded.desc = d;
    sharded.backward = backward;
    sharded.chunk = chunk;
    sharded.whole = call.bindings;
    sharded.q = q.data(), sharded.k = k.data(), sharded.v = v.data();
    sharded.o = o.data(), sharded.d_o = d_o.data();
    sharded.lse = lse.data(), sharded.dlse = reinterpret_cast<const float*>(dlse.data());
    sharded.dq = dq.data(), sharded.dk = dk.data(), sharded.dv = dv.data();
    const BiasGradient bias(call, keys, rank);
    std::vector<float> dbias(bias.count());
    sharded.dbias = dbias.data();
    sharded.dalibi = static_cast<float*>(call.bindings[FOVEA_BIND_DALIBI].data);
    sharded.dsinks = static_cast<float*>(call.bindings[FOVEA_BIND_DSINKS].data);
    const Result<mpi::ShardReport> done = mpi::attention_backward(MPI_COMM_WORLD, engine, sharded, options);
    if (!done) return done.error();
    if (Result<void> r = give(dq_rows, queries, dq, state_->rank); !r) return r.error();
    if (Result<void> r = give(dk_rows, keys, dk, state_->rank); !r) return r.error();
    if (Result<void> r = give(dv_rows, keys, dv, state_->rank); !r) return r.error();
    if (Result<void> r = bias.give(dbias); !r) return r.error();
    return report_of(*done, engine, chunk, ranks, made->calls + done->calls, made->seconds + done->seconds);
}

Result<RunReport> Ranks::map_tile(Engine& engine, AttentionCall& call, const FoveaMapTileDesc& tile,
                                  uint64_t chunk, const RunOptions& options) {
    const FoveaAttentionDesc& d = call.desc;
    const auto rank = uint32_t(state_->rank), ranks = uint32_t(state_->size);
    const mpi::Shards queries(d.len_q, chunk, ranks), keys(d.len_kv, chunk, ranks);
    const std::vector<std::byte> q = take(query_rows(call, FOVEA_BIND_Q, d.q_strides, d.dim_qk, d.q_type),
                                          queries, rank),
                                 k = take(key_rows(call, FOVEA_BIND_K, d.k_strides, d.dim_qk, d.k_type), keys,
                                          rank);
    std::vector<std::byte> lse;
    double seconds = 0;
    uint64_t calls = 0;
    if (call.bindings[FOVEA_BIND_LSE].data) {
        lse = take(query_rows(call, FOVEA_BIND_LSE, {}, 1, FOVEA_F32), queries, rank);
    } else {
        const std::vector<std::byte> v =
            take(key_rows(call, FOVEA_BIND_V, d.v_strides, d.dim_v, d.v_type), keys, rank);
        const uint64_t rows = uint64_t{d.batch} * d.heads_q * queries.rows_of_rank(rank);
        std::vector<float> o(rows * d.dim_v);
        lse.resize(rows * sizeof(float));
        mpi::ShardedCall forward;
        forward.desc = d;
        forward.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
        forward.desc.o_type = FOVEA_F32;
        forward.chunk = chunk;
        forward.whole = call.bindings;
        forward.q = q.data(), forward.k = k.data(), forward.v = v.data();
        forward.o = o.data(), forward.lse = reinterpret_cast<float*>(lse.data());
        const Result<mpi::ShardReport> made = mpi::attention(MPI_COMM_WORLD, engine, forward);
        if (!made) return made.error();
        seconds = made->seconds, calls = made->calls;
    }
    mpi::ShardedMapTile sharded;
    sharded.desc = d;
    sharded.tile = tile;
    sharded.chunk = chunk;
    sharded.whole = call.bindings;
    sharded.q = q.data(), sharded.k = k.data();
    sharded.lse = reinterpret_cast<const float*>(lse.data());
    sharded.mass = static_cast<uint64_t*>(call.bindings[FOVEA_BIND_TILE_MASS].data);
    sharded.max = static_cast<float*>(call.bindings[FOVEA_BIND_TILE_MAX].data);
    const Result<mpi::ShardReport> done = mpi::map_tile(MPI_COMM_WORLD, engine, sharded, options);
    if (!done) return done.error();
    return report_of(*done, engine, chunk, ranks, calls + done->calls, seconds + done->seconds);
}

#else

struct Ranks::State {};
Result<Ranks> Ranks::start() {
    return Error{
        FOVEA_UNSUPPORTED, "--shards",
        "--shards needs MPI, which this build is without; install it (Debian: libopenmpi-dev openmpi-bin) "
        "and build with -D FOVEA_MPI=ON"};
}
bool Ranks::first() const { return true; }
uint32_t Ranks::size() const { return 1; }
Result<void> Ranks::agree(const Result<void>& own) { return own; }
Result<Engine> Ranks::open_engine(EngineOptions options) { return app::open_engine(options); }
Result<RunReport> Ranks::attention(Engine& engine, AttentionCall& call, uint64_t, const RunOptions& options) {
    return engine.attention(call.desc, call.bindings, options);
}
Result<RunReport> Ranks::gradients(Engine& engine, AttentionCall& call,
                                   const FoveaAttentionBackwardDesc& backward, uint64_t,
                                   const RunOptions& options) {
    return engine.run_on_host(plan_attention_backward(engine.properties(), call.desc, backward),
                              call.bindings, options);
}
Result<RunReport> Ranks::map_tile(Engine& engine, AttentionCall& call, const FoveaMapTileDesc& tile, uint64_t,
                                  const RunOptions& options) {
    return engine.run_on_host(plan_map_tile(engine.properties(), call.desc, tile), call.bindings, options);
}

#endif

Ranks::Ranks(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ranks::Ranks(Ranks&&) noexcept = default;
Ranks::~Ranks() = default;

Result<int> on_every_rank(const Arguments& a, Result<int> (*run)(Ranks&, const Arguments&)) {
    Result<Ranks> ranks = Ranks::start();
    if (!ranks) return ranks.error();
    const Result<int> code = run(*ranks, a);
    // A launcher ends the job at the first code that is not 0, perhaps before the first rank has spoken.
    return ranks->first() ? code : Result<int>(0);
}

}  // namespace fovea::app
