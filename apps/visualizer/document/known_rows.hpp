// Which rows of a long head have their log-sum-exp, and which a tile still lacks.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>
#include <vector>

namespace fovea::visualizer {

struct RowRange {
    uint64_t first = 0, count = 0;
};

class KnownRows {
  public:
    explicit KnownRows(uint64_t rows = 0) : known_(rows) {}
    uint64_t count() const { return count_; }
    void mark(RowRange rows);
    // The first rows that the tile needs and lacks: of an exact tile a block of `block` rows, on the grid of
    // such blocks; of a preview, which needs the rows in the middle of its pixels, one. Count 0: it lacks
    // none.
    RowRange lacked_by(const FoveaMapTileDesc& tile, uint64_t block) const;

  private:
    std::vector<uint8_t> known_;
    uint64_t count_ = 0;
};

}  // namespace fovea::visualizer
