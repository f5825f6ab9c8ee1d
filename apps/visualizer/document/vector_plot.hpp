// Words, queries and keys as points of a plane. Dragging a query or a key is a trial next to the shown
// result, by the same rules. Dragging a word changes the settings: its cells of `edits`.
#pragma once

#include "document/attention_result.hpp"

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace fovea::visualizer {

// Principal components (Pearson, 1901) of a few wide vectors: the two directions of the largest variance or,
// through the origin, of the largest squared lengths.
struct PrincipalPlane {
    std::vector<double> origin;  // origin of the plane's coordinates; zeros if it is the origin itself
    std::array<std::vector<double>, 2> axes;  // orthonormal, or zeros if no variance is left
    double share = 1;                         // fraction of the squared lengths that is within the plane

    std::array<double, 2> place(std::span<const float> vector) const;
    // Returns the vector moved to the place `to`, changed only within the plane.
    std::vector<float> moved(std::span<const float> vector, std::array<double, 2> to) const;
};

// `rows` of `width` values each. `centred`: about their mean. Two values through the origin keep their own
// axes.
PrincipalPlane principal_plane(std::span<const float> rows, size_t width, bool centred);

enum class VectorKind { word, query, key };
struct VectorPoint {
    VectorKind kind = VectorKind::query;
    uint32_t token = 0;
    std::array<double, 2> at{};
    bool tried = false;  // it was moved
};

class VectorPlot {
  public:
    static constexpr uint64_t kMaxTokens = 64;

    // Follows this head of this result from now on. A trial on another head is dropped; a plane stays while
    // only words are moved, so that it does not rotate under the mouse.
    void follow(const AttentionResult& result, uint32_t head);
    // Why there is nothing to draw; empty: there is.
    const std::string& why_not() const { return why_not_; }
    bool has_words() const { return !words_.values.empty(); }
    // Why words stay where they are; empty: they can be moved.
    std::string why_words_stay() const;

    const PrincipalPlane& plane() const { return of_words ? word_plane_ : pair_plane_; }
    uint64_t width() const { return of_words ? words_.columns() : queries_.columns(); }
    // Words, or keys and queries.
    std::vector<VectorPoint> points() const;
    // The largest coordinate of a point as the plane was laid: the picture ends a little beyond it.
    double reach() const { return of_words ? word_reach_ : pair_reach_; }

    // Keys that are the same values move as one.
    void try_out(VectorKind kind, uint32_t token, std::array<double, 2> to);
    void take_back();
    bool tries() const { return tried_; }
    // A row of weights as they would be.
    const Result<F32Tensor>& tried_weights();
    // The value of the session's key `edits` with the word at that place; with `to` empty without any moved
    // word.
    std::string edits_with(const Settings& settings, uint32_t token,
                           std::optional<std::array<double, 2>> to) const;

    VectorPoint held;       // by the mouse, or the last one that was
    bool of_words = false;  // true: draws words; false: queries and keys

  private:
    Settings of_;  // settings of this result
    uint32_t head_ = 0;
    bool begun_ = false, tried_ = false;
    std::string why_not_;
    Settings laid_for_;                                             // settings of the planes, without edits
    F32Tensor words_{Shape{0}}, queries_ = words_, keys_ = words_;  // [tokens, width], of the head; as tried
    F32Tensor own_queries_ = words_, own_keys_ = words_;            // as they are
    uint32_t key_head_ = 0;
    PrincipalPlane word_plane_, pair_plane_;
    double word_reach_ = 1, pair_reach_ = 1;
    ModelInput call_;  // input of a trial
    AttentionRules rules_;
    Result<F32Tensor> weights_ = F32Tensor{Shape{0}};
    bool stale_ = true;  // weights_
};

}  // namespace fovea::visualizer
