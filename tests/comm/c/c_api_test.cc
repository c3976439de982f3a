// C ABI: errors, handles and options. Tests of the C++ functions cover the
// calls' behaviour.

#include <gmock/gmock.h>

#include <cstring>
#include <thread>

#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>

#include "tests/comm/c/c_api_worker.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kUsual = RANKRUN_DEFAULT_TIMEOUT;

rankrun_tensor TensorOfFloats(std::vector<float>& values) {
  return {.data = values.data(),
          .count = values.size(),
          .row = 1,
          .device_index = 0,
          .dtype = RANKRUN_FLOAT32,
          .device_type = 0,
          .reserved = 0};
}

std::string Answer(rankrun_status status) {
  return std::to_string(status) + ": " + rankrun_last_error();
}

TEST(CApiTest, NumbersAreThoseOfTheCppTypes) {
  static_assert(int{RANKRUN_FLOAT8_E5M2} == static_cast<int>(DType::kFloat8E5M2));
  static_assert(int{RANKRUN_FLOAT8_E5M2} + 1 == kDTypes);
  static_assert(int{RANKRUN_BOOL} == static_cast<int>(DType::kBool));
  static_assert(int{RANKRUN_UINT64} == static_cast<int>(DType::kUInt64));
  static_assert(int{RANKRUN_BFLOAT16} == static_cast<int>(DType::kBFloat16));
  static_assert(int{RANKRUN_PREMUL_SUM} == ReduceOp::kPremulSum);
  static_assert(int{RANKRUN_BIT_XOR} == ReduceOp::kBitXor);
  static_assert(int{RANKRUN_CUDA} == static_cast<int>(DeviceType::kCuda));
  // Programs keep arrays of these structs, so their sizes never change.
  static_assert(sizeof(rankrun_tensor) == 32);
  static_assert(sizeof(rankrun_message) == 48);
  EXPECT_EQ(rankrun_abi_version(), uint32_t{RANKRUN_ABI_VERSION});
}

TEST(CApiTest, AC99ProgramIsAWorker) {
  auto texts = OnRanks(2, [] {
    double sum = 0;
    std::string error = CApiWorker(&sum);
    return error + std::to_string(static_cast<int>(sum));
  });
  EXPECT_THAT(texts, Each("3"));
}

TEST(CApiTest, EveryFunctionReportsAMissingWorld) {
  std::vector<float> values{1};
  rankrun_tensor tensor = TensorOfFloats(values);
  EXPECT_EQ(rankrun_initialized(), 0);
  EXPECT_THAT(Answer(rankrun_all_reduce(nullptr, &tensor, nullptr, kUsual, nullptr)),
              StartsWith("1: World: there is no world process group"));
  EXPECT_EQ(rankrun_world_size(nullptr), -1);
  EXPECT_EQ(rankrun_group_name(nullptr), nullptr);
  rankrun_group* world = reinterpret_cast<rankrun_group*>(&values);
  EXPECT_EQ(rankrun_world(&world), RANKRUN_INVALID);
  EXPECT_EQ(world, nullptr);
  EXPECT_EQ(rankrun_destroy(nullptr), RANKRUN_OK);
}

TEST(CApiTest, EachThreadHasItsOwnError) {
  EXPECT_EQ(rankrun_work_wait(nullptr), RANKRUN_INVALID);
  std::string others;
  std::thread([&] { others = rankrun_last_error(); }).join();
  EXPECT_STREQ(rankrun_last_error(), "rankrun_work_wait: work is NULL");
  EXPECT_EQ(others, "");
}

TEST(CApiTest, ReleaseIgnoresNull) {
  rankrun_work_release(nullptr);
  rankrun_bytes_release(nullptr);
  rankrun_store_release(nullptr);
  rankrun_saving_end(nullptr);
}

TEST(CApiTest, UnknownOptionsOfANewerProgramMustBeZero) {
  struct Newer {
    rankrun_init_options known;
    int64_t unknown;
  } options{};
  options.known.size = sizeof options;
  options.unknown = 7;
  ASSERT_EQ(rankrun_init_options_default(&options.known), RANKRUN_OK);
  EXPECT_EQ(options.known.size, sizeof options);
  EXPECT_EQ(options.known.rank, -1);
  EXPECT_STREQ(options.known.init_method, "env://");
  EXPECT_EQ(options.unknown, 0);

  options.known.init_method = "nowhere://";  // the error shows that this field is read
  EXPECT_THAT(Answer(rankrun_init(&options.known)), HasSubstr("nowhere"));
  options.unknown = 7;
  EXPECT_THAT(
      Answer(rankrun_init(&options.known)),
      StartsWith(
          "1: rankrun_init: options has 72 bytes, and this library (ABI 1) knows the first 64"));
}

TEST(CApiTest, AnOlderProgramHasTheDefaultsOfLaterOptions) {
  auto told = OnRanks(1, [] {
    rankrun_init_options options{};
    options.size = offsetof(rankrun_init_options, device_index);
    options.device_index = 77;  // memory behind the options of the older program
    EXPECT_EQ(rankrun_init_options_default(&options), RANKRUN_OK);
    EXPECT_EQ(options.device_index, 77);
    std::string status = std::to_string(rankrun_init(&options));
    rankrun_destroy(nullptr);
    return status;
  });
  EXPECT_THAT(told, Each("0"));
}

TEST(CApiTest, OptionsWithoutASizeAreRefused) {
  rankrun_init_options options{};
  EXPECT_THAT(
      Answer(rankrun_init_options_default(&options)),
      StartsWith(
          "1: rankrun_init_options_default: options has the size 0: want the sizeof its type"));
  EXPECT_EQ(rankrun_init(&options), RANKRUN_INVALID);
  EXPECT_EQ(rankrun_init_options_default(nullptr), RANKRUN_INVALID);
}

TEST(CApiTest, WrongArgumentsAreNamed) {
  auto texts = OnRanks(1, [] {
    rankrun_init(nullptr);
    std::vector<float> values{1, 2};
    rankrun_tensor tensor = TensorOfFloats(values);
    std::string said = Answer(rankrun_broadcast(nullptr, nullptr, 0, kUsual, nullptr)) + "\n";
    said += Answer(rankrun_broadcast(nullptr, &tensor, 5, kUsual, nullptr)) + "\n";
    said += Answer(rankrun_all_gather(nullptr, nullptr, 1, &tensor, kUsual, nullptr)) + "\n";
    tensor.dtype = 99;
    said += Answer(rankrun_broadcast(nullptr, &tensor, 0, kUsual, nullptr)) + "\n";
    tensor.dtype = RANKRUN_FLOAT32;
    rankrun_reduce_op op{.factor = 0, .kind = 77};
    said += Answer(rankrun_all_reduce(nullptr, &tensor, &op, kUsual, nullptr)) + "\n";
    tensor.device_type = 9;
    said += Answer(rankrun_broadcast(nullptr, &tensor, 0, kUsual, nullptr)) + "\n";
    tensor.device_type = RANKRUN_CPU;
    tensor.reserved = 1;
    said += Answer(rankrun_send(nullptr, &tensor, 0, 0, kUsual)) + "\n";
    return said;
  });
  std::istringstream lines(texts[0]);
  std::vector<std::string> said;
  for (std::string line; std::getline(lines, line);) said.push_back(line);
  EXPECT_THAT(
      said,
      ElementsAre("1: rankrun_broadcast: tensor is NULL", HasSubstr("global rank 5 is no member"),
                  "1: rankrun_all_gather: outputs is NULL", HasSubstr("no dtype has the number 99"),
                  HasSubstr("no operation has the number 77"),
                  HasSubstr("tensor: no device type has the number 9"),
                  "1: rankrun_send: tensor.reserved is not 0"));
}

TEST(CApiTest, EachKindOfErrorHasItsCode) {
  auto texts = OnRanks(2, [] {
    rankrun_init(nullptr);
    std::vector<float> values(1 + static_cast<size_t>(rankrun_global_rank(nullptr)));
    rankrun_tensor tensor = TensorOfFloats(values);
    std::string said;
    if (rankrun_global_rank(nullptr) == 0) {
      said += Answer(rankrun_monitored_barrier(nullptr, 1, 50)) + "\n";
    }
    said += Answer(rankrun_barrier(nullptr, kUsual, nullptr)).substr(0, 1) + "\n";
    rankrun_work* work = nullptr;
    said += Answer(rankrun_all_reduce(nullptr, &tensor, nullptr, kUsual, &work)).substr(0, 1);
    said += Answer(rankrun_work_wait(work)) + "\n";
    rankrun_work_release(work);
    said += Answer(rankrun_group_state(nullptr));
    return said;
  });
  EXPECT_THAT(texts[0], StartsWith("3: "));
  for (const std::string& text : texts) {
    EXPECT_THAT(text, HasSubstr("0\n04: "));
    EXPECT_THAT(text, HasSubstr("1 x float32"));
    EXPECT_THAT(text, HasSubstr("\n2: "));
  }
}

TEST(CApiTest, AMissingStoreIsANetworkErrorAndAMissingKeyAStoreError) {
  uint16_t port = 0;
  {
    ServerProcess gone;
    port = gone.port();
  }
  rankrun_tcp_store_options options;
  options.size = sizeof options;
  rankrun_tcp_store_options_default(&options);
  options.port = port;
  options.timeout_ms = 200;
  rankrun_store* store = nullptr;
  EXPECT_EQ(rankrun_tcp_store(&options, &store), RANKRUN_NETWORK) << rankrun_last_error();
  EXPECT_EQ(store, nullptr);

  ASSERT_EQ(rankrun_hash_store(kUsual, &store), RANKRUN_OK);
  rankrun_bytes* value = nullptr;
  EXPECT_THAT(Answer(rankrun_store_get(store, "key", 0, &value)), StartsWith("6: get key key"));
  EXPECT_EQ(value, nullptr);
  rankrun_store_release(store);
}

}  // namespace
}  // namespace rankrun::comm
