// Sessions whose tensors are in files. Apart from the rest, so that what reads none takes no reader of files
// along.
#include <fovea/files.hpp>
#include <fovea/model/trace.hpp>

#include <map>
#include <memory>
#include <utility>

#include "files/sha256.hpp"

namespace fovea {
namespace {

Error refused(std::string text) { return {FOVEA_INVALID_ARGUMENT, "tensors", std::move(text)}; }

// True if the file is below the folder, whatever links lead where.
bool is_inside(const std::filesystem::path& file, const std::filesystem::path& folder) {
    std::error_code of_file, of_folder;
    const std::filesystem::path inner = std::filesystem::weakly_canonical(file, of_file),
                                outer = std::filesystem::weakly_canonical(folder, of_folder);
    if (of_file || of_folder) return false;
    const std::filesystem::path way = inner.lexically_relative(outer);
    return !way.empty() && *way.begin() != "..";
}

}  // namespace

Result<std::vector<SessionNote>> load_session_tensors(Session& s, const std::filesystem::path& folder,
                                                      SessionFiles which) {
    std::vector<SessionNote> notes;
    if (!s.tensors) return notes;
    auto loaded = std::make_shared<SessionTensors>(*s.tensors);
    struct File {
        TensorSet set;
        std::string sha256;
        bool differs = false;
    };
    std::map<std::string, File> files;
    for (SessionTensor* t : {&loaded->q, &loaded->k, &loaded->v}) {
        if (t->path.empty()) continue;
        const std::string shown = printable_name(t->path, 400);
        const auto [known, is_new] = files.try_emplace(t->path);
        File& file = known->second;
        const std::filesystem::path path = folder / std::filesystem::path(t->path);
        if (is_new) {
            if (which == SessionFiles::inside && !is_inside(path, folder))
                return refused("the file " + shown +
                               " is outside of the session's folder: give --any-file to read it");
            Result<TensorSet> set = load_tensors(path);
            if (!set) return set.error();
            file.set = std::move(*set);
        }
        if (!t->sha256.empty()) {
            if (file.sha256.empty()) {
                Result<std::string> found = sha256_of_file(path);
                if (!found) return found.error();
                file.sha256 = std::move(*found);
            }
            if (file.sha256 != t->sha256 && !std::exchange(file.differs, true))
                notes.push_back(
                    {"tensors", "the file " + shown +
                                    " is not the one that the session was saved with: its SHA-256 "
                                    "is " +
                                    file.sha256});
        }
        const Tensor* const tensor = file.set.find(t->name);
        if (!tensor)
            return refused("the file " + shown + " has no tensor '" + printable_name(t->name) + "': it " +
                           file.set.why_missing(t->name));
        if (element_count(*tensor) == 0)
            return refused("tensor '" + printable_name(t->name) + "' of the file " + shown +
                           " has no elements; q, k and v need some");
        Result<std::vector<float>> values = to_f32(*tensor);
        if (!values) return values.error();
        *t = SessionTensor{tensor->shape, std::move(*values), {}, {}, {}};
    }
    s.tensors = std::move(loaded);
    return notes;
}

}  // namespace fovea
