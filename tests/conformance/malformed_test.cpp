// The reader on files that are broken by hand and at random: an error, never a crash, never a read past the
// end.
#include "conformance/generated_cases.hpp"
#include "conformance/onnx_writer.hpp"
#include "onnx/model_file.hpp"
#include "onnx/node_runner.hpp"
#include "onnx/wire_reader.hpp"
#include "support/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <random>

namespace fovea::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<int> values) {
    Bytes bytes;
    for (const int value : values) bytes.push_back(std::byte(value));
    return bytes;
}

// A buffer whose end is the end of an allocation, so that sanitizers see a read past it.
struct Exact {
    std::unique_ptr<std::byte[]> memory;
    std::span<const std::byte> view;
    explicit Exact(const Bytes& bytes)
        : memory(new std::byte[bytes.size()]), view(memory.get(), bytes.size()) {
        std::copy(bytes.begin(), bytes.end(), memory.get());
    }
};

struct BadFile {
    const char* what;
    Bytes bytes;
    const char* field;
};

TEST(MalformedTensor, says_what_is_wrong) {
    const BadFile kBad[] = {
        {"a tag that is cut off", bytes_of({0x80}), "protobuf"},
        {"field number 0", bytes_of({0x00, 0x01}), "protobuf"},
        {"a group", bytes_of({0x0b}), "protobuf"},
        {"wire type 7", bytes_of({0x0f}), "protobuf"},
        {"a varint of eleven bytes",
         bytes_of({0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}), "protobuf"},
        {"a varint past 64 bits",
         bytes_of({0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}), "protobuf"},
        {"a fixed number that is cut off", bytes_of({0x0d, 1, 2, 3}), "protobuf"},
        {"bytes longer than the file", bytes_of({0x4a, 0x05, 1, 2}), "protobuf"},
        {"bytes of length 2^63", bytes_of({0x4a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}),
         "protobuf"},
        {"a negative dimension", bytes_of({0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}),
         "dims"},
        {"nine dimensions", bytes_of({8, 1, 8, 1, 8, 1, 8, 1, 8, 1, 8, 1, 8, 1, 8, 1, 8, 1}), "dims"},
        {"a packed dimension that is cut off", bytes_of({0x0a, 0x01, 0x80}), "dims"},
        {"a type of the wrong wire type", bytes_of({0x12, 0x00}), "data_type"},
        {"an unknown type", bytes_of({0x10, 0x63}), "data_type"},
        {"no type at all", bytes_of({0x4a, 0x00}), "raw_data"},
        {"too little data", bytes_of({0x08, 2, 0x10, 1, 0x4a, 4, 0, 0, 0, 0}), "raw_data"},
        {"too much data", bytes_of({0x08, 1, 0x10, 9, 0x4a, 2, 0, 0}), "raw_data"},
        {"data twice", bytes_of({0x08, 1, 0x10, 9, 0x4a, 1, 0, 0x4a, 1, 0}), "raw_data"},
        {"typed data", bytes_of({0x08, 1, 0x10, 1, 0x22, 4, 0, 0, 0, 0}), "data"},
        {"external data", bytes_of({0x08, 1, 0x10, 1, 0x70, 1}), "data"},
        {"a size past 64 bits",
         bytes_of({8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 0x10, 1}),
         "dims"},
    };
    for (const BadFile& bad : kBad) {
        const Exact file(bad.bytes);
        const Result<onnx::Tensor> tensor = onnx::parse_tensor(file.view);
        ASSERT_FALSE(tensor) << bad.what;
        EXPECT_EQ(tensor.error().field, bad.field) << bad.what << ": " << tensor.error().text;
        EXPECT_FALSE(tensor.error().text.empty());
    }
}

TEST(MalformedModel, says_what_is_wrong) {
    const BadFile kBad[] = {
        {"an empty file", {}, "graph"},
        {"a graph without a node", bytes_of({0x3a, 0x00, 0x42, 0x02, 0x10, 0x17}), "graph"},
        {"two graphs", bytes_of({0x3a, 0x02, 0x0a, 0x00, 0x3a, 0x02, 0x0a, 0x00}), "graph"},
        {"two nodes", bytes_of({0x3a, 0x04, 0x0a, 0x00, 0x0a, 0x00}), "graph"},
        {"an initializer", bytes_of({0x3a, 0x02, 0x2a, 0x00}), "graph"},
        {"no opset", bytes_of({0x3a, 0x02, 0x0a, 0x00}), "opset_import"},
        {"a negative opset",
         bytes_of({0x3a, 0x02, 0x0a, 0x00, 0x42, 0x0b, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                   0xff, 0x01}),
         "opset_import"},
        {"a node cut off inside", bytes_of({0x3a, 0x04, 0x0a, 0x02, 0x0a, 0x05}), "protobuf"},
        {"a name that moves the cursor", bytes_of({0x3a, 0x06, 0x0a, 0x04, 0x22, 0x02, 0x1b, 0x63}),
         "node.op_type"},
        {"a name of the wrong type", bytes_of({0x3a, 0x04, 0x0a, 0x02, 0x08, 0x05}), "node.input"},
    };
    for (const BadFile& bad : kBad) {
        const Exact file(bad.bytes);
        const Result<onnx::Model> model = onnx::parse_model(file.view);
        ASSERT_FALSE(model) << bad.what;
        EXPECT_EQ(model.error().field, bad.field) << bad.what << ": " << model.error().text;
    }
}

// Checks the reader's promises for every file that it accepts.
void check_file(const Bytes& bytes) {
    const Exact file(bytes);
    if (const Result<onnx::Tensor> tensor = onnx::parse_tensor(file.view)) {
        ASSERT_LE(tensor->dims.size(), onnx::kMaxRank);
        ASSERT_EQ(tensor->data.size(), tensor->elements() * onnx::size_of(tensor->type));
    } else {
        ASSERT_FALSE(tensor.error().field.empty());
        ASSERT_FALSE(tensor.error().text.empty());
    }
    if (const Result<onnx::Model> model = onnx::parse_model(file.view))
        ASSERT_GT(model->opset, 0);
    else
        ASSERT_FALSE(model.error().text.empty());
}

TEST(MalformedFiles, every_truncation_of_a_model_and_a_tensor) {
    const onnx::NodeCase c = generated_cases()[8];
    for (const Bytes& whole : {encode(c.model), encode(*c.sets[0].inputs[0])})
        for (size_t size = 0; size <= whole.size(); ++size)
            check_file({whole.begin(), whole.begin() + ptrdiff_t(size)});
}

TEST(MalformedFiles, twenty_thousand_random_changes) {
    std::vector<Bytes> files;
    for (const onnx::NodeCase& c : generated_cases()) {
        files.push_back(encode(c.model));
        files.push_back(encode(*c.sets[0].inputs[0]));
    }
    Random random(9);
    for (int n = 0; n < 20000 && !HasFatalFailure(); ++n) {
        Bytes file = files[random.below(files.size())];
        file.resize(std::min<size_t>(file.size(), 400));
        for (uint64_t change = 0; change <= random.below(6); ++change) {
            const size_t at = random.below(file.size());
            switch (random.below(3)) {
                case 0:
                    file[at] = std::byte(random.next());
                    break;
                case 1:
                    file.erase(file.begin() + ptrdiff_t(at));
                    break;
                default:
                    file.insert(file.begin() + ptrdiff_t(at),
                                std::byte(random.pick({0xff, 0x80, 0x00, 0x0a})));
            }
            if (file.empty()) break;
        }
        check_file(file);
    }
}

TEST(MalformedFiles, a_folder_with_parts_missing_is_an_error_that_names_the_file) {
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) /
                                         ("fovea-parts-missing-" + std::to_string(std::random_device()()));
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    EXPECT_EQ(onnx::find_cases(folder).error().code, FOVEA_IO_ERROR);
    ASSERT_TRUE(write_case(folder / "one", generated_cases()[0]));
    std::filesystem::remove(folder / "one/test_data_set_0/input_1.pb", error);
    Result<onnx::NodeCase> loaded = onnx::load_case(folder / "one");
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().field.find("input_1.pb"), std::string::npos);
    std::filesystem::remove_all(folder / "one/test_data_set_0", error);
    loaded = onnx::load_case(folder / "one");
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, FOVEA_IO_ERROR);
    std::ofstream(folder / "one/model.onnx") << "no protobuf";
    EXPECT_EQ(onnx::load_case(folder / "one").error().field, "model.onnx");
    std::filesystem::remove_all(folder, error);
}

// An input without elements may have any shape: what a node makes of it is bounded.
TEST(MalformedNode, asks_for_no_memory_that_its_inputs_do_not_have) {
    constexpr int64_t kMost = INT32_MAX;
    struct BadShapes {
        const char* what;
        std::vector<int64_t> q, k, v, mask;
        const char* text;
    };
    const BadShapes kBad[] = {
        {"rows without columns", {1, 1, 1 << 24, 0}, {1, 1, 0, 0}, {1, 1, 0, 8}, {}, "dim_qk is 0"},
        {"columns without rows", {1, 1, 0, 8}, {1, 1, 0, 8}, {1, 1, 0, kMost}, {}, "dim_v is 2147483647"},
        {"a product past 64 bits",
         {kMost, kMost, kMost, 0},
         {kMost, kMost, kMost, 0},
         {kMost, kMost, kMost, 0},
         {},
         "is 0"},
        {"scores of more bytes than a file",
         {1, 1, 9000, 1},
         {1, 1, 9000, 1},
         {1, 1, 9000, 1},
         {},
         "more than 268435456 bytes"},
        {"a column of a mask that is as wide as all keys",
         {1, 1, 1000, 1},
         {1, 1, 1, 1},
         {1, 1, 1, 1},
         {kMost, 1},
         "does not broadcast"},
    };
    Result<Engine> engine = Engine::open({BackendChoice::cpu});
    ASSERT_TRUE(engine);
    for (const BadShapes& bad : kBad) {
        onnx::Model model;
        model.opset = 24;
        model.node.op_type = "Attention";
        model.node.outputs = {"y", "", "", "scores"};
        onnx::Tensors inputs;
        for (const std::vector<int64_t>* dims : {&bad.q, &bad.k, &bad.v, &bad.mask}) {
            inputs.emplace_back();
            if (dims->empty()) continue;
            inputs.back().emplace();
            inputs.back()->dims = *dims;
            inputs.back()->data.resize(size_t(std::min<uint64_t>(inputs.back()->elements(), 10'000)) * 4);
        }
        const Result<onnx::Tensors> outputs = onnx::run_node(*engine, model, inputs);
        ASSERT_FALSE(outputs) << bad.what;
        EXPECT_NE(outputs.error().text.find(bad.text), std::string::npos)
            << bad.what << ": " << outputs.error().text;
    }
}

}  // namespace
}  // namespace fovea::test
