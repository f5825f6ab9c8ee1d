#include "problem/bindings.hpp"

#include "problem/status.hpp"

#include <cstdio>
#include <iterator>

namespace fovea {
namespace {

constexpr const char* kNames[] = {
    "Q",      "K",         "V",         "O",           "MASK", "BIAS",    "DROPOUT_MASK",
    "ALIBI",  "SINKS",     "SEQUENCES", "BLOCK_TABLE", "LSE",  "SCORES",  "CAPPED",
    "MASKED", "WEIGHTS",   "ROW_STATS", "X",           "Y",    "WEIGHT",  "COS",
    "SIN",    "POSITIONS", "TILE_MASS", "TILE_MAX",    "DO",   "DQ",      "DK",
    "DV",     "DBIAS",     "DALIBI",    "DSINKS",      "DLSE", "PART_LSE"};
static_assert(std::size(kNames) == FOVEA_BIND_PART_LSE + 1);

// Explains for each binding why a description does not have it. Null: only other operations have it.
constexpr const char* kMissing[std::size(kNames)] = {
    nullptr,
    nullptr,
    nullptr,
    "FOVEA_OUTPUT_O is not in outputs",
    "mask.present is 0",
    "bias.present, or has_bias of a linear layer, is 0",
    "dropout_mask.present is 0",
    "FOVEA_FLAG_ALIBI is not set",
    "FOVEA_FLAG_SINKS is not set",
    "FOVEA_FLAG_VARLEN, or has_sequences of an append, is not set",
    "page_size is 0",
    "FOVEA_OUTPUT_LSE is not in outputs",
    "FOVEA_OUTPUT_SCORES is not in outputs",
    "FOVEA_OUTPUT_CAPPED is not in outputs",
    "FOVEA_OUTPUT_MASKED is not in outputs",
    "FOVEA_OUTPUT_WEIGHTS is not in outputs",
    "FOVEA_OUTPUT_ROW_STATS is not in outputs",
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    "table_rows is 0",
    "FOVEA_TILE_MASS is not in the tile's outputs",
    "FOVEA_TILE_MAX is not in the tile's outputs"};

struct FieldName {
    char text[48];
    FieldName(uint32_t binding, const char* part) {
        if (binding == FOVEA_BIND_WORKSPACE)
            snprintf(text, sizeof text, "workspace%s", part);
        else
            snprintf(text, sizeof text, "bindings[%s]%s", binding_name(binding), part);
    }
};

uint64_t alignment_of(const BindingRules& rules, uint32_t binding, const FoveaPlanInfo& info) {
    if (binding == FOVEA_BIND_WORKSPACE && info.workspace_alignment > rules.alignment)
        return info.workspace_alignment;
    if (rules.alignment) return rules.alignment;
    if (rules.narrow.one_byte >> binding & 1) return 1;
    return rules.narrow.two_bytes >> binding & 1 ? 2 : 4;
}

bool overlap(const BindingRange& a, const BindingRange& b) {
    return a.given && b.given && a.size && b.size && a.buffer == b.buffer && a.begin < b.begin + b.size &&
           b.begin < a.begin + a.size;
}

FoveaResult check_one(const FoveaPlanInfo& info, const BindingRules& rules, const BindingRange& range,
                      uint32_t binding, FoveaDiag* diag) {
    const uint64_t needed =
        binding == FOVEA_BIND_WORKSPACE ? info.workspace_bytes : info.binding_bytes[binding];
    if (needed == 0) return FOVEA_OK;
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    // Names are put together only where something is wrong: every recorded slice comes through here.
    const auto name = [&](const char* part) { return FieldName(binding, part); };
    const char* const size = rules.host_memory ? ".size_bytes" : ".size";
    // Such a tensor is in nobody's memory, whatever the host says that it gives.
    if (rules.host_memory && needed > rules.most_bytes)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, name(size).text,
                    "%s would be %llu; memory of this process ends at %llu bytes", name(size).text,
                    number(needed), number(rules.most_bytes));
    const char* const begin = rules.host_memory ? ".data" : ".offset";
    if (!range.given)
        return fail(diag, FOVEA_INVALID_ARGUMENT, name("").text,
                    "%s is null; the plan needs %llu bytes there", name("").text, number(needed));
    if (range.size < needed)
        return fail(diag, FOVEA_INVALID_ARGUMENT, name(size).text,
                    "%s is %llu; the plan needs %llu bytes there", name(size).text, number(range.size),
                    number(needed));
    const uint64_t alignment = alignment_of(rules, binding, info);
    if (range.begin % alignment != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, name(begin).text,
                    rules.host_memory ? "%s is 0x%llx; it must be a multiple of %llu bytes"
                                      : "%s is %llu; it must be a multiple of %llu bytes",
                    name(begin).text, number(range.begin), number(alignment));
    if (range.begin > UINT64_MAX - range.size)
        return fail(diag, FOVEA_SIZE_OVERFLOW, name(size).text,
                    "%s is %llu, which runs past the end of all addresses", name(size).text,
                    number(range.size));
    return FOVEA_OK;
}

// A buffer that nothing reads is a switch that was forgotten, not a buffer too many.
FoveaResult unread(uint32_t binding, FoveaDiag* diag) {
    const FieldName name(binding, "");
    const char* why = is_named_binding(binding) ? kMissing[binding] : nullptr;
    return fail(diag, FOVEA_INVALID_ARGUMENT, name.text, "%s is given, but this plan has no such binding%s%s",
                name.text, why ? ": " : "", why ? why : "");
}

// Returns the bytes that the plan uses. A larger buffer may contain other data after them.
BindingRange used_part(const FoveaPlanInfo& info, const BindingRange& range, uint32_t binding) {
    BindingRange used = range;
    used.size = binding == FOVEA_BIND_WORKSPACE ? info.workspace_bytes : info.binding_bytes[binding];
    return used;
}

}  // namespace

const char* binding_name(uint32_t binding) {
    if (binding == FOVEA_BIND_WORKSPACE) return "workspace";
    return binding < std::size(kNames) ? kNames[binding] : "?";
}

FoveaResult check_bindings(const FoveaPlanInfo& info, const BindingRules& rules,
                           const BindingRange (&ranges)[FOVEA_BIND_COUNT], FoveaDiag* diag) {
    const BindingMask workspace_bit = binding_bit(FOVEA_BIND_WORKSPACE);
    const BindingMask used = info.binding_mask | (info.workspace_bytes ? workspace_bit : 0);
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (used >> i & 1) {
            if (FoveaResult r = check_one(info, rules, ranges[i], i, diag)) return r;
        } else if (i != FOVEA_BIND_WORKSPACE && ranges[i].given && ranges[i].size &&
                   !(info.ignored_mask >> i & 1)) {
            return unread(i, diag);
        }
    }
    const BindingMask written = info.output_mask | workspace_bit;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(used >> i & 1) || !(written >> i & 1)) continue;
        for (uint32_t j = 0; j < FOVEA_BIND_COUNT; ++j) {
            if (j == i || !(used >> j & 1)) continue;
            const BindingRange a = used_part(info, ranges[i], i), b = used_part(info, ranges[j], j);
            if (!overlap(a, b)) continue;
            if (rules.in_place && i == FOVEA_BIND_Y && j == FOVEA_BIND_X && a.begin == b.begin) continue;
            const bool of_rows = i == FOVEA_BIND_Y && j == FOVEA_BIND_X;
            return fail(diag, FOVEA_INVALID_ARGUMENT, FieldName(i, "").text, "%s overlaps %s%s",
                        FieldName(i, "").text, FieldName(j, "").text,
                        of_rows ? "; only rope works in place, with the same memory, type and strides" : "");
        }
    }
    return FOVEA_OK;
}

bool is_named_binding(uint32_t index) { return index < std::size(kNames); }

FoveaResult check_binding_count(uint32_t count, FoveaDiag* diag) {
    if (count <= kMaxBindings) return FOVEA_OK;
    return fail(diag, FOVEA_INVALID_ARGUMENT, "binding_count", "binding_count is %u; the limit is %u", count,
                kMaxBindings);
}

FoveaResult unknown_binding(uint32_t index, FoveaDiag* diag) {
    if (index == FOVEA_BIND_WORKSPACE)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "bindings",
                    "bindings[FOVEA_BIND_WORKSPACE] is given; the workspace has a field of its own");
    return fail(diag, FOVEA_ABI_MISMATCH, "bindings",
                "bindings[%u] is given; the last that this library knows is %zu", index,
                std::size(kNames) - 1);
}

FoveaResult check_slices(uint64_t first, uint64_t count, uint64_t slices_of_plan, uint64_t& end,
                         FoveaDiag* diag) {
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    if (first > slices_of_plan)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "first_slice",
                    "first_slice is %llu; the plan has %llu slices", number(first), number(slices_of_plan));
    if (count > slices_of_plan - first)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "slice_count",
                    "slice_count is %llu from slice %llu on; the plan has %llu slices", number(count),
                    number(first), number(slices_of_plan));
    end = count ? first + count : slices_of_plan;
    return FOVEA_OK;
}

}  // namespace fovea
