// A sharded call, its gradients and tiles of its map have the same bits on 1, 2, 3 and 4 ranks, and are what
// one call over all keys gives within the rule for partial sums. Run by mpirun with 4 processes: each count
// is a communicator of the first ranks.
//
//   mpirun -n 4 fovea_test_mpi [SEED | --seeds COUNT]     COUNT: 80
//   mpirun -n 3 build/default/drivers/lavapipe26 fovea_test_mpi --mixed [SEED]
//
// --mixed: every second rank computes on a Vulkan device. --killed: the last rank kills itself, see
// attend_shards.py.
#include "mpi/merge_tree.hpp"
#include "mpi/shared_sizes.hpp"
#include "support/cpu_device.hpp"
#include "support/random.hpp"

#include <fovea/mpi.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <string_view>

namespace fovea::test {
namespace {

int g_failures = 0, g_rank = 0;

void fail(const std::string& text) {
    ++g_failures;
    printf("rank %d: %s\n", g_rank, text.c_str());
}

// A call with all its tensors, the same on every rank.
struct Whole {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    uint64_t chunk = 0;
    std::vector<float> q, k, v, bias, slopes, sinks;
    std::vector<uint16_t> k_half;
    std::vector<uint8_t> mask;
    std::vector<FoveaSequence> table;

    FoveaHostBuffer bind(FoveaBinding binding) const {
        const auto of = [](const auto& values) {
            return FoveaHostBuffer{const_cast<void*>(static_cast<const void*>(values.data())),
                                   values.size() * sizeof values[0]};
        };
        switch (binding) {
            case FOVEA_BIND_Q:
                return of(q);
            case FOVEA_BIND_K:
                return desc.k_type == FOVEA_F16 ? of(k_half) : of(k);
            case FOVEA_BIND_V:
                return of(v);
            case FOVEA_BIND_MASK:
                return of(mask);
            case FOVEA_BIND_BIAS:
                return of(bias);
            case FOVEA_BIND_ALIBI:
                return of(slopes);
            case FOVEA_BIND_SINKS:
                return of(sinks);
            case FOVEA_BIND_SEQUENCES:
                return of(table);
            default:
                return {};
        }
    }
};

std::vector<float> numbers(Random& random, uint64_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = bell(random.next());
    return values;
}

Whole draw(uint64_t seed) {
    Random random(seed);
    Whole w;
    FoveaAttentionDesc& d = w.desc;
    d.batch = 1 + uint32_t(random.below(2));
    d.heads_kv = 1 + uint32_t(random.below(2));
    d.heads_q = d.heads_kv * (1 + uint32_t(random.below(2)));
    d.dim_qk = 1 + uint32_t(random.below(20)), d.dim_v = 1 + uint32_t(random.below(20));
    d.len_q = random.chance(0.1) ? 0 : 1 + random.below(random.chance(0.3) ? 5 : 70);
    d.len_kv = random.chance(0.1) ? 0 : 1 + random.below(90);
    d.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    w.chunk = 1 + random.below(random.chance(0.2) ? 100 : 20);
    w.q = numbers(random, d.batch * d.heads_q * d.len_q * d.dim_qk);
    w.k = numbers(random, d.batch * d.heads_kv * d.len_kv * d.dim_qk);
    w.v = numbers(random, d.batch * d.heads_kv * d.len_kv * d.dim_v);
    if (random.chance(0.3)) {
        d.k_type = FOVEA_F16;
        for (const float value : w.k) w.k_half.push_back(foveaFloatToHalf(value));
    }
    if (random.chance(0.5)) d.flags |= FOVEA_FLAG_CAUSAL;
    d.align = FoveaAlign((random.below(3) + 2) % 3 + 1);  // from FOVEA_ALIGN_TOP_LEFT on
    if (d.align == FOVEA_ALIGN_OFFSET) d.q_offset = int64_t(random.below(40)) - 10;
    if (random.chance(0.3)) {
        d.flags |= FOVEA_FLAG_WINDOW;
        d.window_left = int64_t(random.below(30)) - 1;
        d.window_right = int64_t(random.below(10)) - 1;
    }
    if (random.chance(0.3)) d.softcap = 3;
    if (random.chance(0.3)) d.flags |= FOVEA_FLAG_ALIBI, w.slopes = numbers(random, d.heads_q);
    if (random.chance(0.3)) d.flags |= FOVEA_FLAG_SINKS, w.sinks = numbers(random, d.heads_q);
    if (random.chance(0.3)) {
        d.dropout_p = 0.3f, d.dropout_seed = seed, d.dropout_offset = 7;
        w.chunk = (w.chunk + 3) / 4 * 4;
    }
    const auto matrix = [&](FoveaMatrixDesc& m, FoveaDtype type) {
        m.present = 1, m.type = type;
        m.batch = random.chance(0.5) ? d.batch : 1, m.heads = random.chance(0.5) ? d.heads_q : 1;
        m.rows = random.chance(0.7) ? d.len_q : 1;
        m.keys = random.chance(0.7) ? d.len_kv : 1 + random.below(d.len_kv);
        return m.batch * m.heads * m.rows * m.keys;
    };
    if (d.len_q && d.len_kv && random.chance(0.3)) {
        w.mask.resize((matrix(d.mask, FOVEA_U8) + 3) / 4 * 4);
        for (uint8_t& byte : w.mask) byte = random.chance(0.7);
    }
    if (d.len_q && d.len_kv && random.chance(0.3)) w.bias = numbers(random, matrix(d.bias, FOVEA_F32));
    if (random.chance(0.3)) {
        d.flags |= FOVEA_FLAG_VARLEN;
        for (uint32_t b = 0; b < d.batch; ++b)
            w.table.push_back(
                {0, int32_t(random.below(d.len_q + 1)), 0, int32_t(random.below(d.len_kv + 1))});
    }
    return w;
}

struct Outputs {
    std::vector<float> o, lse;
};

std::string in_words(const Error& error) { return error.field + ": " + error.text; }

// The float64 loops over all keys.
Outputs exact(const Whole& w) {
    FoveaAttentionDesc d = w.desc;
    d.kernel = FOVEA_KERNEL_REFERENCE;
    Outputs out{std::vector<float>(d.batch * d.heads_q * d.len_q * d.dim_v),
                std::vector<float>(d.batch * d.heads_q * d.len_q)};
    const FoveaDeviceProperties properties = cpu_device(1);
    const Result<Plan> plan = plan_attention(properties, d);
    if (!plan) return fail(in_words(plan.error())), out;
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t n = 0; n < FOVEA_BIND_COUNT; ++n) bindings[n] = w.bind(FoveaBinding(n));
    bindings[FOVEA_BIND_O] = {out.o.data(), out.o.size() * 4};
    bindings[FOVEA_BIND_LSE] = {out.lse.data(), out.lse.size() * 4};
    Workspace workspace;
    if (Result<void> r = run_on_host(*plan, bindings, workspace); !r) fail(in_words(r.error()));
    return out;
}

// A rank's chunks of a packed tensor [B, H, L, D], each [B, H, rows, D].
template <class T>
std::vector<T> cut(const std::vector<T>& whole, uint64_t outer, uint64_t length, uint64_t dim,
                   const mpi::Shards& shards, uint32_t rank) {
    std::vector<T> part;
    for (const uint64_t chunk : shards.chunks_of(rank))
        for (uint64_t n = 0; n < outer; ++n) {
            const auto first = whole.begin() + ptrdiff_t((n * length + shards.first_row(chunk)) * dim);
            part.insert(part.end(), first, first + ptrdiff_t(shards.rows_of(chunk) * dim));
        }
    return part;
}

void put_back(const std::vector<float>& part, std::vector<float>& whole, uint64_t outer, uint64_t length,
              uint64_t dim, const mpi::Shards& shards, uint32_t rank) {
    auto from = part.begin();
    for (const uint64_t chunk : shards.chunks_of(rank))
        for (uint64_t n = 0; n < outer; ++n) {
            const auto count = ptrdiff_t(shards.rows_of(chunk) * dim);
            std::copy(from, from + count,
                      whole.begin() + ptrdiff_t((n * length + shards.first_row(chunk)) * dim));
            from += count;
        }
}

// On rank 0 the whole outputs, elsewhere this rank's chunks and zeros.
Result<Outputs> sharded(MPI_Comm comm, Engine& engine, const Whole& w, bool everywhere) {
    const FoveaAttentionDesc& d = w.desc;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const mpi::Shards queries(d.len_q, w.chunk, everywhere ? 1 : uint32_t(ranks)),
        keys(d.len_kv, w.chunk, uint32_t(ranks));
    const uint32_t at = everywhere ? 0 : uint32_t(rank), key_rank = uint32_t(rank);
    const uint64_t q_outer = d.batch * d.heads_q, kv_outer = d.batch * d.heads_kv;
    const auto q = cut(w.q, q_outer, d.len_q, d.dim_qk, queries, at);
    const auto k = cut(w.k, kv_outer, d.len_kv, d.dim_qk, keys, key_rank);
    const auto v = cut(w.v, kv_outer, d.len_kv, d.dim_v, keys, key_rank);
    std::vector<uint16_t> k_half;
    if (d.k_type == FOVEA_F16) k_half = cut(w.k_half, kv_outer, d.len_kv, d.dim_qk, keys, key_rank);
    std::vector<float> o(queries.rows_of_rank(at) * q_outer * d.dim_v, NAN),
        lse(queries.rows_of_rank(at) * q_outer, NAN);
    FoveaHostBuffer shared[FOVEA_BIND_COUNT] = {};
    for (const FoveaBinding binding :
         {FOVEA_BIND_MASK, FOVEA_BIND_BIAS, FOVEA_BIND_ALIBI, FOVEA_BIND_SINKS, FOVEA_BIND_SEQUENCES})
        shared[binding] = w.bind(binding);
    mpi::ShardedCall call;
    call.desc = d;
    call.chunk = w.chunk;
    call.q = q.data(), call.v = v.data();
    call.k = d.k_type == FOVEA_F16 ? static_cast<const void*>(k_half.data()) : k.data();
    call.o = o.data(), call.lse = lse.data();
    call.queries_everywhere = everywhere;
    call.whole = shared;
    const Result<mpi::ShardReport> report = mpi::attention(comm, engine, call);
    if (!report) return report.error();
    Outputs whole{std::vector<float>(q_outer * d.len_q * d.dim_v), std::vector<float>(q_outer * d.len_q)};
    put_back(o, whole.o, q_outer, d.len_q, d.dim_v, queries, at);
    put_back(lse, whole.lse, q_outer, d.len_q, 1, queries, at);
    if (everywhere) return whole;
    Outputs sum{std::vector<float>(whole.o.size()), std::vector<float>(whole.lse.size())};
    // Each row is some rank's and 0 elsewhere, so that bits travel as whole numbers and add up to themselves.
    MPI_Allreduce(whole.o.data(), sum.o.data(), int(sum.o.size()), MPI_UINT32_T, MPI_BOR, comm);
    MPI_Allreduce(whole.lse.data(), sum.lse.data(), int(sum.lse.size()), MPI_UINT32_T, MPI_BOR, comm);
    return sum;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_near(const Outputs& got, const Outputs& exact, const Whole& w) {
    for (size_t row = 0; row < exact.lse.size(); ++row) {
        const float lse = exact.lse[row];
        if (std::isinf(lse) ? got.lse[row] != lse
                            : !(std::fabs(got.lse[row] - lse) <= 2e-5f * (1 + std::fabs(lse))))
            return fail("lse of row " + std::to_string(row) + " is " + std::to_string(got.lse[row]) +
                        ", expected " + std::to_string(lse));
        for (size_t c = 0; c < w.desc.dim_v; ++c) {
            const size_t n = row * w.desc.dim_v + c;
            if (!(std::fabs(got.o[n] - exact.o[n]) <= 5e-5f * (1 + std::fabs(exact.o[n]))))
                return fail("o " + std::to_string(n) + " is " + std::to_string(got.o[n]) + ", expected " +
                            std::to_string(exact.o[n]));
        }
    }
}

MPI_Comm first_ranks(int count) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, g_rank < count ? 0 : MPI_UNDEFINED, g_rank, &comm);
    return comm;
}

// Ranks with devices of different kinds: numbers within the rule, not the same bits.
void near_on_ranks_of_different_devices(Engine& engine, uint64_t seed) {
    const Whole w = draw(seed);
    MPI_Comm comm = first_ranks(INT_MAX);
    for (const bool everywhere : {false, true}) {
        if (everywhere && w.desc.len_q > w.chunk) continue;
        const Result<Outputs> got = sharded(comm, engine, w, everywhere);
        const int before = g_failures;
        if (!got)
            fail(in_words(got.error()));
        else if (g_rank == 0)
            expect_near(*got, exact(w), w);
        if (g_failures != before)
            printf("replay: mpirun -n 3 build/default/drivers/lavapipe26 fovea_test_mpi --mixed %llu\n",
                   static_cast<unsigned long long>(seed));
    }
    MPI_Comm_free(&comm);
}

void same_bits_on_every_number_of_ranks(Engine& engine, uint64_t seed) {
    const Whole w = draw(seed);
    Outputs alone;
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int count = 1; count <= size; ++count) {
        MPI_Comm comm = first_ranks(count);
        if (comm == MPI_COMM_NULL) continue;
        for (const bool everywhere : {false, true}) {
            if (everywhere && w.desc.len_q > w.chunk) continue;
            const Result<Outputs> got = sharded(comm, engine, w, everywhere);
            const int before = g_failures;
            if (!got) {
                fail(in_words(got.error()));
            } else if (g_rank == 0 && count == 1 && !everywhere) {
                alone = *got;
                expect_near(*got, exact(w), w);
            } else if (g_rank == 0 && !(same_bits(got->o, alone.o) && same_bits(got->lse, alone.lse))) {
                fail("other bits than on one rank");
            }
            if (g_failures != before)
                printf("replay: mpirun -n 4 fovea_test_mpi %llu (%d ranks, queries %s)\n",
                       static_cast<unsigned long long>(seed), count, everywhere ? "everywhere" : "in shards");
        }
        MPI_Comm_free(&comm);
    }
}

struct Gradients {
    std::vector<float> dq, dk, dv, dbias, dalibi, dsinks;
};

struct NamedGradient {
    const char* name;
    std::vector<float> Gradients::*numbers;
};
constexpr NamedGradient kGradients[] = {{"dq", &Gradients::dq},         {"dk", &Gradients::dk},
                                        {"dv", &Gradients::dv},         {"dbias", &Gradients::dbias},
                                        {"dalibi", &Gradients::dalibi}, {"dsinks", &Gradients::dsinks}};

// Extents of the whole bias.
struct BiasShape {
    uint64_t outer, keys;  // batch, heads and rows; columns
};
BiasShape bias_shape(const FoveaAttentionDesc& d) {
    if (!d.bias.present) return {0, 0};
    return {d.bias.batch * d.bias.heads * d.bias.rows, d.bias.keys};
}

// The inputs for the gradients of a call.
struct Upstream {
    Outputs forward;
    std::vector<float> d_o, dlse;
    FoveaAttentionBackwardDesc desc = foveaAttentionBackwardDesc();
};

Upstream draw_upstream(const Whole& w, uint64_t seed) {
    Random random(seed + 1000);
    Upstream up{exact(w), {}, {}};
    up.d_o = numbers(random, up.forward.o.size());
    up.desc.has_lse_gradient = random.chance(0.5);
    up.dlse = numbers(random, up.forward.lse.size());
    uint32_t& gradients = up.desc.gradients;
    if (random.chance(0.8)) gradients |= FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V;
    if (w.desc.bias.present) gradients |= FOVEA_GRAD_BIAS;
    if (w.desc.flags & FOVEA_FLAG_ALIBI) gradients |= FOVEA_GRAD_ALIBI;
    if (w.desc.flags & FOVEA_FLAG_SINKS) gradients |= FOVEA_GRAD_SINKS;
    return up;
}
bool wants(const Upstream& up, uint32_t gradient) {
    const uint32_t rows = FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V;
    return (up.desc.gradients ? up.desc.gradients : rows) & gradient;
}

Gradients room_for(const FoveaAttentionDesc& d, const Upstream& up) {
    const auto room = [&](uint32_t gradient, uint64_t count) {
        return std::vector<float>(wants(up, gradient) ? count : 0);
    };
    return {room(FOVEA_GRAD_Q, d.batch * d.heads_q * d.len_q * d.dim_qk),
            room(FOVEA_GRAD_K, d.batch * d.heads_kv * d.len_kv * d.dim_qk),
            room(FOVEA_GRAD_V, d.batch * d.heads_kv * d.len_kv * d.dim_v),
            room(FOVEA_GRAD_BIAS, bias_shape(d).outer * bias_shape(d).keys),
            room(FOVEA_GRAD_ALIBI, d.heads_q),
            room(FOVEA_GRAD_SINKS, d.heads_q)};
}

Gradients exact_gradients(const Whole& w, const Upstream& up) {
    Gradients g = room_for(w.desc, up);
    FoveaAttentionBackwardDesc desc = up.desc;
    desc.kernel = FOVEA_KERNEL_REFERENCE;
    const Result<Plan> plan = plan_attention_backward(cpu_device(1), w.desc, desc);
    if (!plan) return fail(in_words(plan.error())), g;
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t n = 0; n < FOVEA_BIND_COUNT; ++n) bindings[n] = w.bind(FoveaBinding(n));
    if (!wants(up, FOVEA_GRAD_SINKS)) bindings[FOVEA_BIND_SINKS] = {};  // lse has them in it
    const auto bind = [&](FoveaBinding binding, const std::vector<float>& values) {
        bindings[binding] = {const_cast<float*>(values.data()), values.size() * sizeof(float)};
    };
    bind(FOVEA_BIND_O, up.forward.o), bind(FOVEA_BIND_LSE, up.forward.lse), bind(FOVEA_BIND_DO, up.d_o);
    if (up.desc.has_lse_gradient) bind(FOVEA_BIND_DLSE, up.dlse);
    const std::pair<FoveaBinding, std::vector<float>*> outputs[] = {
        {FOVEA_BIND_DQ, &g.dq},       {FOVEA_BIND_DK, &g.dk},         {FOVEA_BIND_DV, &g.dv},
        {FOVEA_BIND_DBIAS, &g.dbias}, {FOVEA_BIND_DALIBI, &g.dalibi}, {FOVEA_BIND_DSINKS, &g.dsinks}};
    for (const auto& [binding, numbers] : outputs)
        if (!numbers->empty()) bind(binding, *numbers);
    Workspace workspace;
    if (Result<void> r = run_on_host(*plan, bindings, workspace); !r) fail(in_words(r.error()));
    return g;
}

// On every rank the whole gradients.
Result<Gradients> sharded_gradients(MPI_Comm comm, Engine& engine, const Whole& w, const Upstream& up) {
    const FoveaAttentionDesc& d = w.desc;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const uint32_t at = uint32_t(rank);
    const mpi::Shards queries(d.len_q, w.chunk, uint32_t(ranks)), keys(d.len_kv, w.chunk, uint32_t(ranks));
    const uint64_t q_outer = d.batch * d.heads_q, kv_outer = d.batch * d.heads_kv;
    const auto q = cut(w.q, q_outer, d.len_q, d.dim_qk, queries, at),
               o = cut(up.forward.o, q_outer, d.len_q, d.dim_v, queries, at),
               lse = cut(up.forward.lse, q_outer, d.len_q, 1, queries, at),
               d_o = cut(up.d_o, q_outer, d.len_q, d.dim_v, queries, at),
               dlse = cut(up.dlse, q_outer, d.len_q, 1, queries, at),
               k = cut(w.k, kv_outer, d.len_kv, d.dim_qk, keys, at),
               v = cut(w.v, kv_outer, d.len_kv, d.dim_v, keys, at);
    std::vector<uint16_t> k_half;
    if (d.k_type == FOVEA_F16) k_half = cut(w.k_half, kv_outer, d.len_kv, d.dim_qk, keys, at);
    const BiasShape bias = bias_shape(d);
    // The chunks of keys that have columns of the bias are those of a tensor of so many rows.
    uint64_t columns = 0;
    for (const uint64_t chunk : keys.chunks_of(at))
        columns += std::min(keys.rows_of(chunk), bias.keys - std::min(bias.keys, keys.first_row(chunk)));
    Gradients part{std::vector<float>(q.size(), NAN),  std::vector<float>(k.size(), NAN),
                   std::vector<float>(v.size(), NAN),  std::vector<float>(columns * bias.outer, NAN),
                   std::vector<float>(d.heads_q, NAN), std::vector<float>(d.heads_q, NAN)};
    FoveaHostBuffer shared[FOVEA_BIND_COUNT] = {};
    for (const FoveaBinding binding :
         {FOVEA_BIND_MASK, FOVEA_BIND_BIAS, FOVEA_BIND_ALIBI, FOVEA_BIND_SINKS, FOVEA_BIND_SEQUENCES})
        shared[binding] = w.bind(binding);
    mpi::ShardedGradients call;
    call.desc = d;
    call.backward = up.desc;
    call.chunk = w.chunk;
    call.q = q.data(), call.v = v.data(), call.o = o.data(), call.d_o = d_o.data();
    call.k = d.k_type == FOVEA_F16 ? static_cast<const void*>(k_half.data()) : k.data();
    call.lse = lse.data(), call.dlse = dlse.data();
    call.dq = part.dq.data(), call.dk = part.dk.data(), call.dv = part.dv.data();
    call.dbias = part.dbias.data(), call.dalibi = part.dalibi.data(), call.dsinks = part.dsinks.data();
    call.whole = shared;
    const Result<mpi::ShardReport> report = mpi::attention_backward(comm, engine, call);
    if (!report) return report.error();
    Gradients whole = room_for(d, up), sum = room_for(d, up);
    if (!whole.dq.empty()) put_back(part.dq, whole.dq, q_outer, d.len_q, d.dim_qk, queries, at);
    if (!whole.dk.empty()) put_back(part.dk, whole.dk, kv_outer, d.len_kv, d.dim_qk, keys, at);
    if (!whole.dv.empty()) put_back(part.dv, whole.dv, kv_outer, d.len_kv, d.dim_v, keys, at);
    auto dbias = part.dbias.begin();
    for (const uint64_t chunk : keys.chunks_of(at)) {
        const uint64_t first = std::min(bias.keys, keys.first_row(chunk)),
                       count = std::min(keys.rows_of(chunk), bias.keys - first);
        for (uint64_t n = 0; n < bias.outer && !whole.dbias.empty(); ++n, dbias += ptrdiff_t(count))
            std::copy(dbias, dbias + ptrdiff_t(count),
                      whole.dbias.begin() + ptrdiff_t(n * bias.keys + first));
    }
    const auto gather = [&](const std::vector<float>& from, std::vector<float>& to) {
        MPI_Allreduce(from.data(), to.data(), int(to.size()), MPI_UINT32_T, MPI_BOR, comm);
    };
    for (const auto& [name, numbers] : kGradients) gather(whole.*numbers, sum.*numbers);
    // Every rank has the whole of these.
    if (!sum.dalibi.empty()) sum.dalibi = part.dalibi;
    if (!sum.dsinks.empty()) sum.dsinks = part.dsinks;
    return sum;
}

// Within the roundings of sums whose terms may be larger than they are.
void expect_gradient(const char* name, const std::vector<float>& got, const std::vector<float>& exact) {
    float largest = 1;
    for (const float value : exact) largest = std::max(largest, std::fabs(value));
    for (size_t n = 0; n < exact.size(); ++n)
        if (!(std::fabs(got[n] - exact[n]) <= 1e-4f * largest))
            return fail(std::string(name) + " " + std::to_string(n) + " is " + std::to_string(got[n]) +
                        ", expected " + std::to_string(exact[n]));
}

void same_gradients_on_every_number_of_ranks(Engine& engine, uint64_t seed) {
    const Whole w = draw(seed);
    const Upstream up = draw_upstream(w, seed);
    Gradients alone;
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int count = 1; count <= size; ++count) {
        MPI_Comm comm = first_ranks(count);
        if (comm == MPI_COMM_NULL) continue;
        const Result<Gradients> got = sharded_gradients(comm, engine, w, up);
        const int before = g_failures;
        if (!got) {
            fail("gradients: " + in_words(got.error()));
        } else if (g_rank == 0 && count == 1) {
            alone = *got;
            const Gradients right = exact_gradients(w, up);
            for (const auto& [name, numbers] : kGradients)
                expect_gradient(name, (*got).*numbers, right.*numbers);
        } else if (g_rank == 0) {
            for (const auto& [name, numbers] : kGradients)
                if (!same_bits((*got).*numbers, alone.*numbers))
                    fail(std::string(name) + " has other bits than on one rank");
        }
        if (g_failures != before)
            printf("replay: mpirun -n 4 fovea_test_mpi %llu (%d ranks, gradients)\n",
                   static_cast<unsigned long long>(seed), count);
        MPI_Comm_free(&comm);
    }
}

void trouble_with_gradients_is_told_to_all(Engine& engine) {
    std::vector<float> rows(64 * 4, 1.0f), out(64 * 4);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const auto expect = [&](const char* what, const char* field, FoveaResult code, auto change) {
        mpi::ShardedGradients call;
        call.desc.batch = 1, call.desc.heads_q = call.desc.heads_kv = 1;
        call.desc.dim_qk = call.desc.dim_v = 4;
        call.desc.len_q = call.desc.len_kv = 64;
        call.chunk = 4;
        call.q = call.k = call.v = call.o = call.d_o = call.lse = rows.data();
        call.dq = call.dk = call.dv = out.data();
        RunOptions options;
        change(call, options);
        const Result<mpi::ShardReport> got = mpi::attention_backward(MPI_COMM_WORLD, engine, call, options);
        if (got) return fail(std::string(what) + " was accepted");
        if (got.error().field.find(field) == std::string::npos || got.error().code != code)
            fail(std::string(what) + ": " + in_words(got.error()));
    };
    const bool last = g_rank == size - 1;
    using Call = mpi::ShardedGradients;
    expect("a rank without the gradient of o", "q", FOVEA_INVALID_ARGUMENT, [&](Call& call, RunOptions&) {
        if (last) call.d_o = nullptr;
    });
    expect("a rank without room for dv", "dv", FOVEA_INVALID_ARGUMENT, [&](Call& call, RunOptions&) {
        if (last) call.dv = nullptr;
    });
    expect("a rank that asks for other gradients", "backward", FOVEA_INVALID_ARGUMENT,
           [&](Call& call, RunOptions&) {
               if (last) call.backward.gradients = FOVEA_GRAD_Q;
           });
    expect("a rank that is cancelled", "", FOVEA_CANCELLED, [&](Call&, RunOptions& options) {
        if (last) options.progress = [](double) { return false; };
    });
    for (const uint32_t gradient :
         {uint32_t(FOVEA_GRAD_SINKS), uint32_t(FOVEA_GRAD_ALIBI), uint32_t(FOVEA_GRAD_BIAS), 1u << 6})
        expect("a gradient of what the call has not", "gradients", FOVEA_INVALID_ARGUMENT,
               [&](Call& call, RunOptions&) { call.backward.gradients = gradient; });
    FoveaHostBuffer slopes[FOVEA_BIND_COUNT] = {};
    slopes[FOVEA_BIND_ALIBI] = {rows.data(), sizeof(float)};
    expect("a rank without room for the gradient of slopes", "dalibi", FOVEA_INVALID_ARGUMENT,
           [&](Call& call, RunOptions&) {
               call.desc.flags = FOVEA_FLAG_ALIBI, call.whole = slopes;
               call.backward.gradients = FOVEA_GRAD_ALIBI;
               if (!last) call.dalibi = out.data();
           });
    expect("gradients that are added", "accumulate", FOVEA_INVALID_ARGUMENT,
           [&](Call& call, RunOptions&) { call.backward.accumulate = FOVEA_GRAD_Q; });
    expect("gradients in blocks", "dk_type", FOVEA_INVALID_ARGUMENT,
           [&](Call& call, RunOptions&) { call.backward.dk_type = FOVEA_Q8_0; });
}

// A tile of the map of a call's weights: that of one device, on every rank, whatever their number.
struct Pixels {
    std::vector<uint64_t> mass;
    std::vector<float> max;
};

FoveaMapTileDesc draw_tile(const FoveaAttentionDesc& d, uint64_t seed) {
    Random random(seed + 2000);
    FoveaMapTileDesc tile = foveaMapTileDesc();
    tile.batch = uint32_t(random.below(d.batch));
    tile.first_head = uint32_t(random.below(d.heads_q));
    if (random.chance(0.5)) tile.head_count = 1;
    tile.first_row = random.below(d.len_q), tile.first_key = random.below(d.len_kv);
    // Past the ends, too, where cells weigh nothing.
    if (random.chance(0.7)) tile.row_count = 1 + random.below(d.len_q + 5);
    if (random.chance(0.7)) tile.key_count = 1 + random.below(d.len_kv + 5);
    const uint64_t rows = tile.row_count ? tile.row_count : d.len_q - tile.first_row,
                   keys = tile.key_count ? tile.key_count : d.len_kv - tile.first_key;
    if (random.chance(0.8)) tile.height = uint32_t(1 + random.below(random.chance(0.5) ? 3 : rows) % rows);
    if (random.chance(0.8)) tile.width = uint32_t(1 + random.below(keys));
    tile.outputs = uint32_t(1 + random.below(3));
    tile.sampled = random.chance(0.3);
    return tile;
}

Pixels tile_of_one_device(Engine& engine, const Whole& w, const std::vector<float>& lse,
                          const FoveaMapTileDesc& tile) {
    const Result<Plan> plan = plan_map_tile(engine.properties(), w.desc, tile);
    if (!plan) return fail("map: " + in_words(plan.error())), Pixels{};
    const FoveaPlanInfo info = plan->info();
    Pixels pixels{std::vector<uint64_t>(info.tensor_bytes[FOVEA_BIND_TILE_MASS] / 8),
                  std::vector<float>(info.tensor_bytes[FOVEA_BIND_TILE_MAX] / 4)};
    HostBindings bindings{};
    for (const FoveaBinding n : {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_MASK, FOVEA_BIND_BIAS,
                                 FOVEA_BIND_ALIBI, FOVEA_BIND_SEQUENCES})
        bindings[n] = w.bind(n);
    bindings[FOVEA_BIND_LSE] = {const_cast<float*>(lse.data()), lse.size() * 4};
    bindings[FOVEA_BIND_TILE_MASS] = {pixels.mass.data(), pixels.mass.size() * 8};
    bindings[FOVEA_BIND_TILE_MAX] = {pixels.max.data(), pixels.max.size() * 4};
    if (const Result<RunReport> done = engine.run_on_host(*plan, bindings); !done)
        fail("map: " + in_words(done.error()));
    return pixels;
}

Result<Pixels> sharded_tile(MPI_Comm comm, Engine& engine, const Whole& w, const std::vector<float>& all_lse,
                            const FoveaMapTileDesc& tile) {
    const FoveaAttentionDesc& d = w.desc;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const mpi::Shards queries(d.len_q, w.chunk, uint32_t(ranks)), keys(d.len_kv, w.chunk, uint32_t(ranks));
    const uint64_t q_outer = d.batch * d.heads_q, kv_outer = d.batch * d.heads_kv;
    const auto q = cut(w.q, q_outer, d.len_q, d.dim_qk, queries, uint32_t(rank)),
               lse = cut(all_lse, q_outer, d.len_q, 1, queries, uint32_t(rank)),
               k = cut(w.k, kv_outer, d.len_kv, d.dim_qk, keys, uint32_t(rank));
    std::vector<uint16_t> k_half;
    if (d.k_type == FOVEA_F16) k_half = cut(w.k_half, kv_outer, d.len_kv, d.dim_qk, keys, uint32_t(rank));
    FoveaHostBuffer shared[FOVEA_BIND_COUNT] = {};
    for (const FoveaBinding n : {FOVEA_BIND_MASK, FOVEA_BIND_BIAS, FOVEA_BIND_ALIBI, FOVEA_BIND_SEQUENCES})
        shared[n] = w.bind(n);
    const uint64_t rows = tile.row_count ? tile.row_count : d.len_q - tile.first_row,
                   columns = tile.key_count ? tile.key_count : d.len_kv - tile.first_key;
    const uint64_t pixels = (tile.head_count ? tile.head_count : d.heads_q - tile.first_head) *
                            (tile.height ? tile.height : rows) * (tile.width ? tile.width : columns);
    Pixels got;
    if (tile.outputs & FOVEA_TILE_MASS) got.mass.assign(pixels, 1);
    if (tile.outputs & FOVEA_TILE_MAX) got.max.assign(pixels, NAN);
    mpi::ShardedMapTile call;
    call.desc = d, call.tile = tile, call.chunk = w.chunk;
    call.q = q.data(), call.lse = lse.data();
    call.k = d.k_type == FOVEA_F16 ? static_cast<const void*>(k_half.data()) : k.data();
    call.mass = got.mass.data(), call.max = got.max.data();
    call.whole = shared;
    const Result<mpi::ShardReport> report = mpi::map_tile(comm, engine, call);
    if (!report) return report.error();
    return got;
}

void the_tile_of_one_device_on_every_number_of_ranks(Engine& engine, uint64_t seed) {
    const Whole w = draw(seed);
    if (w.desc.len_q == 0 || w.desc.len_kv == 0) return;
    const std::vector<float> lse = exact(w).lse;
    const FoveaMapTileDesc tile = draw_tile(w.desc, seed);
    const Pixels right = tile_of_one_device(engine, w, lse, tile);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int count = 1; count <= size; ++count) {
        MPI_Comm comm = first_ranks(count);
        if (comm == MPI_COMM_NULL) continue;
        const Result<Pixels> got = sharded_tile(comm, engine, w, lse, tile);
        const int before = g_failures;
        if (!got)
            fail("map: " + in_words(got.error()));
        else if (got->mass != right.mass || !same_bits(got->max, right.max))
            fail("a tile has other pixels than on one device");
        if (g_failures != before)
            printf("replay: mpirun -n 4 fovea_test_mpi %llu (%d ranks, map tile)\n",
                   static_cast<unsigned long long>(seed), count);
        MPI_Comm_free(&comm);
    }
}

void trouble_with_tiles_is_told_to_all(Engine& engine) {
    std::vector<float> rows(64 * 4, 1.0f);
    std::vector<uint64_t> mass(64 * 64);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const bool last = g_rank == size - 1;
    const auto expect = [&](const char* what, const char* field, FoveaResult code, auto change) {
        mpi::ShardedMapTile call;
        call.desc.batch = 1, call.desc.heads_q = call.desc.heads_kv = 1;
        call.desc.dim_qk = call.desc.dim_v = 4;
        call.desc.len_q = call.desc.len_kv = 64;
        call.chunk = 4;
        call.q = call.k = call.lse = rows.data();
        call.mass = mass.data();
        RunOptions options;
        change(call, options);
        const Result<mpi::ShardReport> got = mpi::map_tile(MPI_COMM_WORLD, engine, call, options);
        if (got) return fail(std::string(what) + " was accepted");
        if (got.error().field.find(field) == std::string::npos || got.error().code != code)
            fail(std::string(what) + ": " + in_words(got.error()));
    };
    using Call = mpi::ShardedMapTile;
    expect("a rank without lse", "q", FOVEA_INVALID_ARGUMENT, [&](Call& call, RunOptions&) {
        if (last) call.lse = nullptr;
    });
    expect("a rank with another tile", "tile", FOVEA_INVALID_ARGUMENT, [&](Call& call, RunOptions&) {
        if (last) call.tile.first_key = 1;
    });
    expect("a rank without room for pixels", "mass", FOVEA_INVALID_ARGUMENT, [&](Call& call, RunOptions&) {
        if (last) call.mass = nullptr;
    });
    expect("a head that is not there", "head", FOVEA_INVALID_ARGUMENT,
           [&](Call& call, RunOptions&) { call.tile.first_head = 1; });
    expect("a rank that is cancelled", "", FOVEA_CANCELLED, [&](Call&, RunOptions& options) {
        if (last) options.progress = [](double) { return false; };
    });
}

// In a causal call every rank has the same amount of work, messages are in flight while slices run, and a
// rank holds its part of the gradients and two chunks.
void ranks_share_gradients_and_overlap_them(Engine& engine) {
    mpi::ShardedGradients call;
    FoveaAttentionDesc& d = call.desc;
    d.batch = 1, d.heads_q = d.heads_kv = 2, d.dim_qk = d.dim_v = 16;
    d.len_q = d.len_kv = 1024;
    d.flags = FOVEA_FLAG_CAUSAL;
    call.chunk = 16;
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const mpi::Shards shards(d.len_q, call.chunk, uint32_t(size));
    const uint64_t row = 2 * 16, rows_here = shards.rows_of_rank(uint32_t(g_rank));
    std::vector<float> rows(rows_here * row, 0.25f), lse(rows_here * 2), out(3 * rows.size());
    call.q = call.k = call.v = call.o = call.d_o = rows.data();
    call.lse = lse.data();
    call.dq = out.data(), call.dk = out.data() + rows.size(), call.dv = out.data() + 2 * rows.size();
    const Result<mpi::ShardReport> got = mpi::attention_backward(MPI_COMM_WORLD, engine, call);
    if (!got) return fail(in_words(got.error()));
    double pairs = got->visited_pairs, all = 0, most = 0;
    uint64_t flying = got->bytes_in_flight, most_flying = 0;
    MPI_Allreduce(&pairs, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&pairs, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&flying, &most_flying, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (g_rank == 0)
        printf("gradients: most / mean %.4f on %d ranks; %llu bytes under way while a slice ran\n",
               most * size / all, size, static_cast<unsigned long long>(most_flying));
    if (most * size / all > 1.02) fail("the work of gradients differs by more than 2%");
    if (size > 1 && most_flying == 0) fail("no byte of gradients was under way while a slice ran");
    const uint64_t chunk_bytes = call.chunk * (3 * row + 2) * sizeof(float);  // q, o, d_o and lse
    const uint64_t most_held = 3 * rows.size() * sizeof(float) + 2 * (chunk_bytes + 4 * 64);
    if (got->bytes_held == 0 || got->bytes_held > most_held)
        fail(std::to_string(got->bytes_held) + " bytes were held, at most " + std::to_string(most_held));
    call.desc.flags |= FOVEA_FLAG_WINDOW;
    call.desc.window_left = 3, call.desc.window_right = 0;
    const Result<mpi::ShardReport> near = mpi::attention_backward(MPI_COMM_WORLD, engine, call);
    if (!near) return fail(in_words(near.error()));
    if (size > 2 && near->bytes_received * 2 > got->bytes_received)
        fail("chunks that concern nobody were sent: " + std::to_string(near->bytes_received) + " bytes");
}

// The last rank is gone in the middle of its gradients: MPI ends the job, or this returns an error.
void a_rank_is_killed_in_its_gradients(Engine& engine) {
    mpi::ShardedGradients call;
    FoveaAttentionDesc& d = call.desc;
    d.batch = 1, d.heads_q = d.heads_kv = 1, d.dim_qk = d.dim_v = 16;
    d.len_q = d.len_kv = 1024;
    call.chunk = 16;
    std::vector<float> rows(1024 * 16, 0.25f), out(3 * rows.size());
    call.q = call.k = call.v = call.o = call.d_o = call.lse = rows.data();
    call.dq = out.data(), call.dk = out.data() + rows.size(), call.dv = out.data() + 2 * rows.size();
    int size = 0, reports = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    RunOptions options;
    options.progress = [&](double) {
        if (g_rank == size - 1 && ++reports == 40) {
            printf("rank %d is killed in its gradients\n", g_rank);
            fflush(stdout);
            raise(SIGKILL);
        }
        return true;
    };
    const Result<mpi::ShardReport> got = mpi::attention_backward(MPI_COMM_WORLD, engine, call, options);
    if (got) printf("rank %d went on\n", g_rank);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

// Whatever one rank lacks, every rank hears of it, and none waits for ever.
void trouble_of_one_rank_is_told_to_all(Engine& engine) {
    Whole w = draw(1);
    w.desc = foveaAttentionDesc();
    w.desc.batch = 1, w.desc.heads_q = w.desc.heads_kv = 1, w.desc.dim_qk = w.desc.dim_v = 4;
    w.desc.len_q = w.desc.len_kv = 64;
    w.chunk = 4;
    std::vector<float> rows(64 * 4, 1.0f), o(64 * 4);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const auto expect = [&](const char* what, const char* field, FoveaResult code, auto change) {
        mpi::ShardedCall call;
        call.desc = w.desc;
        call.chunk = w.chunk;
        call.q = call.k = call.v = rows.data();
        call.o = o.data();
        RunOptions options;
        change(call, options);
        const Result<mpi::ShardReport> got = mpi::attention(MPI_COMM_WORLD, engine, call, options);
        if (got) return fail(std::string(what) + " was accepted");
        if (got.error().field.find(field) == std::string::npos || got.error().code != code)
            fail(std::string(what) + ": " + in_words(got.error()));
    };
    const bool last = g_rank == size - 1;
    expect("a rank without keys", "k", FOVEA_INVALID_ARGUMENT, [&](mpi::ShardedCall& call, RunOptions&) {
        if (last) call.k = nullptr;
    });
    expect("a rank with another description", "desc", FOVEA_INVALID_ARGUMENT,
           [&](mpi::ShardedCall& call, RunOptions&) {
               if (last) call.desc.len_q = 63;
           });
    expect("a rank that draws another dropout", "desc", FOVEA_INVALID_ARGUMENT,
           [&](mpi::ShardedCall& call, RunOptions&) {
               if (last) call.desc.dropout_offset = 1;
           });
    expect("a rank with other chunks", "chunk", FOVEA_INVALID_ARGUMENT,
           [&](mpi::ShardedCall& call, RunOptions&) {
               if (last) call.chunk = 5;
           });
    expect("a rank that is cancelled", "", FOVEA_CANCELLED, [&](mpi::ShardedCall&, RunOptions& options) {
        if (last) options.progress = [](double) { return false; };
    });
    expect("no rows to a chunk", "chunk", FOVEA_INVALID_ARGUMENT,
           [&](mpi::ShardedCall& call, RunOptions&) { call.chunk = 0; });
    expect("dropout that counts from within four keys", "chunk", FOVEA_INVALID_ARGUMENT,
           [&](mpi::ShardedCall& call, RunOptions&) { call.desc.dropout_p = 0.5f, call.chunk = 6; });
    expect("paged keys", "page_size", FOVEA_INVALID_ARGUMENT,
           [&](mpi::ShardedCall& call, RunOptions&) { call.desc.page_size = 4; });
    expect("weights", "outputs", FOVEA_INVALID_ARGUMENT,
           [&](mpi::ShardedCall& call, RunOptions&) { call.desc.outputs = FOVEA_OUTPUT_WEIGHTS; });
    expect("a mask that is not there", "MASK", FOVEA_INVALID_ARGUMENT,
           [&](mpi::ShardedCall& call, RunOptions&) {
               call.desc.mask.present = 1, call.desc.mask.type = FOVEA_U8;
           });
    expect_sizes_of_shared(expect, last);
    expect("many queries everywhere", "queries_everywhere", FOVEA_INVALID_ARGUMENT,
           [&](mpi::ShardedCall& call, RunOptions&) { call.queries_everywhere = true; });
}

// A rank without memory for the keys of others: its address space may grow by less than they take.
void a_rank_out_of_memory_is_told_to_all(Engine& engine) {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2) return;
    constexpr uint64_t kLength = 1 << 16, kRow = 4 * 64;
    mpi::ShardedCall call;
    FoveaAttentionDesc& d = call.desc;
    d.batch = 1, d.heads_q = d.heads_kv = 4, d.dim_qk = d.dim_v = 64;
    d.len_q = d.len_kv = kLength;
    const mpi::Shards shards(kLength, call.chunk, uint32_t(size));
    std::vector<float> rows(shards.rows_of_rank(uint32_t(g_rank)) * kRow, 1.0f), o(rows.size());
    call.q = call.k = call.v = rows.data();
    call.o = o.data();
    rlimit before{};
    getrlimit(RLIMIT_AS, &before);
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit small = before;
    small.rlim_cur = pages * uint64_t(sysconf(_SC_PAGESIZE)) + (uint64_t{16} << 20);
    if (g_rank == size - 1) setrlimit(RLIMIT_AS, &small);
    const Result<mpi::ShardReport> got = mpi::attention(MPI_COMM_WORLD, engine, call);
    setrlimit(RLIMIT_AS, &before);
    const std::string rank = "rank " + std::to_string(size - 1);
    if (got) return fail("a rank without memory was not missed");
    if (got.error().code != FOVEA_OUT_OF_HOST_MEMORY || got.error().text.find(rank) == std::string::npos)
        fail("a rank without memory: " + in_words(got.error()));
}

// Parts that are merged as they come have the bits of one foveaPlanMerge over all of them.
void parts_in_any_order_are_one_merge() {
    constexpr uint32_t kHeads = 2, kDim = 3;
    constexpr uint64_t kRows = 4, kSums = kHeads * kRows;
    for (uint32_t parts = 1; parts <= 13; ++parts) {
        Random random(parts);
        std::vector<float> x(parts * kSums * kDim), lse(parts * kSums), y(kSums * kDim), merged_lse(kSums);
        for (float& value : x) value = float(random.uniform(-1, 1));
        for (float& value : lse) value = float(random.uniform(-3, 3));
        FoveaMergeDesc desc = foveaMergeDesc();
        desc.parts = parts, desc.batch = 1, desc.heads = kHeads, desc.len = kRows, desc.dim = kDim;
        const Result<FoveaDeviceProperties> properties = cpu_properties(1);
        const Result<Plan> plan = plan_merge(*properties, desc);
        if (!plan) return fail(in_words(plan.error()));
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        const auto bind = [&](FoveaBinding binding, std::vector<float>& numbers) {
            bindings[binding] = {numbers.data(), numbers.size() * sizeof(float)};
        };
        bind(FOVEA_BIND_X, x), bind(FOVEA_BIND_PART_LSE, lse);
        bind(FOVEA_BIND_Y, y), bind(FOVEA_BIND_LSE, merged_lse);
        Workspace workspace;
        if (const Result<void> done = run_on_host(*plan, bindings, workspace); !done)
            return fail(in_words(done.error()));

        mpi::MergeTree tree(kHeads, kRows, kDim, parts);
        std::vector<uint32_t> order(parts);
        std::iota(order.begin(), order.end(), 0u);
        for (uint32_t n = parts; n > 1; --n) std::swap(order[n - 1], order[random.below(n)]);
        for (const uint32_t part : order) {
            const float *o = x.data() + part * kSums * kDim, *sums = lse.data() + part * kSums;
            if (const Result<void> added = tree.add(part, {{o, o + kSums * kDim}, {sums, sums + kSums}});
                !added)
                return fail(in_words(added.error()));
        }
        const Result<mpi::Partial> whole = tree.finish();
        if (!whole) return fail(in_words(whole.error()));
        if (whole->o != y || whole->lse != merged_lse)
            fail(std::to_string(parts) + " parts are merged to other bits than by one plan");
    }
}

// Every chunk has one owner, and no rank more than its share, rounded up: also where there are few chunks.
void every_rank_holds_a_like_share() {
    for (uint32_t ranks = 1; ranks <= 12; ++ranks)
        for (uint64_t count = 0; count <= 64; ++count) {
            const mpi::Shards shards(count * 3, 3, ranks);
            std::vector<uint32_t> owners(count, ranks);
            for (uint32_t rank = 0; rank < ranks; ++rank) {
                const std::vector<uint64_t> held = shards.chunks_of(rank);
                if (held.size() > (count + ranks - 1) / ranks)
                    fail(std::to_string(held.size()) + " of " + std::to_string(count) +
                         " chunks are on one of " + std::to_string(ranks) + " ranks");
                for (const uint64_t n : held) {
                    if (n >= count || owners[n] != ranks || shards.owner(n) != rank)
                        return fail("a chunk has another owner than it seems");
                    owners[n] = rank;
                }
            }
            for (const uint32_t owner : owners)
                if (owner == ranks) return fail("a chunk is nobody's");
        }
}

// Zigzag: of a causal call every rank computes as much, and messages are under way while slices run.
void ranks_share_the_work_and_overlap_it(Engine& engine) {
    Whole w;
    FoveaAttentionDesc& d = w.desc;
    constexpr uint32_t kDim = 32;
    d.batch = 1, d.heads_q = d.heads_kv = 2, d.dim_qk = d.dim_v = kDim;
    d.len_q = d.len_kv = 4096;
    d.flags = FOVEA_FLAG_CAUSAL;
    w.chunk = 64;  // messages of 16 KiB: MPI sends small ones at once, before the first slice
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const mpi::Shards shards(d.len_q, w.chunk, uint32_t(size));
    std::vector<float> rows(shards.rows_of_rank(uint32_t(g_rank)) * 2 * kDim, 0.25f), o(rows.size());
    mpi::ShardedCall call;
    call.desc = d;
    call.chunk = w.chunk;
    call.q = call.k = call.v = rows.data();
    call.o = o.data();
    const Result<mpi::ShardReport> got = mpi::attention(MPI_COMM_WORLD, engine, call);
    if (!got) return fail(in_words(got.error()));
    double pairs = got->visited_pairs, all = 0, most = 0;
    uint64_t flying = got->bytes_in_flight, most_flying = 0;
    MPI_Allreduce(&pairs, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&pairs, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&flying, &most_flying, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (g_rank == 0)
        printf("work: most / mean %.4f on %d ranks; %llu bytes under way while a slice ran\n",
               most * size / all, size, static_cast<unsigned long long>(most_flying));
    if (most * size / all > 1.02) fail("the work of ranks differs by more than 2%");
    if (size > 1 && most_flying == 0) fail("no byte was under way while a slice ran");
    for (const float value : o)
        if (std::fabs(value - 0.25f) > 1e-6f) return fail("equal rows of v do not give themselves");
    // Each of a rank's query chunks holds a few results, not one for every second chunk of keys.
    const uint64_t result = 2 * w.chunk * (kDim + 1) * sizeof(float),
                   own = shards.chunks_of(uint32_t(g_rank)).size();
    const uint64_t keys = 2 * 2 * kDim * sizeof(float) * d.len_kv / uint64_t(size);  // k and v of a rank
    const uint64_t most_held = own * result * 8 + 2 * (keys + 64 * 2 * w.chunk);
    if (got->bytes_held == 0 || got->bytes_held > most_held)
        fail(std::to_string(got->bytes_held) + " bytes were held, at most " + std::to_string(most_held));
    // A window that ends within the chunk before: nobody needs keys of far away.
    call.desc.flags |= FOVEA_FLAG_WINDOW;
    call.desc.window_left = 3, call.desc.window_right = 0;
    const Result<mpi::ShardReport> near = mpi::attention(MPI_COMM_WORLD, engine, call);
    if (!near) return fail(in_words(near.error()));
    if (size > 2 && near->bytes_received * 2 > got->bytes_received)
        fail("keys that no query sees were sent: " + std::to_string(near->bytes_received) + " bytes");
}

}  // namespace
}  // namespace fovea::test

int main(int argc, char** argv) {
    using namespace fovea;
    using namespace fovea::test;
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    int failures = 1;
    {
        EngineOptions options;
        const bool mixed = argc > 1 && std::string_view(argv[1]) == "--mixed";
        options.backend = mixed && g_rank % 2 ? BackendChoice::vulkan : BackendChoice::cpu;
        options.cpu_threads = 1 + uint32_t(g_rank % 2);
        Result<Engine> engine = Engine::open(options);
        int opened = engine ? 1 : 0;  // on every rank: no other one waits for it
        MPI_Allreduce(MPI_IN_PLACE, &opened, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (opened) {
            if (argc > 1 && std::string_view(argv[1]) == "--killed") {
                a_rank_is_killed_in_its_gradients(*engine);
            } else if (mixed) {
                const uint64_t first = argc > 2 ? strtoull(argv[2], nullptr, 0) : 0;
                for (uint64_t seed = first; seed < (argc > 2 ? first + 1 : 24); ++seed)
                    near_on_ranks_of_different_devices(*engine, seed);
            } else {
                const uint64_t first = argc == 2 ? strtoull(argv[1], nullptr, 0) : 0;
                const uint64_t count = argc == 2 ? 1 : argc > 2 ? strtoull(argv[2], nullptr, 0) : 80;
                for (uint64_t seed = first; seed < first + count; ++seed) {
                    same_bits_on_every_number_of_ranks(*engine, seed);
                    same_gradients_on_every_number_of_ranks(*engine, seed);
                    the_tile_of_one_device_on_every_number_of_ranks(*engine, seed);
                }
                every_rank_holds_a_like_share();
                parts_in_any_order_are_one_merge();
                trouble_of_one_rank_is_told_to_all(*engine);
                trouble_with_gradients_is_told_to_all(*engine);
                trouble_with_tiles_is_told_to_all(*engine);
                ranks_share_gradients_and_overlap_them(*engine);
                a_rank_out_of_memory_is_told_to_all(*engine);
                ranks_share_the_work_and_overlap_it(*engine);
            }
        } else {
            fail(engine ? "another rank has no engine" : engine.error().text);
        }
        MPI_Allreduce(&g_failures, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (g_rank == 0) printf("%s\n", failures ? "FAILED" : "every rank gives what it should");
    MPI_Finalize();
    return failures != 0;
}
