// Join in C.

#include <gmock/gmock.h>

#include <functional>
#include <string>

#include <rankrun/rankrun.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kUsual = RANKRUN_DEFAULT_TIMEOUT;

// Joinable whose step adds one of each rank that has an input.
struct Counter {
  std::string seen;
  rankrun_status hook_status = RANKRUN_OK;

  rankrun_status Add(int32_t mine) {
    rankrun_tensor tensor{.data = &mine,
                          .count = 1,
                          .row = 1,
                          .device_index = 0,
                          .dtype = RANKRUN_INT32,
                          .device_type = 0,
                          .reserved = 0};
    rankrun_status status = rankrun_all_reduce(nullptr, &tensor, nullptr, kUsual, nullptr);
    seen += std::to_string(mine) + " ";  // the sum
    return status;
  }
  rankrun_joinable AsJoinable() {
    return {.group = nullptr,
            .context = this,
            .main_hook =
                [](void* context) {
                  auto& counter = *static_cast<Counter*>(context);
                  counter.seen += "hook ";
                  rankrun_status status = counter.Add(0);
                  return counter.hook_status == RANKRUN_OK ? status : counter.hook_status;
                },
            .post_hook =
                [](void* context, int is_last_joiner) {
                  auto& counter = *static_cast<Counter*>(context);
                  counter.seen += is_last_joiner != 0 ? "last" : "not last";
                  return RANKRUN_OK;
                }};
  }
};

// Makes `steps` steps in a Join. Returns what the rank saw, or the error's text.
std::string Train(Counter& counter, int steps, const rankrun_join_options* options) {
  const rankrun_joinable joinable = counter.AsJoinable();
  rankrun_join* join = rankrun_join_begin(&joinable, 1, options);
  if (join == nullptr) return rankrun_last_error();
  rankrun_status status = RANKRUN_OK;
  for (int i = 0; i < steps && status == RANKRUN_OK; ++i) {
    status = rankrun_join_notify(join);
    if (status == RANKRUN_OK) status = counter.Add(1);
  }
  if (status == RANKRUN_OK) status = rankrun_join_finish(join);
  std::string text =
      status == RANKRUN_OK ? counter.seen : std::to_string(status) + ": " + rankrun_last_error();
  rankrun_join_end(join);
  return text;
}

TEST(CApiJoinTest, ARankWithoutInputsTakesPart) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Counter counter;
    return Train(counter, world.global_rank() == 0 ? 1 : 3, nullptr);
  });
  EXPECT_THAT(texts, ElementsAre("2 hook 1 hook 1 not last", "2 1 1 last"));
}

TEST(CApiJoinTest, TheFirstExhaustionMayEndAllRanks) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    rankrun_join_options options{};
    options.size = sizeof options;
    if (rankrun_join_options_default(&options) != RANKRUN_OK || options.enable != 1) {
      return std::string("no defaults");
    }
    options.throw_on_early_termination = 1;
    Counter counter;
    return Train(counter, world.global_rank() == 0 ? 1 : 3, &options);
  });
  EXPECT_THAT(texts[0], HasSubstr("Join: global rank 0 has no more inputs"));
  EXPECT_THAT(texts[1], HasSubstr("Join: at least one rank has no more inputs"));
}

TEST(CApiJoinTest, AHookThatFailsGivesItsStatus) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Counter counter;
    if (world.global_rank() == 0) counter.hook_status = RANKRUN_NETWORK;
    return Train(counter, world.global_rank() == 0 ? 1 : 3, nullptr);
  });
  EXPECT_EQ(texts[0], std::to_string(RANKRUN_NETWORK) + ": Join: a hook failed: it returned " +
                          std::to_string(RANKRUN_NETWORK));
  EXPECT_THAT(texts[1], HasSubstr("the end of a Join before Finish"));
}

TEST(CApiJoinTest, NullIsRefused) {
  auto texts = InWorld(1, "shm", [](ProcessGroup&) {
    if (rankrun_join_begin(nullptr, 1, nullptr) != nullptr) return std::string("no list: begun");
    std::string text = std::string(rankrun_last_error()) + "\n";
    if (rankrun_join_begin(nullptr, 0, nullptr) != nullptr) return std::string("empty: begun");
    text += std::string(rankrun_last_error()) + "\n";
    if (rankrun_join_notify(nullptr) != RANKRUN_INVALID) return std::string("no join: notified");
    return text + rankrun_last_error();
  });
  EXPECT_THAT(texts, ElementsAre("rankrun_join_begin: joinables is NULL\n"
                                 "Join: there is no joinable: want at least one\n"
                                 "rankrun_join_notify: join is NULL"));
}

}  // namespace
}  // namespace rankrun::comm
