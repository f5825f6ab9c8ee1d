#include "deep_zoom.hpp"

#include "page.hpp"

#include <fovea/inspect/long_context.hpp>

#include <algorithm>
#include <utility>

namespace fovea::web {
namespace {

// Fits the memory of a phone's tab.
constexpr uint64_t kTileBytes = uint64_t{96} << 20;
// Limits for a session's text. Level 7 has vectors of 768 values, and the layer has four of them for each
// token.
constexpr size_t kMaxTokens = 1u << 16, kMaxWideTokens = 1u << 14;
// Patterns and painted masks are held cell by cell; causal masks and windows are rules.
constexpr uint64_t kMaxMaskCells = uint64_t{1} << 26;

std::shared_ptr<const SessionTensors> tensors_of(const OwnHead& own) {
    auto tensors = std::make_shared<SessionTensors>();
    const auto take = [&](SessionTensor& to, uint32_t rows, const float* from) {
        to.shape = {1, rows, own.dim};
        to.values.assign(from, from + size_t{rows} * own.dim);
    };
    take(tensors->q, own.rows, own.q);
    take(tensors->k, own.keys, own.k);
    return tensors;
}

Result<void> check_mask(const Session& s, uint64_t rows, uint64_t keys) {
    if ((s.pattern == MaskPattern::none && s.hidden_keys.empty()) || rows * keys <= kMaxMaskCells) return {};
    return Error{FOVEA_LIMIT_EXCEEDED, "mask",
                 "mask is " + std::string(mask_key(s)) + " over " + std::to_string(rows) + " x " +
                     std::to_string(keys) + " cells; a map has such a mask up to " +
                     std::to_string(kMaxMaskCells) + " cells, and causal masks and windows at any length"};
}

}  // namespace

Result<DeepZoom> DeepZoom::of_tokens(uint32_t tokens) {
    Result<LongContext> made = long_context(tokens);
    if (!made) return made.error();
    const auto context = std::make_shared<LongContext>(std::move(*made));
    const auto buffer = [](std::vector<float>& values) {
        return FoveaHostBuffer{values.data(), values.size() * sizeof(float)};
    };
    std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> inputs{};
    inputs[FOVEA_BIND_Q] = buffer(context->q), inputs[FOVEA_BIND_K] = buffer(context->k);
    return DeepZoom(context->call, context, inputs);
}

Result<DeepZoom> DeepZoom::of_session(std::string_view address, const OwnHead& own,
                                      std::shared_ptr<const LearnedModel> learned, Runner& runner) {
    Result<ReadSession> read = read_address(address, page_reader());
    if (!read) return read.error();
    Session& session = read->session;
    // Both routes of a mask give the same weights, and maps are computed by this one.
    session.route = MaskRoute::before;
    if (own.q) session.tensors = tensors_of(own);
    const bool is_wide = session.level == kLevelCount && !own.q;
    Result<SessionModel> model =
        session_model(session, nullptr, std::move(learned), is_wide ? kMaxWideTokens : kMaxTokens);
    if (!model) return model.error();
    std::vector<Token> tokens = model->input.tokens;
    std::vector<SessionNote> notes = std::move(read->notes);
    notes.insert(notes.end(), model->notes.begin(), model->notes.end());
    TraceOptions options;
    options.engine = &runner;
    Result<Trace> trace = Trace::open(model->model, std::move(model->input), options);
    if (!trace) return trace.error();
    session.tensors = model->session.tensors = nullptr;  // the trace has its own
    if (Result<void> r = check_mask(session, trace->rows(), trace->keys()); !r) return r.error();
    const uint32_t head = std::min(own.q ? 0 : session.head, trace->layers() * trace->heads() - 1);
    Result<PreparedAttention> made = trace->prepare_head(head % trace->heads(), head / trace->heads());
    if (!made) return made.error();
    if (own.q && session.alibi) {
        const float slope = alibi_slope(own.head, own.heads);
        std::copy_n(reinterpret_cast<const std::byte*>(&slope), sizeof slope,
                    made->inputs[FOVEA_BIND_ALIBI].begin());
    }
    made->inputs[FOVEA_BIND_V] = {};
    const auto held = std::make_shared<PreparedAttention>(std::move(*made));
    DeepZoom map(held->call, held, held->bindings());
    map.tokens_ = std::move(tokens);
    map.notes_ = std::move(notes);
    return map;
}

DeepZoom::DeepZoom(FoveaAttentionDesc call, std::shared_ptr<const void> owner,
                   std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> inputs)
    : call_(call),
      owner_(std::move(owner)),
      inputs_(inputs),
      tiles_({call.len_q, call.len_kv}, kTileBytes),
      lse_(call.len_q) {
    // Values play no part in the weights; where some must be bound it is the keys, of which the first values
    // do.
    call_.dim_v = 1;
    call_.v_type = call_.k_type;
    call_.v_strides = {};
    call_.outputs = FOVEA_OUTPUT_LSE;
    inputs_[FOVEA_BIND_V] = inputs_[FOVEA_BIND_K];
}

Result<Plan> DeepZoom::plan_forward(const FoveaDeviceProperties& properties, uint32_t dim_v,
                                    double max_flops) const {
    FoveaAttentionDesc call = call_;
    call.dim_v = dim_v;
    call.max_slice_cost = max_flops;
    return plan_attention(properties, call);
}

Result<double> DeepZoom::run_slice(Runner& runner, Sliced& run, const Bindings& bindings) {
    const uint64_t slices = run.plan.info().slice_count;
    if (run.next < slices) {
        if (Result<void> r =
                run_on_host(run.plan, bindings.data(), workspace_, runner.parallel(), run.next, 1);
            !r)
            return r.error();
        ++run.next;
    }
    return slices ? double(run.next) / double(slices) : 1.0;
}

Result<double> DeepZoom::prepare(Runner& runner, double max_flops) {
    if (!forward_.plan) {
        const FoveaDeviceProperties& properties = runner.properties();
        Result<Plan> plan = plan_forward(properties, 1, max_flops * properties.cpu_threads);
        if (!plan) return plan.error();
        forward_.plan = std::move(*plan);
    }
    Bindings bindings = inputs_;
    bindings[FOVEA_BIND_LSE] = {lse_.data(), lse_.size() * sizeof(float)};
    return run_slice(runner, forward_, bindings);
}

void DeepZoom::set_view(const MapView& view) {
    tiles_.set_view(view);
    if (running_ && !tiles_.wanted(*running_)) give_up_tile();
}

Result<Plan> DeepZoom::plan_tile(const FoveaDeviceProperties& properties, double max_flops) {
    running_ = tiles_.next();
    if (!running_) return Plan{};
    FoveaAttentionDesc call = call_;
    call.max_slice_cost = max_flops;
    Result<Plan> plan = plan_map_tile(properties, call, tiles_.description(*running_));
    if (!plan) {
        give_up_tile();
        return plan;
    }
    pixels_.mass.assign(size_t{kMapTileSide} * kMapTileSide, 0);
    pixels_.max.assign(pixels_.mass.size(), 0.0f);
    return plan;
}

void DeepZoom::store_tile() {
    if (running_) tiles_.store(*running_, std::move(pixels_));
    running_.reset();
}

void DeepZoom::give_up_tile() {
    if (running_) tiles_.give_back(*running_);
    running_.reset();
}

DeepZoom::Bindings DeepZoom::tile_bindings(MapPixels& pixels) {
    Bindings bindings = inputs_;
    bindings[FOVEA_BIND_V] = {};  // no binding of a tile's
    bindings[FOVEA_BIND_LSE] = {lse_.data(), lse_.size() * sizeof(float)};
    bindings[FOVEA_BIND_TILE_MASS] = {pixels.mass.data(), pixels.mass.size() * sizeof(uint64_t)};
    bindings[FOVEA_BIND_TILE_MAX] = {pixels.max.data(), pixels.max.size() * sizeof(float)};
    return bindings;
}

Result<bool> DeepZoom::step(Runner& runner, double max_flops) {
    if (!running_) {
        const FoveaDeviceProperties& properties = runner.properties();
        Result<Plan> plan = plan_tile(properties, max_flops * properties.cpu_threads);
        if (!plan) return plan.error();
        if (!*plan) return false;
        tile_ = {std::move(*plan)};
    }
    const Result<double> done = run_slice(runner, tile_, tile_bindings(pixels_));
    if (!done) return done.error();
    if (*done < 1) return false;
    store_tile();
    return true;
}

Result<double> DeepZoom::weight(Runner& runner, uint64_t query, uint64_t key) {
    FoveaMapTileDesc tile = foveaMapTileDesc();
    tile.head_count = 1;
    tile.first_row = query, tile.first_key = key;
    tile.row_count = tile.key_count = 1;
    tile.width = tile.height = 1;
    tile.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    const Result<Plan> plan = plan_map_tile(runner.properties(), call_, tile);
    if (!plan) return plan.error();
    MapPixels pixel{{0}, {0.0f}};
    if (Result<void> r = runner.run(*plan, tile_bindings(pixel).data()); !r) return r.error();
    return double(pixel.max[0]);
}

Result<Derivation> DeepZoom::derive(uint64_t query, uint64_t key) const {
    return derive_cell(call_, inputs_.data(), {0, 0, query, key});
}

}  // namespace fovea::web
