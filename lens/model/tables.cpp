#include "model/tables.hpp"

#include <fovea/model/session.hpp>

#include <array>

#include "files/embedded.hpp"

namespace fovea {

std::span<const EmbeddedFile> model_tables();

namespace {

JsonValue parsed(std::string_view name) {
    for (const EmbeddedFile& file : model_tables()) {
        if (file.name != name) continue;
        Result<JsonValue> value = parse_json(file.text());
        if (value) return std::move(*value);
    }
    return {};
}

std::vector<std::string> texts(const JsonValue& value) {
    std::vector<std::string> all;
    for (const JsonValue& item : value.items()) all.emplace_back(item.text());
    return all;
}

std::optional<StageId> stage_in(std::span<const StageText> stages, std::string_view name) {
    for (size_t n = 0; n < stages.size(); ++n)
        if (stages[n].name == name) return StageId(n);
    return {};
}

std::vector<StageText> read_stages() {
    std::vector<StageText> all;
    for (const JsonValue& row : model_table("stages").items()) {
        StageText& stage = all.emplace_back();
        for (const auto& [key, field] : {std::pair{"id", &stage.name},
                                         {"label", &stage.label},
                                         {"formula", &stage.formula},
                                         {"transposed", &stage.transposed},
                                         {"about", &stage.about}})
            *field = row[key].text();
        stage.is_signed = row["signed"].boolean();
        stage.pairs = row["pairs"].boolean();
        stage.sums = row["sums"].boolean();
    }
    for (size_t n = 0; n < all.size(); ++n)
        for (const JsonValue& near : model_table("stages").items()[n]["nearest"].items())
            all[n].nearest.push_back(stage_in(all, near.text()).value());
    return all;
}

std::vector<LevelText> read_levels() {
    std::vector<LevelText> all;
    for (const JsonValue& row : model_table("levels").items())
        all.push_back({std::string(row["name"].text()), std::string(row["term"].text()),
                       std::string(row["title"].text()), std::string(row["lead"].text()),
                       texts(row["lessons"])});
    return all;
}

std::vector<SessionKey> read_keys() {
    std::vector<SessionKey> all;
    for (const JsonValue& row : model_table("session")["keys"].items())
        all.push_back({std::string(row["key"].text()), std::string(row["type"].text()),
                       std::string(row["group"].text()), std::string(row["about"].text()),
                       row["low"].number(), row["high"].number(), texts(row["choices"])});
    return all;
}

}  // namespace

const JsonValue& model_table(std::string_view name) {
    static const std::array<JsonValue, 5> kTables = {parsed("levels"), parsed("session"), parsed("stages"),
                                                     parsed("stories"), parsed("learned")};
    return kTables[name == "levels"    ? 0
                   : name == "session" ? 1
                   : name == "stages"  ? 2
                   : name == "stories" ? 3
                                       : 4];
}

std::span<const StageText> stage_table() {
    static const std::vector<StageText> kStages = read_stages();
    return kStages;
}

const StageText& stage_text(StageId id) { return stage_table()[size_t(id)]; }
const std::string& stage_name(StageId id) { return stage_text(id).name; }
std::optional<StageId> stage_from_name(std::string_view name) { return stage_in(stage_table(), name); }

const LevelText& level_text(int level) {
    static const std::vector<LevelText> kLevels = read_levels();
    return kLevels.at(size_t(level - 1));
}

std::span<const SessionKey> session_keys() {
    static const std::vector<SessionKey> kKeys = read_keys();
    return kKeys;
}

}  // namespace fovea
