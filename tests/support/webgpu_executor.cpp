#include "support/webgpu_executor.hpp"

#include "web/engine/gpu_plan.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

// Neither Windows nor a program in WebAssembly has POSIX's processes.
#if defined(_WIN32) || defined(__EMSCRIPTEN__)
#define FOVEA_HAS_PROCESSES 0
#else
#define FOVEA_HAS_PROCESSES 1
#endif

#if FOVEA_HAS_PROCESSES
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
extern char** environ;
#endif

namespace fovea::test {
namespace {

using Words = std::vector<uint32_t>;

#if !FOVEA_HAS_PROCESSES

class Player {
  public:
    static std::unique_ptr<Player> start(bool, std::string_view, std::string& error) {
        error = "the player of web/tests is started by POSIX calls alone";
        return nullptr;
    }
    bool send(const Words&) { return false; }
    std::optional<Words> receive() { return {}; }
};

#else

// The node program, and frames to and from it. See gpu_player.mjs.
class Player {
  public:
    static std::unique_ptr<Player> start(bool dawn, std::string_view buffers, std::string& error) {
        int to[2], from[2];
        if (pipe(to) != 0 || pipe(from) != 0) {
            error = "no pipe could be opened";
            return nullptr;
        }
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, to[0], 0);
        posix_spawn_file_actions_adddup2(&files, from[1], 1);
        for (const int end : {to[0], to[1], from[0], from[1]}) posix_spawn_file_actions_addclose(&files, end);
        std::vector<std::string> words{"node", FOVEA_GPU_PLAYER};
        if (dawn) words.push_back("--dawn");
        if (!buffers.empty()) words.insert(words.end(), {"--buffers", std::string(buffers)});
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        pid_t process = 0;
        const int failed = posix_spawnp(&process, "node", &files, nullptr, arguments.data(), environ);
        posix_spawn_file_actions_destroy(&files);
        close(to[0]);
        close(from[1]);
        if (failed) {
            close(to[1]);
            close(from[0]);
            error = std::string("node, which runs web/tests/gpu_player.mjs: ") + strerror(failed);
            return nullptr;
        }
        signal(SIGPIPE, SIG_IGN);  // a player that ended is told of by the write that fails
        return std::unique_ptr<Player>(new Player(process, to[1], from[0]));
    }
    ~Player() {
        close(to_);
        close(from_);
        waitpid(process_, nullptr, 0);
    }
    Player(const Player&) = delete;
    Player& operator=(const Player&) = delete;

    bool send(const Words& words) {
        const uint32_t length = uint32_t(words.size());
        return write_all(&length, 4) && write_all(words.data(), words.size() * 4);
    }
    std::optional<Words> receive() {
        uint32_t length = 0;
        if (!read_all(&length, 4)) return {};
        Words words(length);
        if (!read_all(words.data(), words.size() * 4)) return {};
        return words;
    }

  private:
    Player(pid_t process, int to, int from) : process_(process), to_(to), from_(from) {}

    bool write_all(const void* data, size_t bytes) {
        const char* at = static_cast<const char*>(data);
        while (bytes) {
            const ssize_t n = write(to_, at, bytes);
            if (n <= 0) return false;
            at += n, bytes -= size_t(n);
        }
        return true;
    }
    bool read_all(void* data, size_t bytes) {
        char* at = static_cast<char*>(data);
        while (bytes) {
            const ssize_t n = read(from_, at, bytes);
            if (n <= 0) return false;
            at += n, bytes -= size_t(n);
        }
        return true;
    }

    pid_t process_;
    int to_, from_;
};

#endif

constexpr uint64_t kMargin = 512;  // guarded bytes after each buffer

Outcome refused(const Error& error) {
    Outcome outcome;
    outcome.kind = Outcome::Kind::refused;
    outcome.code = error.code;
    outcome.text = error.field + ": " + error.text;
    return outcome;
}

class WebGpuExecutor : public Executor {
  public:
    WebGpuExecutor(std::string name, FoveaKernel kernel, std::unique_ptr<WebGpu> gpu)
        : name_(std::move(name)), kernel_(kernel), gpu_(std::move(gpu)) {}
    const std::string& name() const override { return name_; }

    Outcome run(const FoveaAttentionDesc& desc, const Tensors& inputs,
                const ExecuteOptions& options) override {
        return run_planned(plan_attention(gpu_->properties(), chosen(desc)), inputs, options);
    }
    Outcome run_backward(const FoveaAttentionDesc& forward, const FoveaAttentionBackwardDesc& backward,
                         const Tensors& inputs, const ExecuteOptions& options) override {
        return run_planned(plan_attention_backward(gpu_->properties(), forward, backward), inputs, options);
    }
    Outcome run_tile(const FoveaAttentionDesc& desc, const FoveaMapTileDesc& tile, const Tensors& inputs,
                     const ExecuteOptions& options) override {
        return run_planned(plan_map_tile(gpu_->properties(), chosen(desc), tile), inputs, options);
    }
    Outcome run_merge(const FoveaMergeDesc& merge, const Tensors& inputs,
                      const ExecuteOptions& options) override {
        return run_planned(plan_merge(gpu_->properties(), merge), inputs, options);
    }

  private:
    FoveaAttentionDesc chosen(FoveaAttentionDesc desc) const {
        desc.kernel = kernel_;
        return desc;
    }

    Outcome run_planned(const Result<Plan>& plan, const Tensors& inputs, const ExecuteOptions& options) {
        return plan ? gpu_->run(*plan, inputs, options) : refused(plan.error());
    }

    std::string name_;
    FoveaKernel kernel_;
    std::unique_ptr<WebGpu> gpu_;
};

class PlayedWebGpu : public WebGpu {
  public:
    PlayedWebGpu(std::unique_ptr<Player> player, const web::GpuLimits& limits)
        : player_(std::move(player)), properties_(web::gpu_properties(limits)) {}
    const FoveaDeviceProperties& properties() const override { return properties_; }

    Outcome run(const Plan& plan, const Tensors& inputs, const ExecuteOptions& options) override {
        const FoveaPlanInfo info = plan.info();
        Words request{uint32_t(info.slice_count)};
        std::vector<uint64_t> order(size_t(info.slice_count));
        for (size_t n = 0; n < order.size(); ++n) order[n] = n;
        // Any order will do: so another one, where the case asks for one.
        if (options.shuffle_seed && !order.empty())
            std::rotate(order.begin(), order.begin() + ptrdiff_t(options.shuffle_seed % order.size()),
                        order.end());
        for (const uint64_t slice : order) {
            Words words;
            if (Result<void> done = web::append_gpu_slice(plan, slice, words); !done)
                return refused(done.error());
            request.push_back(uint32_t(words.size()));
            request.insert(request.end(), words.begin(), words.end());
        }
        std::array<Bytes, FOVEA_BIND_COUNT> sent;
        add_bindings(info, inputs, sent, request);
        return answered(info, sent, request);
    }

  private:
    static void add_bindings(const FoveaPlanInfo& info, const Tensors& inputs,
                             std::array<Bytes, FOVEA_BIND_COUNT>& sent, Words& request) {
        const size_t counted = request.size();
        request.push_back(0);
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.binding_mask >> i & 1) || info.binding_bytes[i] == 0) continue;
            ++request[counted];
            Bytes& bytes = sent[i];
            bytes.assign(size_t(info.binding_bytes[i] + kMargin), kUntouched);
            if (!(info.output_mask >> i & 1) || !inputs[i].empty())
                std::copy(inputs[i].begin(), inputs[i].end(), bytes.begin());
            request.insert(request.end(), {i, 1u, uint32_t(bytes.size())});
            const size_t at = request.size();
            request.resize(at + (bytes.size() + 3) / 4);
            memcpy(request.data() + at, bytes.data(), bytes.size());
        }
    }

    Outcome answered(const FoveaPlanInfo& info, const std::array<Bytes, FOVEA_BIND_COUNT>& sent,
                     const Words& request) {
        Outcome outcome;
        outcome.kernel = info.kernel;
        std::optional<Words> reply;
        if (player_->send(request)) reply = player_->receive();
        if (!reply || reply->size() < 1) {
            outcome.text = "the player ended";
            return outcome;
        }
        if ((*reply)[0] != 0) {
            outcome.kind = (*reply)[0] == 2 ? Outcome::Kind::refused : Outcome::Kind::broken;
            outcome.code = FOVEA_LIMIT_EXCEEDED;
            outcome.text.assign(reinterpret_cast<const char*>(reply->data() + 2), (*reply)[1]);
            return outcome;
        }
        size_t at = 1;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (sent[i].empty()) continue;
            Bytes now((*reply)[at++]);
            memcpy(now.data(), reply->data() + at, now.size());
            at += (now.size() + 3) / 4;
            const bool output = info.output_mask >> i & 1;
            const auto begin = now.begin() + (output ? ptrdiff_t(info.binding_bytes[i]) : 0);
            const auto same = std::mismatch(begin, now.end(), sent[i].begin() + (begin - now.begin()));
            if (same.first != now.end())
                outcome.text += "binding " + std::to_string(i) + ": byte " +
                                std::to_string(same.first - now.begin()) + " was written and must not be; ";
            if (!output) continue;
            now.resize(size_t(info.tensor_bytes[i]));
            outcome.outputs[i] = std::move(now);
        }
        outcome.kind = outcome.text.empty() ? Outcome::Kind::ran : Outcome::Kind::broken;
        return outcome;
    }

    std::unique_ptr<Player> player_;
    FoveaDeviceProperties properties_;
};

}  // namespace

std::unique_ptr<WebGpu> open_webgpu(bool dawn, std::string_view buffers, std::string& error) {
    std::unique_ptr<Player> player = Player::start(dawn, buffers, error);
    if (!player) return nullptr;
    const std::optional<Words> limits = player->receive();
    if (!limits || limits->size() != 5) {
        error = "web/tests/gpu_player.mjs has no WebGPU here; its own words stand above";
        return nullptr;
    }
    return std::make_unique<PlayedWebGpu>(
        std::move(player),
        web::GpuLimits{(*limits)[0], (*limits)[1], (*limits)[2], (*limits)[3], (*limits)[4]});
}

std::unique_ptr<Executor> make_webgpu_executor(std::string name, bool dawn, FoveaKernel kernel,
                                               std::string_view buffers, std::string& error) {
    std::unique_ptr<WebGpu> gpu = open_webgpu(dawn, buffers, error);
    if (!gpu) return nullptr;
    return std::make_unique<WebGpuExecutor>(std::move(name), kernel, std::move(gpu));
}

}  // namespace fovea::test
