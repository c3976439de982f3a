#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/rpc/values.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using rpc::RRef;
using rpc::TensorValue;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

std::string NameOf(int rank) { return "w" + std::to_string(rank); }

struct Model {
  explicit Model(double by) : factor(by) {}
  double factor;
};

TensorValue TensorOf(std::vector<float> values) {
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  return {.dtype = DType::kFloat32,
          .shape = {static_cast<int64_t>(owner->size())},
          .data = {owner, std::as_bytes(std::span(*owner))}};
}

std::vector<float> FloatsIn(const TensorValue& tensor) {
  const auto* first = reinterpret_cast<const float*>(tensor.data.bytes.data());
  return {first, first + tensor.data.bytes.size() / sizeof(float)};
}

void RegisterAll() {
  rpc::Register("add", [](int a, int b) { return a + b; });
  rpc::Register("join", [](const std::vector<std::string>& words, const std::string& between) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
    return text;
  });
  rpc::Register("nothing", [] {});
  rpc::Register("double", [](const TensorValue& tensor) {
    std::vector<float> values = FloatsIn(tensor);
    for (float& value : values) value *= 2;
    return TensorOf(values);
  });
  rpc::Register("count", [](const std::vector<TensorValue>& tensors) {
    std::map<std::string, size_t> counts;
    for (const TensorValue& each : tensors) counts["floats"] += FloatsIn(each).size();
    return counts;
  });
  rpc::Register("model", [](double factor) { return Model(factor); });
  rpc::Register("predict",
                [](const RRef<Model>& model, double x) { return model.LocalValue().factor * x; });
  rpc::Register("train",
                [](const RRef<Model>& model, double step) { model.Share()->factor += step; });
}

std::vector<std::string> OnWorkers(int count, const std::function<std::string(int id)>& body) {
  return OnRanks(count, [&](int rank) {
    RegisterAll();
    rpc::Init(NameOf(rank));
    std::string text = body(rank);
    rpc::Shutdown();
    return text;
  });
}

TEST(RpcValuesTest, ArgumentsAndResultsHaveTypes) {
  auto texts = OnWorkers(2, [](int id) {
    std::string text = std::to_string(rpc::Call<int>(1 - id, "add", 2, 3)) + " ";
    text += rpc::Call<std::string>(1 - id, "join", std::vector<std::string>{"a", "b"}, "-") + " ";
    rpc::Call<void>(1 - id, "nothing");
    rpc::CallAsync<void>(1 - id, "nothing").Wait();
    return text + std::to_string(rpc::CallAsync<int64_t>(id, "add", -2, 1).Wait());
  });
  EXPECT_THAT(texts, Each("5 a-b -1"));
}

TEST(RpcValuesTest, TensorsAreAttached) {
  auto texts = OnWorkers(2, [](int id) {
    auto doubled = rpc::Call<TensorValue>(1 - id, "double", TensorOf({1, 2, 3}));
    std::string text;
    for (float value : FloatsIn(doubled)) text += std::to_string(static_cast<int>(value)) + " ";
    auto counts = rpc::Call<std::map<std::string, size_t>>(
        1 - id, "count", std::vector{TensorOf({1}), TensorOf({2, 3})});
    return text + std::to_string(counts.at("floats")) + " " + std::to_string(doubled.shape.at(0));
  });
  EXPECT_THAT(texts, Each("2 4 6 3 3"));
}

TEST(RpcValuesTest, ObjectsStayWithTheirOwner) {
  auto texts = OnWorkers(2, [](int id) {
    auto model = rpc::CallRemote<Model>(1 - id, "model", 2.0);
    std::string text = std::to_string(rpc::Call<double>(1 - id, "predict", model, 10.0)) + " ";
    rpc::Call<void>(1 - id, "train", model, 0.5);
    text += std::to_string(rpc::Call<double>(1 - id, "predict", model, 10.0)) + " ";
    auto sum = rpc::CallRemote<int>(1 - id, "add", 20, 1);
    return text + std::to_string(sum.ToHere()) + " " + sum.owner().name;
  });
  EXPECT_EQ(texts[0], "20.000000 25.000000 21 w1");
}

TEST(RpcValuesTest, WrongTypesAreNamed) {
  auto texts = OnWorkers(2, [](int id) {
    std::string text = ErrorOf([&] { rpc::Call<int>(id, "add", 1); }) + "\n";
    text += ErrorOf([&] { rpc::Call<int>(id, "add", 1, "two"); }) + "\n";
    text += ErrorOf([&] { rpc::Call<int>(id, "join", std::vector<std::string>{"a"}, "-"); }) + "\n";
    text += ErrorOf([&] { rpc::RpcSync(id, "add", {"no CBOR"}); }) + "\n";
    return text + ErrorOf([&] { rpc::Call<double>(id, "model", 2.0); });
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("the call has 1 arguments: add wants 2"),
                              HasSubstr("argument 2 of add: "), HasSubstr("result of join: "),
                              HasSubstr("is no CBOR that can be read"),
                              HasSubstr("the value of model stays here: want Remote()")));
}

}  // namespace
}  // namespace rankrun::comm
