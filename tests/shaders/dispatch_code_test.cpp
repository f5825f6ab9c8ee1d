// foveaDispatchCode: of the buffers that a shader declares for all calls together, those that one dispatch
// binds, one variable for each.
#include "shaders/planned.hpp"
#include "shaders/spirv_blocks.hpp"
#include "shaders/spirv_module.hpp"

#include "plan/vulkan/gather.hpp"
#include "plan/vulkan/shaders.hpp"
#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace fovea::test {
namespace {

constexpr uint32_t kStorageBuffer16BitAccess = 4433;  // the SPIR-V specification's number of the capability

// Devices that take different kernels, or different modules of one.
std::vector<FoveaDeviceProperties> devices() {
    std::vector<FoveaDeviceProperties> all;
    all.push_back(gpu_properties());
    all.push_back(floor_properties());
    all.back().features = FOVEA_FEATURE_DEVICE_ATOMICS;
    all.push_back(gpu_properties());
    add_subgroups(all.back(), 32, 32);
    all.push_back(gpu_properties());
    add_shuffles(all.back(), 8);
    all.push_back(gpu_properties());
    add_matrices(all.back());
    all.push_back(gpu_properties());
    add_flexible_matrices(all.back(), 128);
    return all;
}

// The optional features of a call besides q, k, v and o; each is a bit of a set.
using Option = void (*)(FoveaAttentionDesc&);
constexpr Option kOptions[] = {
    [](FoveaAttentionDesc& d) {
        d.mask.present = 1;
        d.mask.type = FOVEA_U8;
    },
    [](FoveaAttentionDesc& d) { d.bias.present = 1; },
    [](FoveaAttentionDesc& d) {
        d.dropout_mask.present = 1;
        d.dropout_mask.type = FOVEA_U8;
        d.dropout_p = 0.25f;
    },
    [](FoveaAttentionDesc& d) { d.flags |= FOVEA_FLAG_ALIBI, d.align = FOVEA_ALIGN_TOP_LEFT; },
    [](FoveaAttentionDesc& d) { d.flags |= FOVEA_FLAG_SINKS; },
    [](FoveaAttentionDesc& d) { d.flags |= FOVEA_FLAG_VARLEN; },
    [](FoveaAttentionDesc& d) {
        d.page_size = 16;
        d.page_count = 400;
        d.block_table_pages = (d.len_kv + 15) / 16;
    },
    [](FoveaAttentionDesc& d) { d.outputs |= FOVEA_OUTPUT_LSE; },
    [](FoveaAttentionDesc& d) { d.outputs |= FOVEA_OUTPUT_ROW_STATS; },
};
constexpr uint32_t kAll = (1u << std::size(kOptions)) - 1;

// None of them, one, two, all but one and all.
std::vector<uint32_t> sets() {
    std::vector<uint32_t> chosen;
    for (uint32_t set = 0; set <= kAll; ++set)
        if (std::popcount(set) <= 2 || std::popcount(kAll & ~set) <= 1) chosen.push_back(set);
    return chosen;
}

FoveaAttentionDesc call_of(uint32_t set) {
    FoveaAttentionDesc d = attention_desc(2, 4, 2, 70, 2 * shader::kFixedSplitKeys, 40, 24);
    d.outputs = FOVEA_OUTPUT_O;
    for (size_t i = 0; i < std::size(kOptions); ++i)
        if (set >> i & 1) kOptions[i](d);
    return d;
}

uint32_t slots_of(const FoveaDispatch& d) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < d.binding_count; ++i) mask |= 1u << d.bindings[i].slot;
    return mask;
}

// The most buffers that a dispatch of each shader binds.
using Most = std::map<std::string, uint32_t>;

// Numbers of 16 bits are in memory where the tensor that is written has them, and the device a way to store
// one.
bool stores_16_bits(const FoveaDispatch& d, uint32_t output_slot) {
    if (d.spec_count <= FOVEA_SPEC_STORED_TYPE) return false;
    const uint32_t stored = d.spec[FOVEA_SPEC_STORED_TYPE];
    if (stored != FOVEA_F16 && stored != FOVEA_BF16 && stored != FOVEA_Q8_0 && stored != FOVEA_Q4_0)
        return false;
    return binding_at(d, output_slot) != nullptr;
}

// Checks that the declarations of a dispatch's module are bound, once each, and written only if the dispatch
// says so. The module requires 16-bit storage only if it stores such elements.
void expect_fits(const FoveaDispatch& d, uint32_t output_slot = FOVEA_SLOT_O) {
    const Result<std::vector<uint32_t>> words = dispatch_code(d);
    ASSERT_TRUE(words) << words.error().text;
    EXPECT_EQ(SpirvBlocks::read(*words).trouble, "");
    const SpirvModule m = SpirvModule::read(*words);
    EXPECT_EQ(m.push_bytes, d.push_words * 4);
    EXPECT_FALSE(m.bindings.empty());
    EXPECT_EQ(m.capabilities.contains(kStorageBuffer16BitAccess), stores_16_bits(d, output_slot));
    for (const auto& [slot, declared] : m.bindings) {
        const FoveaDispatchBinding* bound = binding_at(d, slot);
        ASSERT_NE(bound, nullptr) << "slot " << slot << " is declared and not bound";
        EXPECT_EQ(declared.variables, 1u) << "slot " << slot;
        EXPECT_EQ(declared.read_only, bound->written == 0) << "slot " << slot;
    }
    for (uint32_t i = 0; i < d.binding_count; ++i)
        EXPECT_TRUE(!d.bindings[i].written || m.bindings.contains(d.bindings[i].slot))
            << "slot " << d.bindings[i].slot;
}

void expect_plan_fits(const Plan& plan, std::set<std::vector<uint32_t>>& seen, Most& most,
                      uint64_t slice = 0) {
    for (const FoveaDispatch& d : dispatches_of(plan, slice)) {
        std::vector<uint32_t> key{d.shader, slots_of(d)};
        key.insert(key.end(), d.spec, d.spec + d.spec_count);
        uint32_t& count = most[foveaShaderName(d.shader)];
        count = std::max(count, d.binding_count);
        EXPECT_LE(d.binding_count, kMaxStorageBuffers) << foveaShaderName(d.shader);
        if (!seen.insert(key).second) continue;
        SCOPED_TRACE(testing::Message()
                     << foveaShaderName(d.shader) << ", slots " << std::hex << slots_of(d));
        expect_fits(d);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(DispatchCode, declares_what_is_bound_once_in_every_call) {
    std::set<std::vector<uint32_t>> seen;
    Most most;
    for (const FoveaDeviceProperties& properties : devices()) {
        for (const uint32_t set : sets()) {
            for (const FoveaKernel kernel :
                 {FOVEA_KERNEL_AUTO, FOVEA_KERNEL_STAGED, FOVEA_KERNEL_FLASH, FOVEA_KERNEL_FLASH_COOPMAT2}) {
                if (kernel == FOVEA_KERNEL_FLASH_COOPMAT2 && !(properties.features & FOVEA_FEATURE_COOPMAT2))
                    continue;
                for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16, FOVEA_BF16}) {
                    const bool half = type != FOVEA_F32;
                    SCOPED_TRACE(testing::Message() << "set " << std::hex << set << ", kernel " << kernel);
                    FoveaAttentionDesc d = call_of(set);
                    d.kernel = kernel;
                    d.precision = FOVEA_PRECISION_F16_INPUTS;
                    if (half) d.q_type = d.k_type = d.v_type = d.o_type = type;
                    if (set & 1) d.dim_qk = 41;
                    if (set & 2) d.flags |= FOVEA_FLAG_FIXED_SPLITS;
                    if (kernel == FOVEA_KERNEL_FLASH_COOPMAT2 && (d.outputs & FOVEA_OUTPUT_ROW_STATS))
                        continue;  // rejected
                    if (kernel == FOVEA_KERNEL_STAGED && half)
                        d.outputs |= FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED | FOVEA_OUTPUT_MASKED |
                                     FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_ROW_STATS;
                    const Result<Plan> plan = plan_attention(properties, d);
                    ASSERT_TRUE(plan) << plan.error().text;
                    expect_plan_fits(*plan, seen, most);
                    if (testing::Test::HasFailure()) return;
                }
            }
        }
    }
    // The floor as data: what a device must let each shader bind for every call there is.
    const Most expected = {{"flash", 8},          {"flash_combine", 6},       {"flash_coopmat", 8},
                           {"flash_coopmat2", 8}, {"flash_extra", 1},         {"gather", 2},
                           {"mask_map", 3},       {"scores_direct", 6},       {"scores_shared", 6},
                           {"softmax", 8},        {"weighted_sum_direct", 6}, {"weighted_sum_shared", 6}};
    for (const auto& [name, count] : expected) EXPECT_EQ(most[name], count) << name;
}

TEST(DispatchCode, reads_a_compressed_cache_by_words_alone) {
    std::set<std::vector<uint32_t>> seen;
    Most most;
    for (const FoveaDeviceProperties& properties : devices()) {
        for (const uint32_t set : sets()) {
            for (const FoveaDtype type : {FOVEA_F8_E4M3, FOVEA_F8_E5M2, FOVEA_Q8_0, FOVEA_Q4_0}) {
                FoveaAttentionDesc d = call_of(set);
                d.dim_qk = d.dim_v = 64;
                d.k_type = type;
                if (set & 1) d.v_type = type;
                if (set & 2) d.q_strides = {4 * 70 * 65, 70 * 65, 65};  // no quads
                for (const FoveaKernel kernel :
                     {FOVEA_KERNEL_FLASH, FOVEA_KERNEL_FLASH_COOPMAT, FOVEA_KERNEL_FLASH_COOPMAT2}) {
                    const bool flexible = kernel == FOVEA_KERNEL_FLASH_COOPMAT2;
                    if (kernel != FOVEA_KERNEL_FLASH && !properties.coopmat_m) continue;
                    if (flexible && (!properties.coopmat2_m || (d.outputs & FOVEA_OUTPUT_ROW_STATS)))
                        continue;
                    d.kernel = kernel;
                    d.precision = FOVEA_PRECISION_F16_INPUTS;
                    const Result<Plan> plan = plan_attention(properties, d);
                    ASSERT_TRUE(plan) << plan.error().text;
                    expect_plan_fits(*plan, seen, most);
                    if (testing::Test::HasFailure()) return;
                }
            }
        }
    }
    for (const char* shader : {"flash", "flash_coopmat", "flash_coopmat2"})
        EXPECT_EQ(most[shader], 8u) << shader;
    EXPECT_EQ(most["flash_subgroup"] + most["flash_shuffle"], 0u);
}

TEST(DispatchCode, map_tiles_and_gradients_bind_eight_buffers_at_most) {
    std::set<std::vector<uint32_t>> seen;
    Most most;
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    tile.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    for (const FoveaDeviceProperties& properties : {gpu_properties(), floor_properties()}) {
        for (const uint32_t set : sets()) {
            SCOPED_TRACE(testing::Message() << "set " << std::hex << set);
            const FoveaAttentionDesc d = call_of(set);
            const Result<Plan> map = plan_map_tile(properties, d, tile);
            ASSERT_TRUE(map) << map.error().text;
            expect_plan_fits(*map, seen, most);
            if (d.page_size) continue;  // has no gradients
            for (const bool lse_gradient : {false, true}) {
                FoveaAttentionBackwardDesc backward =
                    attention_backward(FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V);
                if (d.bias.present) backward.gradients |= FOVEA_GRAD_BIAS;
                if (d.flags & FOVEA_FLAG_ALIBI) backward.gradients |= FOVEA_GRAD_ALIBI;
                if (d.flags & FOVEA_FLAG_SINKS) backward.gradients |= FOVEA_GRAD_SINKS;
                backward.has_lse_gradient = lse_gradient;
                const Result<Plan> plan = plan_attention_backward(properties, d, backward);
                ASSERT_TRUE(plan) << plan.error().text;
                for (uint64_t slice = 0; slice < plan->info().slice_count; ++slice)
                    expect_plan_fits(*plan, seen, most, slice);
            }
            if (testing::Test::HasFailure()) return;
        }
    }
    EXPECT_EQ(most["map_tile"], 8u);
    EXPECT_EQ(most["backward_query"], 7u);  // the passes over keys need lse gathered already
    EXPECT_EQ(most["backward_key"], 8u);
    EXPECT_EQ(most["backward_bias"], 7u);  // as these do
    EXPECT_EQ(most["backward_row"], 7u);
    EXPECT_EQ(most["backward_sum"], 3u);
}

TEST(DispatchCode, elementwise_operations_and_linear_ask_for_16_bit_storage_where_they_use_it) {
    FoveaRopeDesc rope = foveaRopeDesc();
    FoveaAppendDesc append = foveaAppendDesc();
    FoveaGatherDesc gather = foveaGatherDesc();
    FoveaMergeDesc merge = foveaMergeDesc();
    FoveaLinearDesc linear = foveaLinearDesc();
    rope.batch = rope.heads = append.batch = append.heads = merge.batch = merge.heads = 2;
    gather.batch = gather.heads = 2;
    rope.dim = append.dim = gather.dim = merge.dim = 8;
    rope.len = append.len = append.capacity = gather.len = gather.capacity = merge.len = 5;
    merge.parts = 3;
    linear.n_in = 12, linear.n_out = 20, linear.rows = 33;
    for (const FoveaDeviceProperties& properties : devices()) {
        for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16, FOVEA_BF16}) {
            rope.y_type = append.y_type = gather.y_type = merge.y_type = linear.y_type = type;
            const Result<Plan> plans[] = {plan_rope(properties, rope), plan_append(properties, append),
                                          plan_gather(properties, gather), plan_merge(properties, merge),
                                          plan_linear(properties, linear)};
            for (const Result<Plan>& plan : plans) {
                ASSERT_TRUE(plan) << plan.error().text;
                for (const FoveaDispatch& d : dispatches_of(*plan, 0)) {
                    SCOPED_TRACE(testing::Message() << foveaShaderName(d.shader) << ", type " << type);
                    expect_fits(d, FOVEA_SLOT_Y);
                    EXPECT_EQ(stores_16_bits(d, FOVEA_SLOT_Y),
                              type != FOVEA_F32 && (properties.features & FOVEA_FEATURE_F16_STORAGE) != 0);
                }
            }
        }
    }
}

TEST(DispatchCode, linear_reads_blocks_of_weights_by_words_alone) {
    FoveaLinearDesc linear = foveaLinearDesc();
    linear.n_in = 512, linear.n_out = 20;
    for (const FoveaDeviceProperties& properties : devices())
        for (const FoveaDtype type :
             {FOVEA_Q8_0, FOVEA_Q4_0, FOVEA_Q4_1, FOVEA_Q5_0, FOVEA_Q5_1, FOVEA_Q4_K, FOVEA_Q5_K, FOVEA_Q6_K})
            for (const uint64_t rows : {1u, 300u}) {
                SCOPED_TRACE(testing::Message() << "type " << type << ", rows " << rows);
                linear.w_type = type, linear.rows = rows;
                const Result<Plan> plan = plan_linear(properties, linear);
                ASSERT_TRUE(plan) << plan.error().text;
                const FoveaDispatch d = dispatches_of(*plan, 0)[0];
                expect_fits(d, FOVEA_SLOT_Y);
                EXPECT_EQ(binding_at(d, FOVEA_SLOT_W)->size % 4, 0u);
            }
}

TEST(DispatchCode, caches_are_moved_by_words_and_halves_of_words) {
    constexpr FoveaDtype kTypes[] = {FOVEA_F32,     FOVEA_F16,  FOVEA_BF16, FOVEA_F8_E4M3,
                                     FOVEA_F8_E5M2, FOVEA_Q8_0, FOVEA_Q4_0};
    FoveaAppendDesc append = foveaAppendDesc();
    FoveaGatherDesc gather = foveaGatherDesc();
    append.batch = append.heads = gather.batch = gather.heads = 2;
    append.dim = gather.dim = 32;
    append.len = append.capacity = gather.len = gather.capacity = 5;
    for (FoveaDeviceProperties properties : devices()) {
        properties.features |= FOVEA_FEATURE_DEVICE_ATOMICS;
        for (const FoveaDtype x_type : kTypes) {
            for (const FoveaDtype y_type : kTypes) {
                append.x_type = gather.x_type = x_type, append.y_type = gather.y_type = y_type;
                const Result<Plan> plans[] = {plan_append(properties, append),
                                              plan_gather(properties, gather)};
                for (const Result<Plan>& plan : plans) {
                    ASSERT_TRUE(plan) << plan.error().text;
                    SCOPED_TRACE(testing::Message() << "from type " << x_type << " to " << y_type);
                    const uint64_t bytes = uint64_t(stored_bytes(y_type, 2 * 2 * 5 * 32));
                    EXPECT_EQ(plan->info().tensor_bytes[FOVEA_BIND_Y], bytes);
                    expect_fits(dispatches_of(*plan, 0)[0], FOVEA_SLOT_Y);
                }
            }
        }
    }
}

// The uses of 16-bit floats in a module.
struct Floats16 {
    std::vector<uint32_t> encodings;  // for each such type: its operand, or none for IEEE's
    uint32_t matrices = 0;            // types of matrices whose numbers they are
    uint32_t uses = 0;                // instructions that make one or a vector of them
    uint32_t names = 0;               // OpExtension "SPV_KHR_bfloat16", between capabilities and memory model
    std::set<uint32_t> capabilities;
};
constexpr uint32_t kIeee = 0xffffffffu;

Floats16 floats16_of(const std::vector<uint32_t>& words) {
    enum : uint32_t {
        kExtension = 10,
        kMemoryModel = 14,
        kCapability = 17,
        kTypeFloat = 22,
        kTypeVector = 23,
        kFirstInFunctions = 54,
        kTypeMatrix = 4456
    };
    Floats16 found;
    std::set<uint32_t> types;
    bool before_model = true, in_functions = false;
    for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
        const uint32_t op = words[at] & 0xffffu, length = words[at] >> 16;
        const uint32_t* o = &words[at + 1];
        if (op == kMemoryModel) before_model = false;
        in_functions |= op == kFirstInFunctions;
        if (op == kCapability) {
            EXPECT_EQ(found.names, 0u) << "an extension before a capability";
            found.capabilities.insert(o[0]);
        }
        if (op == kExtension && std::string(reinterpret_cast<const char*>(o)) == "SPV_KHR_bfloat16") {
            EXPECT_TRUE(before_model);
            EXPECT_EQ(length, 6u);
            ++found.names;
        }
        if (op == kTypeFloat && o[1] == 16) {
            types.insert(o[0]);
            found.encodings.push_back(length > 3 ? o[2] : kIeee);
        }
        if (op == kTypeVector && types.contains(o[1])) types.insert(o[0]);
        if (op == kTypeMatrix && types.contains(o[1])) ++found.matrices;
        // An instruction with a result begins with its type; in others that word is an ID, but never a
        // type's.
        if (in_functions && length > 2 && types.contains(o[0])) ++found.uses;
    }
    return found;
}

// No compiler here knows bfloat16: the words are compared with what SPV_KHR_bfloat16 asks for.
TEST(DispatchCode, makes_bfloat16_the_type_of_factors_and_of_nothing_else) {
    FOVEA_NEEDS_SHADER(Shader::flash_coopmat);
    FoveaDeviceProperties properties = gpu_properties();
    add_matrices(properties);
    properties.features |= FOVEA_FEATURE_BF16_INPUTS;
    properties.features &= ~uint32_t{FOVEA_FEATURE_F16_ARITHMETIC};
    const auto expect_bfloat16 = [](const Plan& plan, Shader shader) {
        constexpr uint32_t kFloat16 = 9, kBfloat16Type = 5116, kBfloat16CooperativeMatrix = 5118;
        for (FoveaDispatch d : dispatches_of(plan, 0)) {
            if (d.shader != uint32_t(shader)) continue;
            SCOPED_TRACE(foveaShaderName(d.shader));
            expect_fits(d, shader == Shader::linear_coopmat ? FOVEA_SLOT_Y : FOVEA_SLOT_O);
            const Result<std::vector<uint32_t>> words = dispatch_code(d);
            ASSERT_TRUE(words) << words.error().text;
            const Floats16 bfloat16 = floats16_of(*words);
            EXPECT_EQ(bfloat16.encodings, std::vector<uint32_t>{0});
            EXPECT_EQ(bfloat16.matrices, 2u) << "the two factors";
            EXPECT_EQ(bfloat16.uses, 0u);
            EXPECT_EQ(bfloat16.names, 1u);
            EXPECT_FALSE(bfloat16.capabilities.contains(kFloat16));
            EXPECT_TRUE(bfloat16.capabilities.contains(kBfloat16Type));
            EXPECT_TRUE(bfloat16.capabilities.contains(kBfloat16CooperativeMatrix));
            ASSERT_TRUE(d.spec[FOVEA_SPEC_CALL] & shader::kBfloat16Call);
            d.spec[FOVEA_SPEC_CALL] &= ~shader::kBfloat16Call;
            const Floats16 float16 = floats16_of(*dispatch_code(d));
            EXPECT_EQ(float16.encodings, std::vector<uint32_t>{kIeee});
            EXPECT_EQ(float16.matrices, 2u);
            EXPECT_GT(float16.uses, 0u);
            EXPECT_EQ(float16.names, 0u);
            EXPECT_TRUE(float16.capabilities.contains(kFloat16));
            EXPECT_FALSE(float16.capabilities.contains(kBfloat16Type));
        }
    };
    for (const uint32_t set : sets()) {
        for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16, FOVEA_BF16, FOVEA_F8_E4M3, FOVEA_Q4_0}) {
            SCOPED_TRACE(testing::Message() << "set " << std::hex << set << ", type " << type);
            FoveaAttentionDesc d = call_of(set);
            d.precision = FOVEA_PRECISION_BF16_INPUTS;
            d.dim_qk = d.dim_v = 64;
            d.k_type = d.v_type = type;
            if (is_float(type)) d.q_type = d.o_type = type;
            const Result<Plan> plan = plan_attention(properties, d);
            ASSERT_TRUE(plan) << plan.error().text;
            ASSERT_EQ(plan->info().kernel, FOVEA_KERNEL_FLASH_COOPMAT) << plan->info().reason;
            EXPECT_NE(std::string(plan->explain()).find("16 x 16 x 16 in bfloat16"), std::string::npos);
            expect_bfloat16(*plan, Shader::flash_coopmat);
            if (testing::Test::HasFailure()) return;
        }
    }
    FoveaLinearDesc linear = foveaLinearDesc();
    linear.precision = FOVEA_PRECISION_BF16_INPUTS;
    linear.n_in = 512, linear.n_out = 20, linear.rows = 300;
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_BF16, FOVEA_Q4_0, FOVEA_Q6_K}) {
        for (const uint32_t in_out : {0u, 1u}) {
            if (in_out && !is_float(type)) continue;
            linear.w_type = type, linear.weight_is_in_out = in_out;
            const Result<Plan> plan = plan_linear(properties, linear);
            ASSERT_TRUE(plan) << plan.error().text;
            expect_bfloat16(*plan, Shader::linear_coopmat);
        }
    }
}

// A driver may compute both ways of a branch that its constants decide, at the price of both.
TEST(DispatchCode, has_no_blocks_that_the_constants_do_not_reach) {
    FoveaAttentionDesc d = call_of(0);
    for (const FoveaKernel kernel : {FOVEA_KERNEL_FLASH, FOVEA_KERNEL_STAGED}) {
        d.kernel = kernel;
        for (const FoveaDeviceProperties& properties : devices()) {
            const Result<Plan> plan = plan_attention(properties, d);
            ASSERT_TRUE(plan) << plan.error().text;
            for (const FoveaDispatch& one : dispatches_of(*plan, 0)) {
                SCOPED_TRACE(foveaShaderName(one.shader));
                size_t count = 0;
                const uint32_t* module = foveaShaderCode(one.shader, &count);
                const SpirvBlocks whole = SpirvBlocks::read({module, count});
                const Result<std::vector<uint32_t>> code = dispatch_code(one);
                ASSERT_TRUE(code) << code.error().text;
                const SpirvBlocks fitted = SpirvBlocks::read(*code);
                EXPECT_EQ(whole.trouble, "");
                EXPECT_EQ(fitted.trouble, "");
                EXPECT_LT(fitted.count, whole.count);
                // The rest are the empty ends of constructs that are left in another way.
                EXPECT_LE(fitted.count - fitted.reached, fitted.count / 16);
            }
        }
    }
}

// A mask and a bias that fit a descriptor each, and not one together.
TEST(DispatchCode, a_driver_of_software_binds_what_is_too_large_to_be_gathered) {
    const FoveaAttentionDesc d = call_of(3);
    const uint64_t pairs = uint64_t(d.len_q * d.len_kv);  // a byte each of the mask, four of the bias
    FoveaDeviceProperties properties = floor_properties();
    const FoveaAttentionBackwardDesc backward = attention_backward(FOVEA_GRAD_K);
    for (const bool together : {true, false}) {
        properties.max_storage_range = (together ? 6 : 4) * pairs + 1024;
        const Result<Plan> plan = plan_attention_backward(properties, d, backward);
        ASSERT_TRUE(plan) << plan.error().text;
        const std::vector<FoveaDispatch> dispatches = dispatches_of(*plan, plan->info().slice_count - 1);
        const auto gathers =
            std::count_if(dispatches.begin(), dispatches.end(),
                          [](const FoveaDispatch& one) { return one.shader == uint32_t(Shader::gather); });
        EXPECT_EQ(gathers, together ? 3 : 2);  // lse is the first that goes to keep within 8 buffers
        for (const FoveaDispatch& one : dispatches) EXPECT_LE(one.binding_count, kMaxStorageBuffers);
    }
}

// The pipelines are slow to compile: common calls share one.
TEST(DispatchCode, a_driver_of_software_binds_the_same_slots_for_common_calls) {
    std::set<uint32_t> slots;
    for (const uint32_t set : {0u, 32u, 128u, 160u}) {
        const Result<Plan> plan = plan_attention(floor_properties(), call_of(set));
        ASSERT_TRUE(plan) << plan.error().text;
        for (const FoveaDispatch& d : dispatches_of(*plan, 0)) {
            if (d.shader != uint32_t(Shader::flash)) continue;
            slots.insert(slots_of(d));
            expect_fits(d);
        }
    }
    EXPECT_EQ(slots.size(), 1u);
}

TEST(DispatchCode, refuses_what_is_no_dispatch) {
    const Result<Plan> plan = plan_attention(gpu_properties(), call_of(0));
    ASSERT_TRUE(plan);
    const FoveaDispatch good = dispatches_of(*plan, 0)[0];
    const struct {
        const char* field;
        void (*edit)(FoveaDispatch&);
    } cases[] = {{"dispatch.shader", [](FoveaDispatch& d) { d.shader = kShaderCount; }},
                 {"dispatch.spec_count", [](FoveaDispatch& d) { d.spec_count = 17; }},
                 {"dispatch.binding_count", [](FoveaDispatch& d) { d.binding_count = 17; }},
                 {"dispatch.bindings", [](FoveaDispatch& d) { d.bindings[0].slot = 32; }}};
    for (const auto& c : cases) {
        FoveaDispatch bad = good;
        c.edit(bad);
        const Result<std::vector<uint32_t>> code = dispatch_code(bad);
        ASSERT_FALSE(code);
        EXPECT_EQ(code.error().field, c.field);
    }
    Diag diag;
    size_t room = 0;
    ASSERT_EQ(foveaDispatchCode(&good, nullptr, &room, &diag), FOVEA_OK);
    std::vector<uint32_t> words(room);
    size_t count = room - 1;
    EXPECT_EQ(foveaDispatchCode(&good, words.data(), &count, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "word_count");
    EXPECT_EQ(words, std::vector<uint32_t>(room)) << "a refused call wrote something";
    EXPECT_EQ(foveaDispatchCode(nullptr, nullptr, &count, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaDispatchCode(&good, nullptr, nullptr, &diag), FOVEA_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace fovea::test
