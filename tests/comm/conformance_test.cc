// Behaviour of torch.distributed's functions as test vectors: each vector of
// vectors.json runs on each backend.

#include "tests/comm/conformance.h"

#include <gmock/gmock.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

VectorRun RunOf(const std::string& op) {
  for (const auto* runs : {&CollectiveRuns(), &MessageRuns(), &ObjectRuns(), &FailureRuns()}) {
    if (auto run = runs->find(op); run != runs->end()) return run->second;
  }
  return nullptr;
}

struct Case {
  const Json* vector;
  const char* backend;
};

// Returns a test name such as "RS2_MAX_shm".
std::string NameOf(const Case& one) {
  auto name = one.vector->at("id").get<std::string>() + "_" + one.backend;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void PrintTo(const Case& one, std::ostream* out) { *out << NameOf(one); }

std::vector<Case> Cases() {
  std::vector<const char*> backends{"shm", "tcp", "hierarchical", "gloo"};
  // A backend that is built outside of this tree.
  if (const char* outside = std::getenv("RANKRUN_TEST_BACKEND")) backends = {outside};
  std::vector<Case> cases;
  for (const char* backend : backends) {
    for (const Json& vector : Vectors()) cases.push_back({&vector, backend});
  }
  return cases;
}

struct ConformanceTest : testing::TestWithParam<Case> {};

TEST_P(ConformanceTest, Vector) {
  const Json& vector = *GetParam().vector;
  VectorRun run = RunOf(vector.at("op"));
  ASSERT_NE(run, nullptr) << "no function runs " << vector.at("op");
  auto wrong = InWorld(vector.at("W"), GetParam().backend,
                       [&](ProcessGroup& world) { return run(world, vector); });
  EXPECT_THAT(wrong, testing::Each(""));
}

INSTANTIATE_TEST_SUITE_P(Vectors, ConformanceTest, testing::ValuesIn(Cases()),
                         [](const auto& one) { return NameOf(one.param); });

TEST(VectorsTest, EveryIdIsThereOnce) {
  std::set<std::string> ids;
  for (const Json& vector : Vectors()) {
    EXPECT_TRUE(ids.insert(vector.at("id")).second) << vector.at("id");
  }
  EXPECT_EQ(ids.size(), 53U);
}

}  // namespace
}  // namespace rankrun::comm
