// The order of a block's parts: one list of steps by role, which traces, generation, training and the sums of
// cells walk.
#pragma once

#include <fovea/model/transformer.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fovea {

// The values that steps read and write, each with the rows of a text. `part` is the result of attention or of
// the feed-forward part before it is added to the stream.
struct BlockRoles {
    enum Role : uint8_t {
        stream,
        memory,
        normed,
        queries,
        keys,
        values,
        context,
        part,
        hidden,
        gate,
        role_count
    };
};

struct BlockStep {
    using Role = BlockRoles::Role;
    enum class Kind : uint8_t {
        copy,      // `to` is `from`
        linear,    // products of `from`, none of which reads another's result; `to` is the last one's
        norm,      // `to` is the norm of `from`, of each head's row where there are heads
        rotate,    // each head's row of `to` by the angles of its position
        attend,    // queries, keys and values become contexts
        activate,  // `to` becomes act(to), times `from` where that is another
        add        // the stream grows by `from`
    };
    struct Product {
        const Linear* layer;
        Role to;
        const char* name;  // as CheckpointModel::origin() has it
    };

    Kind kind;
    Role from, to;
    std::optional<StageId> stage = {};  // stage that `to` is after the step; none: it is not shown
    const Norm* norm = nullptr;
    const char* name = "";  // the norm's, as CheckpointModel::origin() has it
    uint32_t heads = 0;
    uint32_t product_count = 0;
    std::array<Product, 3> all_products = {};
    std::span<const Product> products() const { return std::span(all_products).first(product_count); }
};

// The input of the first steps: the stream; the stream and a memory for keys and values; or given queries,
// keys and values.
enum class BlockInput { stream, memory, heads };
std::vector<BlockStep> block_steps(const Block& block, BlockInput input = BlockInput::stream);
// The steps before attention, and those after it.
std::span<const BlockStep> before_attention(std::span<const BlockStep> steps);
std::span<const BlockStep> after_attention(std::span<const BlockStep> steps);

// Runs steps where its values are.
class BlockExecutor : protected BlockRoles {
  public:
    virtual ~BlockExecutor() = default;

  protected:
    using Product = BlockStep::Product;
    Result<void> walk(const Block& block, std::span<const BlockStep> steps);

    virtual Result<void> copy(Role from, Role to) = 0;
    virtual Result<void> linear(std::span<const Product> products, Role from) = 0;
    virtual Result<void> norm(const Norm& n, uint32_t heads, Role from, Role to) = 0;
    virtual Result<void> rotate(const Rope& rope, uint32_t heads, Role role) = 0;
    virtual Result<void> attend(const AttentionPart& a) = 0;
    // `other` is null where nothing is multiplied.
    virtual Result<void> activate(Activation activation, Role role, const Role* other) = 0;
    // The stream grows by `from`; with `next` its norm goes to `to`.
    virtual Result<void> add(Role from, const Norm* next, Role to) = 0;
    virtual void done(const BlockStep&) {}

    const Block* block_ = nullptr;  // the block whose steps run
};

}  // namespace fovea
