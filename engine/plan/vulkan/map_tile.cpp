#include "plan/vulkan/kernels.hpp"

#include "plan/text_sink.hpp"
#include "plan/vulkan/costs.hpp"
#include "plan/vulkan/device_traits.hpp"
#include "plan/vulkan/rotation.hpp"
#include "plan/vulkan/rows.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

constexpr uint32_t kMapThreads = 32, kMaxMapThreads = 64;
constexpr uint32_t kFewMapRows = 4;
constexpr uint32_t kMinPixels = 32;
constexpr uint64_t kMassBytes = 8, kMaxBytes = 4;

uint32_t log2_up(uint64_t n) {
    uint32_t log2 = 0;
    while ((uint64_t{1} << log2) < n) ++log2;
    return log2;
}

// Pixels of a workgroup: enough for one step of its threads, as far as their sums fit shared memory.
void choose_workgroup(const FoveaPlan_T& plan, MapTilePlan& m) {
    const MapTile& tile = plan.tile;
    // No lane of a wide subgroup is idle.
    m.threads = is_software(plan)
                    ? kSoftwareThreads
                    : std::clamp(plan.properties.min_subgroup_size, kMapThreads, kMaxMapThreads);
    m.rows = has_few_registers(plan.properties) ? kFewMapRows : shader::kMapRows;
    const uint64_t step_keys = 4 * m.threads;
    const uint64_t columns = tile.sampled ? step_keys : ceil_div(step_keys, uint64_t(tile.keys.largest()));
    const uint64_t rows = tile.sampled ? m.rows : ceil_div(uint64_t{m.rows}, uint64_t(tile.rows.largest()));
    m.columns_log2 = std::min(log2_up(columns), log2_up(uint64_t(tile.keys.pixels)));
    m.rows_log2 = std::min(log2_up(rows), log2_up(uint64_t(tile.rows.pixels)));
    while ((1u << (m.columns_log2 + m.rows_log2)) > shader::kMapPixels)
        --(m.rows_log2 > 0 ? m.rows_log2 : m.columns_log2);
    // Shared memory decides how many workgroups a core runs at a time.
    const uint32_t used = std::max(1u << (m.columns_log2 + m.rows_log2), kMinPixels);
    m.pixels = is_software(plan) ? shader::kMapPixels : used;
}

double slice_flops(const FoveaPlan_T& plan, const MapTilePlan& m) {
    return 2.0 * plan.problem.dim_qk * plan.tile.cells_of_pixel() * double(m.slice_rows) *
           double(m.slice_columns);
}

// The rows of cells that a slice's rows of pixels reach, clipped to the call's.
struct RowSpan {
    int64_t first, count;
};
RowSpan rows_of_slice(const FoveaPlan_T& plan, uint64_t y, uint64_t rows) {
    const PixelAxis& axis = plan.tile.rows;
    const int64_t first = std::min(axis.begin(int64_t(y)), plan.problem.len_q - 1);
    const int64_t end = std::min(axis.begin(int64_t(y + rows)), plan.problem.len_q);
    return {first, std::max<int64_t>(end - first, 1)};
}

uint64_t most_rows_of_slice(const FoveaPlan_T& plan, const MapTilePlan& m) {
    const double rows = double(plan.tile.rows.largest()) * double(m.slice_rows);
    return uint64_t(std::min(rows, double(plan.problem.len_q)));
}

Gathering gathering_of(const FoveaPlan_T& plan) {
    const MapTilePlan& m = plan.vulkan.map;
    return {plan,
            {1, 1, 1, most_rows_of_slice(plan, m)},
            m.extra_offset,
            m.extra_offset + (m.has_extra ? sizeof(shader::FlashExtra) : 0)};
}

uint64_t workspace_of(const FoveaPlan_T& plan) {
    return align_up(gathering_of(plan).end(), kWorkspaceAlignment) + rotated_bytes(plan.vulkan);
}

FoveaResult check_slice(const FoveaPlan_T& plan, const MapTilePlan& m, double max_cost, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    const VulkanLimits limits(plan.properties, diag);
    const uint64_t rows = most_rows_of_slice(plan, m);
    const uint64_t pixels = m.slice_rows * uint64_t(plan.tile.keys.pixels) + kWorkspaceAlignment / kMaxBytes;
    FoveaResult r;
    if ((r = check_windows(p, {1, 1, 1, rows}, limits))) return r;
    if ((r = check_rotations(plan, {0, 1, 0, 1, 0, rows}, limits))) return r;
    if ((r = limits.window(FOVEA_BIND_LSE, rows * 4 + limits.alignment()))) return r;
    if (plan.tile.mass && (r = limits.window(FOVEA_BIND_TILE_MASS, pixels * kMassBytes))) return r;
    if (plan.tile.max && (r = limits.window(FOVEA_BIND_TILE_MAX, pixels * kMaxBytes))) return r;
    if ((r = limits.groups(ceil_div(m.slice_columns, uint64_t{1} << m.columns_log2),
                           ceil_div(m.slice_rows, uint64_t{1} << m.rows_log2), 1)))
        return r;
    const Gathering gathering = gathering_of(plan);
    if ((r = limits.window(FOVEA_BIND_WORKSPACE, gathering.end() - m.extra_offset))) return r;
    if ((r = limits.workspace(workspace_of(plan), p.workspace_limit))) return r;
    return limits.cost(slice_flops(plan, m), max_cost);
}

// From the whole tile down: rows of workgroups, then their columns, then within a workgroup.
bool shrink(const MapTilePlan& m, uint64_t& rows, uint64_t& columns) {
    const uint64_t row_step = uint64_t{1} << m.rows_log2, column_step = uint64_t{1} << m.columns_log2;
    if (rows > row_step)
        rows = ceil_div(rows / 2, row_step) * row_step;
    else if (columns > column_step)
        columns = ceil_div(columns / 2, column_step) * column_step;
    else if (rows > 1)
        rows = ceil_div(rows, 2);
    else if (columns > 1)
        columns = ceil_div(columns, 2);
    else
        return false;
    return true;
}

uint64_t slices_down(const FoveaPlan_T& plan) {
    return ceil_div(uint64_t(plan.tile.rows.pixels), plan.vulkan.map.slice_rows);
}
uint64_t slices_across(const FoveaPlan_T& plan) {
    return ceil_div(uint64_t(plan.tile.keys.pixels), plan.vulkan.map.slice_columns);
}

void fill_map_costs(FoveaPlan_T& plan) {
    const MapTile& tile = plan.tile;
    const MapTilePlan& m = plan.vulkan.map;
    FoveaPlanInfo& info = plan.info;
    info.kernel = FOVEA_KERNEL_AUTO;
    info.dispatches_per_slice = (m.has_extra ? 2 : 1) + gathered_count(plan) + rotation_count(plan.vulkan);
    info.workspace_bytes = workspace_of(plan);
    info.workspace_alignment = kWorkspaceAlignment;
    info.slice_count = tile.head_count * slices_down(plan) * slices_across(plan);
    // Descriptors of neighbouring slices show some of the same pixels, too.
    info.slices_share_workspace = info.slice_count > 1;
    info.total_pairs = double(tile.head_count) * double(tile.rows.count) * double(tile.keys.count);
    info.visited_pairs = visible_cells(plan.problem, tile, batch_view(plan.problem, nullptr, tile.batch));
    info.flops = 2.0 * plan.problem.dim_qk * info.visited_pairs;
    info.max_slice_flops = slice_flops(plan, m);
    snprintf(info.reason, sizeof info.reason,
             "map tile: blocks of pixels, %u rows by %u keys at a time, no subgroup operations", m.rows,
             4 * m.threads);
}

// The dispatches of one slice: parameters, pixels.
class MapSlice {
  public:
    MapSlice(const FoveaPlan_T& plan, uint64_t slice)
        : plan_(plan), p(plan.problem), tile_(plan.tile), m(plan.vulkan.map), gathering_(gathering_of(plan)) {
        const uint64_t across = slices_across(plan), down = slices_down(plan);
        x_ = slice % across * m.slice_columns;
        y_ = slice / across % down * m.slice_rows;
        columns_ = std::min(m.slice_columns, uint64_t(tile_.keys.pixels) - x_);
        rows_ = std::min(m.slice_rows, uint64_t(tile_.rows.pixels) - y_);
        head_ = slice / across / down;
        const RowSpan span = rows_of_slice(plan, y_, rows_);
        block_ = {tile_.batch,         1, tile_.first_head + uint32_t(head_), 1, uint64_t(span.first),
                  uint64_t(span.count)};
    }

    void extra(FoveaDispatch& out) const {
        fill_extra(plan_, BlockWindows(plan_, block_), m.extra_offset, gathering_, out);
    }
    void gather(FoveaDispatch* out, uint32_t& count) const {
        gathering_.fill(BlockWindows(plan_, block_), out, count);
    }

    void rotate(FoveaDispatch* out, uint32_t& count) const { fill_rotation_in(plan_, block_, out, count); }

    void pixels(FoveaDispatch& out) const {
        DispatchBuilder d(out, Shader::map_tile, plan_.vulkan.gathered);
        const BlockWindows windows(plan_, block_);
        const Window q = windows.query(p.q, p.dim_qk, p.q_type), k = windows.keys(p.k, p.dim_qk, p.k_type);
        d.push(push_of(windows, q, k));
        const BoundTensor rows = bound(plan_.vulkan.rotated_in, FOVEA_BIND_Q, q);
        d.input(FOVEA_SLOT_Q, rows.source, rows.window);
        d.input(FOVEA_SLOT_K, FOVEA_BIND_K, k);
        d.input(FOVEA_SLOT_LSE, FOVEA_BIND_LSE, windows.lse);
        bind_visibility(d, p, windows);
        d.input_if(m.has_extra, FOVEA_SLOT_EXTRA, FOVEA_BIND_WORKSPACE,
                   {m.extra_offset, gathering_.end() - m.extra_offset, 0});
        bind_pixels(d, tile_.mass, FOVEA_SLOT_TILE_MASS, FOVEA_BIND_TILE_MASS, kMassBytes);
        bind_pixels(d, tile_.max, FOVEA_SLOT_TILE_MAX, FOVEA_BIND_TILE_MAX, kMaxBytes);
        if (is_software(plan_))
            d.stand_in(storage_buffer_limit(plan_.properties), {FOVEA_SLOT_EXTRA},
                       {FOVEA_SLOT_TILE_MASS, FOVEA_SLOT_TILE_MAX});
        d.spec(FOVEA_SPEC_THREADS, m.threads);
        d.spec(FOVEA_SPEC_A_TYPE, p.q_type);
        d.spec(FOVEA_SPEC_B_TYPE, p.k_type);
        d.spec(FOVEA_SPEC_ALIGNED, m.quads);
        d.spec(FOVEA_SPEC_ROWS, m.rows);
        d.spec(FOVEA_SPEC_PIXELS, m.pixels);
        d.call(m.general);
        d.groups(ceil_div(columns_, uint64_t{1} << m.columns_log2),
                 ceil_div(rows_, uint64_t{1} << m.rows_log2), 1);
        if (m.has_extra || plan_.vulkan.rotated_in.dim) d.after_earlier_ones();
    }

  private:
    // Pixel (0, y_) of the head, counted in the results.
    uint64_t first_pixel() const {
        return (head_ * uint64_t(tile_.rows.pixels) + y_) * uint64_t(tile_.keys.pixels);
    }
    uint32_t pixels_before() const { return uint32_t(first_pixel() % (kWorkspaceAlignment / kMaxBytes)); }

    shader::MapPush push_of(const BlockWindows& windows, const Window& q, const Window& k) const {
        shader::MapPush push{};
        push.slice = rows_view(plan_, block_);
        push.slice.flags |= (tile_.sampled ? shader::kFlagSampled : 0) |
                            (tile_.mass ? shader::kFlagTileMass : 0) | (tile_.max ? shader::kFlagTileMax : 0);
        push.q = head_view(p.q, q), push.k = head_view(p.k, k);
        push.group_splits = 1;  // rows are of one head
        push.dims = p.dim_qk | (pixels_before() | m.columns_log2 << 6 | m.rows_log2 << 10) << 16;
        push.lse_base = windows.row_base;
        push.scale = p.scale;
        push.logit = logit_view(p);
        push.first_row = uint32_t(tile_.rows.first), push.row_count = uint32_t(tile_.rows.count);
        push.first_key = uint32_t(tile_.keys.first), push.key_count = uint32_t(tile_.keys.count);
        push.pixels = uint32_t(tile_.keys.pixels | tile_.rows.pixels << 16);
        push.origin = uint32_t(x_ | y_ << 16);
        push.extent = uint32_t(columns_ | rows_ << 16);
        return push;
    }

    // The slice's rows of pixels, whole. The window starts at any device's alignment.
    void bind_pixels(DispatchBuilder& d, bool used, uint32_t slot, uint32_t source, uint64_t bytes) const {
        if (!used) return;
        const uint64_t before = pixels_before() % (kWorkspaceAlignment / bytes);
        const uint64_t count = before + rows_ * uint64_t(tile_.keys.pixels);
        d.output(slot, source, {(first_pixel() - before) * bytes, count * bytes, 0});
    }

    const FoveaPlan_T& plan_;
    const Problem& p;
    const MapTile& tile_;
    const MapTilePlan& m;
    const Gathering gathering_;
    uint64_t x_, y_, columns_, rows_, head_;  // pixels
    RowBlock block_;
};

}  // namespace

FoveaResult plan_vulkan_map_tile(FoveaPlan_T& plan, FoveaDiag* diag) {
    const Problem& p = plan.problem;
    MapTilePlan& m = plan.vulkan.map;
    FoveaResult r;
    if ((r = check_attention(plan, diag))) return r;
    for (const Shader shader : {Shader::map_tile, Shader::flash_extra, Shader::gather})
        if ((r = require_shader(shader, diag))) return r;
    if (p.dim_qk > kHalfWord)
        return fail(diag, FOVEA_UNSUPPORTED, "dim_qk", "dim_qk is %u; the limit of map tiles on Vulkan is %u",
                    p.dim_qk, kHalfWord);
    plan.vulkan.visible = visibility_of(p);
    m.quads = score_rows_are_quads(p);
    m.has_extra = gathered_count(plan) || needs_extra(p);
    // A software driver takes a second or more to compile a pipeline: one serves all problems there.
    m.general = is_software(plan) || needs_extra(p) || has_logit_steps(p);
    m.extra_offset = workspace_head_bytes(plan.properties);
    choose_workgroup(plan, m);
    m.slice_rows = uint64_t(plan.tile.rows.pixels), m.slice_columns = uint64_t(plan.tile.keys.pixels);
    while (check_slice(plan, m, slice_cost(plan), nullptr) != FOVEA_OK) {
        if (shrink(m, m.slice_rows, m.slice_columns)) continue;
        if ((r = check_slice(plan, m, refusing_slice_cost(plan), diag))) return r;
        break;
    }
    fill_map_costs(plan);
    place_rotated(plan.vulkan, plan.info.workspace_bytes - rotated_bytes(plan.vulkan));
    return FOVEA_OK;
}

FoveaResult map_tile_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                           FoveaDiag*) {
    const MapSlice make(plan, slice);
    count = 0;
    make.rotate(out, count);
    if (plan.vulkan.map.has_extra) make.extra(out[count++]);
    make.gather(out, count);
    make.pixels(out[count++]);
    return FOVEA_OK;
}

void explain_vulkan_map_tile(const FoveaPlan_T& plan, TextSink& text) {
    const MapTilePlan& m = plan.vulkan.map;
    text.line("workgroups of %u threads for %u x %u pixels; a slice: %llu x %llu pixels of one head",
              m.threads, 1u << m.columns_log2, 1u << m.rows_log2,
              static_cast<unsigned long long>(m.slice_columns),
              static_cast<unsigned long long>(m.slice_rows));
}

}  // namespace fovea
