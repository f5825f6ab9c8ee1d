// The journal of `fovea heads` has a record of each text, so that a stopped run goes on and samples need no
// memory. Records are in the order of the texts. The last one may be cut.
#pragma once

#include <fovea/inspect/head_survey.hpp>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fovea::app {

// The result of one text. A text that was left out has no rows and no sums.
struct TextRecord {
    SurveyCounts counts;
    std::vector<HeadSums> sums;  // by head, layer by layer
    // Heads that may show the text as a sample, ascending, and where the journal has their rows.
    std::vector<std::pair<uint32_t, uint64_t>> samples;
};

class HeadsJournal {
  public:
    // Names and values of a run. A journal with another value is of another run.
    using Identity = std::vector<std::pair<std::string, std::string>>;

    // Opens a journal in an existing folder, or begins one, and calls `use` with every whole record. Rejects
    // the journal of another run; the error names the difference.
    static Result<HeadsJournal> open(const std::filesystem::path& path, const Identity& identity,
                                     size_t heads, const std::function<void(TextRecord)>& use);
    // Writes the record of the next text with the rows of its samples, as many as record.samples, and sets
    // their places. After an error the journal ends with the record before.
    Result<void> append(TextRecord& record, std::span<const SparseRows> rows);
    Result<SparseRows> rows(uint64_t place) const;
    void close() { file_.reset(); }

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    Error cannot(const char* what) const;

    std::filesystem::path path_;
    std::unique_ptr<std::FILE, Close> file_;
    uint64_t end_ = 0;  // bytes up to the last whole record
};

}  // namespace fovea::app
