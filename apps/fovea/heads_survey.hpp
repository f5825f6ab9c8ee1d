// The results of `fovea heads`, and the files that it writes.
#pragma once

#include "heads_journal.hpp"
#include "heads_model.hpp"

#include <fovea/inspect/text_corpus.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::app {

// One head over all texts.
struct HeadFound {
    uint64_t layer = 0, head = 0;
    HeadSums sums;
    HeadMetrics metrics;
    std::string_view role;
    std::vector<float> activations;  // by text that ran
    std::vector<HeadSampler::Sample> samples;
    std::map<uint64_t, uint64_t> places;  // where the journal has the rows of samples, by text
};

struct HeadsFound {
    const HeadsModel* model = nullptr;
    const TextCorpus* corpus = nullptr;
    const HeadsJournal* journal = nullptr;
    uint64_t length = 0, texts = 0;  // most tokens of a text; texts that ran
    std::string page;                // address of the page that samples open in
    SurveyCounts counts;
    std::vector<HeadFound> heads;  // layer by layer
};

// A sample as files show it.
struct ShownSample {
    HeadSampler::Sample of;
    std::vector<uint32_t> ids;
    std::vector<std::string> tokens;
    SparseRows rows;
};
Result<std::vector<ShownSample>> shown_samples(const HeadsFound& found, const HeadFound& head);
// Sums over the samples of a head.
struct SampleSums {
    static constexpr uint64_t kEdges[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
    std::vector<double> distances;                              // weight by distance, between two edges
    std::vector<std::pair<std::string, double>> queries, keys;  // weight by token, the largest first
};
SampleSums sample_sums(std::span<const ShownSample> samples);
// 50 counts of activations from 0 to 1.
std::vector<uint64_t> activation_histogram(std::span<const float> activations);
// A name as a part of a path: letters, digits, points, dashes and underlines.
std::string path_part(std::string_view name);
// The folder of a model's HeadVis tree, whose name no file or folder of the report has.
std::string tree_name(const HeadsModel& model);

// Each writes into an existing folder. The tree that HeadVis's loaders and its viewer read, heads.csv, and
// the report.
Result<void> write_headvis_files(const HeadsFound& found, const std::filesystem::path& folder);
Result<void> write_headvis_head(const HeadsFound& found, const HeadFound& head,
                                std::span<const ShownSample> samples, const std::filesystem::path& folder);
Result<void> write_heads_csv(const HeadsFound& found, const std::filesystem::path& folder);
Result<void> write_report_index(const HeadsFound& found, const std::filesystem::path& folder);
Result<void> write_report_head(const HeadsFound& found, const HeadFound& head,
                               std::span<const ShownSample> samples, const std::filesystem::path& folder);

}  // namespace fovea::app
