// Sessions whose tensors lie in files. Apart from the rest, so that what reads none takes no reader of files
// along.
#include <fovea/files.hpp>
#include <fovea/model/trace.hpp>

#include <map>
#include <memory>
#include <utility>

namespace fovea {

Result<void> load_session_tensors(Session& s, const std::filesystem::path& folder) {
    if (!s.tensors) return {};
    auto loaded = std::make_shared<SessionTensors>(*s.tensors);
    std::map<std::string, TensorSet> files;
    for (SessionTensor* t : {&loaded->q, &loaded->k, &loaded->v}) {
        if (t->path.empty()) continue;
        if (!files.contains(t->path)) {
            Result<TensorSet> file = load_tensors(folder / std::filesystem::path(t->path));
            if (!file) return file.error();
            files[t->path] = std::move(*file);
        }
        const Tensor* const tensor = files[t->path].find(t->name);
        if (!tensor)
            return Error{
                FOVEA_INVALID_ARGUMENT, "tensors",
                "the file " + printable_name(t->path) + " has no tensor '" + printable_name(t->name) + "'"};
        Result<std::vector<float>> values = to_f32(*tensor);
        if (!values) return values.error();
        *t = SessionTensor{tensor->shape, std::move(*values), {}, {}, {}};
    }
    s.tensors = std::move(loaded);
    return {};
}

Result<SessionStageText> session_stage_text(std::string_view json, std::string_view stage, uint32_t head,
                                            const SessionReader& reader, const TraceOptions& options,
                                            const std::filesystem::path& folder) {
    Result<ReadSession> read = read_session(json, reader);
    if (!read) return read.error();
    if (!folder.empty())
        if (Result<void> r = load_session_tensors(read->session, folder); !r) return r.error();
    return session_stage_text(std::move(*read), stage, head, options);
}

}  // namespace fovea
