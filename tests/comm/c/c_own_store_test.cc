// C ABI: a store of the program's own.

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>

#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr int64_t kUsual = RANKRUN_DEFAULT_TIMEOUT;

// A program's store over a HashStore, with errors on demand.
struct Backing {
  rankrun_store* store = nullptr;
  int destroyed = 0;
  rankrun_status failure = RANKRUN_OK;
  std::string text = {};  // of the failure
};

Backing& Of(void* context) { return *static_cast<Backing*>(context); }

rankrun_status Fail(Backing& backing, rankrun_store_answer* answer) {
  rankrun_store_answer_set(answer, backing.text.data(), backing.text.size());
  return backing.failure;
}

// Hands the result of a function of the HashStore on.
rankrun_status End(rankrun_status status, rankrun_store_answer* answer) {
  const char* error = rankrun_last_error();
  if (status != RANKRUN_OK) rankrun_store_answer_set(answer, error, std::strlen(error));
  return status;
}

// The same with a value that the function has made.
rankrun_status End(rankrun_status status, rankrun_bytes*& value, rankrun_store_answer* answer) {
  if (value != nullptr) rankrun_store_answer_set(answer, value->data, value->size);
  rankrun_bytes_release(value);
  return End(status, answer);
}

rankrun_store_functions FunctionsOf(Backing& backing) {
  return {.size = sizeof(rankrun_store_functions),
          .reserved = 0,
          .context = &backing,
          .set =
              [](void* context, const char* key, const rankrun_bytes* value,
                 rankrun_store_answer* answer) {
                Backing& own = Of(context);
                if (own.failure != RANKRUN_OK) return Fail(own, answer);
                return End(rankrun_store_set(own.store, key, value->data, value->size), answer);
              },
          .get =
              [](void* context, const char* key, int64_t timeout_ms, rankrun_store_answer* answer) {
                rankrun_bytes* value = nullptr;
                return End(rankrun_store_get(Of(context).store, key, timeout_ms, &value), value,
                           answer);
              },
          .add =
              [](void* context, const char* key, int64_t delta, int64_t* sum,
                 rankrun_store_answer* answer) {
                return End(rankrun_store_add(Of(context).store, key, delta, sum), answer);
              },
          .check =
              [](void* context, const char* const* keys, size_t count, int* exist,
                 rankrun_store_answer* answer) {
                return End(rankrun_store_check(Of(context).store, keys, count, exist), answer);
              },
          .wait =
              [](void* context, const char* const* keys, size_t count, int64_t timeout_ms,
                 rankrun_store_answer* answer) {
                return End(rankrun_store_wait(Of(context).store, keys, count, timeout_ms), answer);
              },
          .compare_set =
              [](void* context, const char* key, const rankrun_bytes* expected,
                 const rankrun_bytes* desired, int* swapped, rankrun_store_answer* answer) {
                rankrun_bytes* value = nullptr;
                return End(rankrun_store_compare_set(Of(context).store, key, expected, desired,
                                                     &value, swapped),
                           value, answer);
              },
          .remove =
              [](void* context, const char* key, int* existed, rankrun_store_answer* answer) {
                return End(rankrun_store_delete(Of(context).store, key, existed), answer);
              },
          .num_keys =
              [](void* context, int64_t* count, rankrun_store_answer* answer) {
                return End(rankrun_store_num_keys(Of(context).store, count), answer);
              },
          .destroy = [](void* context) { ++Of(context).destroyed; }};
}

class COwnStoreTest : public testing::Test {
 protected:
  COwnStoreTest() {
    EXPECT_EQ(rankrun_hash_store(kUsual, &backing_.store), RANKRUN_OK);
    rankrun_store_functions functions = FunctionsOf(backing_);
    EXPECT_EQ(rankrun_own_store(&functions, kUsual, &store_), RANKRUN_OK) << rankrun_last_error();
  }
  ~COwnStoreTest() override {
    rankrun_store_release(store_);
    rankrun_store_release(backing_.store);
  }

  std::string Get(const char* key) {
    rankrun_bytes* value = nullptr;
    EXPECT_EQ(rankrun_store_get(store_, key, 0, &value), RANKRUN_OK) << rankrun_last_error();
    std::string text(static_cast<const char*>(value->data), value->size);
    rankrun_bytes_release(value);
    return text;
  }

  Backing backing_;
  rankrun_store* store_ = nullptr;
};

TEST_F(COwnStoreTest, EachFunctionIsCalledWithItsArguments) {
  EXPECT_EQ(rankrun_store_set(store_, "zero", "a\0b", 3), RANKRUN_OK);
  EXPECT_EQ(Get("zero"), std::string("a\0b", 3));
  int64_t sum = 0;
  EXPECT_EQ(rankrun_store_add(store_, "n", 42, &sum), RANKRUN_OK);
  EXPECT_EQ(sum, 42);
  const char* keys[] = {"zero", "n", "absent"};
  int exist = -1;
  EXPECT_EQ(rankrun_store_check(store_, keys, 2, &exist), RANKRUN_OK);
  EXPECT_EQ(exist, 1);
  EXPECT_EQ(rankrun_store_check(store_, keys, 3, &exist), RANKRUN_OK);
  EXPECT_EQ(exist, 0);
  EXPECT_EQ(rankrun_store_wait(store_, keys, 2, 0), RANKRUN_OK);
  char before[] = "a", after[] = "b";
  rankrun_bytes nothing{nullptr, 0}, a{before, 1}, b{after, 1};
  rankrun_bytes* value = nullptr;
  int swapped = -1;
  EXPECT_EQ(rankrun_store_compare_set(store_, "c", &nothing, &a, &value, &swapped), RANKRUN_OK);
  EXPECT_EQ(swapped, 1);
  rankrun_bytes_release(value);
  EXPECT_EQ(rankrun_store_compare_set(store_, "c", &b, &b, &value, &swapped), RANKRUN_OK);
  EXPECT_EQ(swapped, 0);
  EXPECT_EQ(std::string(static_cast<const char*>(value->data), value->size), "a");
  rankrun_bytes_release(value);
  int64_t count = 0;
  EXPECT_EQ(rankrun_store_num_keys(store_, &count), RANKRUN_OK);
  EXPECT_EQ(count, 3);
  int existed = -1;
  EXPECT_EQ(rankrun_store_delete(store_, "c", &existed), RANKRUN_OK);
  EXPECT_EQ(existed, 1);
  EXPECT_EQ(rankrun_store_delete(store_, "c", &existed), RANKRUN_OK);
  EXPECT_EQ(existed, 0);
  EXPECT_EQ(rankrun_store_has_extended_api(store_), 0);
}

TEST_F(COwnStoreTest, AStatusAndItsTextReachTheCaller) {
  struct Row {
    rankrun_status status, seen;
  };
  const Row rows[] = {{RANKRUN_STORE, RANKRUN_STORE},
                      {RANKRUN_NETWORK, RANKRUN_NETWORK},
                      {RANKRUN_INVALID, RANKRUN_INVALID},
                      {RANKRUN_INTERNAL, RANKRUN_STORE}};
  for (const Row& row : rows) {
    backing_.failure = row.status;
    backing_.text = "the disk is full";
    EXPECT_EQ(rankrun_store_set(store_, "key", "", 0), row.seen);
    EXPECT_THAT(rankrun_last_error(), EndsWith("the disk is full"));
    backing_.text.clear();
    EXPECT_EQ(rankrun_store_set(store_, "key", "", 0), row.seen);
    EXPECT_THAT(rankrun_last_error(), HasSubstr("the program's store: set failed with status " +
                                                std::to_string(row.status)));
  }
}

TEST_F(COwnStoreTest, AWaitHasTheTimeoutOfTheCallOrOfTheStore) {
  rankrun_store_functions functions = FunctionsOf(backing_);
  functions.get = [](void*, const char*, int64_t timeout_ms, rankrun_store_answer* answer) {
    const std::string text = std::to_string(timeout_ms);
    return rankrun_store_answer_set(answer, text.data(), text.size());
  };
  rankrun_store* store = nullptr;
  ASSERT_EQ(rankrun_own_store(&functions, 1500, &store), RANKRUN_OK);
  for (const auto& [limit, seen] : {std::pair(kUsual, "1500"), std::pair(int64_t{0}, "0")}) {
    rankrun_bytes* value = nullptr;
    EXPECT_EQ(rankrun_store_get(store, "key", limit, &value), RANKRUN_OK);
    EXPECT_EQ(std::string(static_cast<const char*>(value->data), value->size), seen);
    rankrun_bytes_release(value);
  }
  rankrun_store_release(store);
}

TEST_F(COwnStoreTest, ItsContextIsFreedWithTheLastUser) {
  rankrun_store* prefix = nullptr;
  ASSERT_EQ(rankrun_prefix_store("p", store_, &prefix), RANKRUN_OK);
  rankrun_store_release(store_);
  store_ = nullptr;
  EXPECT_EQ(backing_.destroyed, 0);
  EXPECT_EQ(rankrun_store_set(prefix, "key", "", 0), RANKRUN_OK);
  rankrun_store_release(prefix);
  EXPECT_EQ(backing_.destroyed, 1);
}

TEST_F(COwnStoreTest, AFunctionThatIsMissingIsNamed) {
  const std::pair<const char*, std::function<void(rankrun_store_functions&)>> rows[] = {
      {"set", [](auto& functions) { functions.set = nullptr; }},
      {"get", [](auto& functions) { functions.get = nullptr; }},
      {"add", [](auto& functions) { functions.add = nullptr; }},
      {"check", [](auto& functions) { functions.check = nullptr; }},
      {"wait", [](auto& functions) { functions.wait = nullptr; }},
      {"compare_set", [](auto& functions) { functions.compare_set = nullptr; }},
      {"remove", [](auto& functions) { functions.remove = nullptr; }},
      {"num_keys", [](auto& functions) { functions.num_keys = nullptr; }}};
  for (const auto& [name, take] : rows) {
    rankrun_store_functions functions = FunctionsOf(backing_);
    take(functions);
    rankrun_store* store = nullptr;
    EXPECT_EQ(rankrun_own_store(&functions, kUsual, &store), RANKRUN_INVALID);
    EXPECT_EQ(rankrun_last_error(),
              "rankrun_own_store: functions." + std::string(name) + " is NULL");
    EXPECT_EQ(store, nullptr);
  }
  rankrun_store* store = nullptr;
  EXPECT_EQ(rankrun_own_store(nullptr, kUsual, &store), RANKRUN_INVALID);
  EXPECT_EQ(backing_.destroyed, 0);
}

TEST(COwnStoreOfRanksTest, RanksMeetInIt) {
  test::TempFolder folder;
  const std::string path = folder.Path("store");
  auto texts = OnRanks(2, [&](int rank) {
    Backing backing;
    rankrun_file_store(path.c_str(), "run", kUsual, &backing.store);
    rankrun_store_functions functions = FunctionsOf(backing);
    rankrun_init_options options;
    options.size = sizeof options;
    rankrun_init_options_default(&options);
    options.rank = rank;
    options.world_size = 2;
    rankrun_own_store(&functions, kUsual, &options.store);
    const rankrun_status status = rankrun_init(&options);
    rankrun_store_release(options.store);
    if (status != RANKRUN_OK) return std::string(rankrun_last_error());
    std::string text = SumOf(World());
    rankrun_destroy(nullptr);
    return text + ", freed " + std::to_string(backing.destroyed);
  });
  EXPECT_THAT(texts, testing::Each("2 of 2, freed 1"));
}

}  // namespace
}  // namespace rankrun::comm
