// C ABI: each function passes its arguments on correctly.

#include <gmock/gmock.h>

#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::Each;

constexpr int64_t kUsual = RANKRUN_DEFAULT_TIMEOUT;

using Ints = std::vector<int32_t>;

rankrun_tensor In(Ints& values, size_t first = 0, size_t count = SIZE_MAX) {
  return {.data = values.data() + first,
          .count = std::min(count, values.size() - first),
          .row = 1,
          .device_index = 0,
          .dtype = RANKRUN_INT32,
          .device_type = 0,
          .reserved = 0};
}

// Returns the failures as text; "": none.
class Check {
 public:
  Check() { Ok("init", rankrun_init(nullptr)); }

  void Ok(const char* what, rankrun_status status) {
    if (status != RANKRUN_OK) said_ += std::string(what) + ": " + rankrun_last_error() + "; ";
  }
  template <typename T>
  void Equal(const char* what, const T& is, const T& wanted) {
    if (is != wanted) said_ += std::string(what) + ": " + testing::PrintToString(is) + "; ";
  }
  void Blocking(const char* what, rankrun_status status, const Ints& is, const Ints& wanted) {
    Ok(what, status);
    Equal(what, is, wanted);
  }
  std::string Said() {
    Ok("destroy", rankrun_destroy(nullptr));
    return said_;
  }

 private:
  std::string said_;
};

TEST(CApiCallsTest, Reductions) {
  auto texts = OnRanks(2, [] {
    Check check;
    int me = rankrun_global_rank(nullptr);
    Ints a{me, 10 + me};
    Ints b{me, 10 + me};
    Ints one{0};
    auto ta = In(a);
    auto tb = In(b);
    auto tone = In(one);
    const rankrun_tensor parts[] = {In(b, 0, 1), In(b, 1, 1)};
    rankrun_reduce_op max{.factor = 0, .kind = RANKRUN_MAX};
    check.Blocking("all_reduce", rankrun_all_reduce(nullptr, &ta, nullptr, kUsual, nullptr), a,
                   {1, 21});
    check.Blocking("reduce_scatter",
                   rankrun_reduce_scatter(nullptr, &tone, parts, 2, &max, kUsual, nullptr), one,
                   {me == 0 ? 1 : 11});
    check.Blocking("reduce_scatter_from",
                   rankrun_reduce_scatter_from(nullptr, &tone, &tb, nullptr, kUsual, nullptr), one,
                   {me == 0 ? 1 : 21});
    check.Blocking("reduce", rankrun_reduce(nullptr, &tb, 1, nullptr, kUsual, nullptr), b,
                   me == 1 ? Ints{1, 21} : Ints{0, 10});
    std::vector<float> scaled{2};
    rankrun_tensor floats{.data = scaled.data(),
                          .count = 1,
                          .row = 1,
                          .device_index = 0,
                          .dtype = RANKRUN_FLOAT32,
                          .device_type = 0,
                          .reserved = 0};
    rankrun_reduce_op half{.factor = 0.5, .kind = RANKRUN_PREMUL_SUM};
    check.Ok("premul", rankrun_all_reduce(nullptr, &floats, &half, kUsual, nullptr));
    check.Equal("premul", scaled[0], 2.0F);
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(CApiCallsTest, DataMovement) {
  auto texts = OnRanks(2, [] {
    Check check;
    int me = rankrun_global_rank(nullptr);
    Ints mine{me, 10 + me};
    Ints all(4);
    auto tmine = In(mine);
    auto tall = In(all);
    rankrun_tensor places[] = {In(all, 0, 2), In(all, 2, 2)};
    check.Blocking("all_gather", rankrun_all_gather(nullptr, places, 2, &tmine, kUsual, nullptr),
                   all, {0, 10, 1, 11});
    all.assign(4, 0);
    check.Blocking("all_gather_into",
                   rankrun_all_gather_into(nullptr, &tall, &tmine, kUsual, nullptr), all,
                   {0, 10, 1, 11});
    all.assign(4, -1);
    check.Blocking("gather",
                   rankrun_gather(nullptr, me == 1 ? places : nullptr, me == 1 ? 2 : 0, &tmine, 1,
                                  kUsual, nullptr),
                   all, me == 1 ? Ints{0, 10, 1, 11} : Ints{-1, -1, -1, -1});
    all = {1, 2, 3, 4};
    check.Blocking("scatter",
                   rankrun_scatter(nullptr, &tmine, me == 1 ? places : nullptr, me == 1 ? 2 : 0, 1,
                                   kUsual, nullptr),
                   mine, me == 0 ? Ints{1, 2} : Ints{3, 4});
    check.Blocking("broadcast", rankrun_broadcast(nullptr, &tmine, 1, kUsual, nullptr), mine,
                   {3, 4});
    check.Ok("barrier", rankrun_barrier(nullptr, kUsual, nullptr));
    check.Ok("monitored_barrier", rankrun_monitored_barrier(nullptr, 0, 30'000));
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(CApiCallsTest, AllToAll) {
  auto texts = OnRanks(2, [] {
    Check check;
    int me = rankrun_global_rank(nullptr);
    Ints from{me, 10 + me};
    Ints to(2);
    const rankrun_tensor parts[] = {In(from, 0, 1), In(from, 1, 1)};
    const rankrun_tensor places[] = {In(to, 0, 1), In(to, 1, 1)};
    check.Blocking("all_to_all", rankrun_all_to_all(nullptr, places, 2, parts, 2, kUsual, nullptr),
                   to, me == 0 ? Ints{0, 1} : Ints{10, 11});
    // Rows of two: rank 0 sends all its rows to rank 1 and none to itself.
    Ints rows{me, me, 5, 5};
    Ints got(me == 0 ? 2 : 6, -1);
    auto trows = In(rows);
    auto tgot = In(got);
    trows.row = tgot.row = 2;
    const size_t gives[2] = {me == 0 ? 0U : 1U, me == 0 ? 2U : 1U};
    const size_t gets[2] = {me == 0 ? 0U : 2U, 1U};
    check.Blocking(
        "all_to_all_single",
        rankrun_all_to_all_single(nullptr, &tgot, &trows, gets, 2, gives, 2, kUsual, nullptr), got,
        me == 0 ? Ints{1, 1} : Ints{0, 0, 5, 5, 5, 5});
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(CApiCallsTest, WorkIsAHandle) {
  auto texts = OnRanks(2, [] {
    Check check;
    Ints one{1};
    auto tone = In(one);
    rankrun_work* work = nullptr;
    int done = 0;
    int called = 0;
    check.Ok("all_reduce", rankrun_all_reduce(nullptr, &tone, nullptr, kUsual, &work));
    check.Ok("wait_for", rankrun_work_wait_for(work, 30'000, &done));
    check.Equal("done", done, 1);
    check.Ok("wait", rankrun_work_wait(work));
    check.Equal("value", one[0], 2);
    check.Equal("test", rankrun_work_test(work), 1);
    check.Equal("sequence", rankrun_work_sequence(work), uint64_t{1});
    check.Equal("source", rankrun_work_source(work), -1);
    check.Ok("then", rankrun_work_then(
                         work, [](void* context) { ++*static_cast<int*>(context); }, &called));
    check.Equal("called", called, 1);
    rankrun_work* works[] = {work, nullptr};
    check.Ok("barrier", rankrun_barrier(nullptr, kUsual, &works[1]));
    rankrun_work* all = nullptr;
    check.Ok("coalesce", rankrun_work_coalesce(works, 2, &all));
    check.Ok("wait for all", rankrun_work_wait(all));
    check.Equal("test of the barrier", rankrun_work_test(works[1]), 1);
    check.Equal("sequence of all", rankrun_work_sequence(all), uint64_t{0});
    rankrun_work_release(all);
    for (rankrun_work* each : works) rankrun_work_release(each);
    works[1] = nullptr;
    check.Equal("coalesce NULL", rankrun_work_coalesce(&works[1], 1, &all), RANKRUN_INVALID);
    check.Ok("barrier", rankrun_barrier(nullptr, kUsual, &work));
    rankrun_work_release(work);  // the operation continues
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(CApiCallsTest, Messages) {
  auto texts = OnRanks(2, [] {
    Check check;
    int me = rankrun_global_rank(nullptr);
    Ints out{100 + me};
    Ints in(1);
    auto tout = In(out);
    auto tin = In(in);
    if (me == 0) {
      check.Ok("send", rankrun_send(nullptr, &tout, 1, 3, kUsual));
    } else {
      int sender = -2;
      check.Ok("recv", rankrun_recv(nullptr, &tin, RANKRUN_ANY_SOURCE, 3, kUsual, &sender));
      check.Equal("sender", sender, 0);
      check.Equal("received", in, Ints{100});
    }
    const rankrun_message messages[] = {
        {.tensor = tout, .is_send = 1, .peer = 1 - me, .tag = 4, .reserved = 0},
        {.tensor = tin, .is_send = 0, .peer = 1 - me, .tag = 4, .reserved = 0}};
    rankrun_work* works[2];
    check.Ok("batch", rankrun_batch(nullptr, messages, 2, works));
    for (rankrun_work* work : works) check.Ok("batch's", rankrun_work_wait(work));
    check.Equal("source", rankrun_work_source(works[1]), 1 - me);
    check.Equal("exchanged", in, Ints{101 - me});
    for (rankrun_work* work : works) rankrun_work_release(work);
    check.Ok("irecv", rankrun_irecv(nullptr, &tin, 1 - me, 0, &works[0]));
    check.Ok("isend", rankrun_isend(nullptr, &tout, 1 - me, 0, &works[1]));
    for (rankrun_work* work : works) check.Ok("started", rankrun_work_wait(work));
    for (rankrun_work* work : works) rankrun_work_release(work);
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

// Returns received objects and frees them.
std::vector<std::string> Taken(rankrun_bytes* objects, size_t count) {
  std::vector<std::string> texts;
  for (size_t i = 0; objects != nullptr && i < count; ++i) {
    texts.emplace_back(static_cast<const char*>(objects[i].data), objects[i].size);
  }
  rankrun_bytes_release(objects);
  return texts;
}

TEST(CApiCallsTest, Objects) {
  auto texts = OnRanks(2, [] {
    using Texts = std::vector<std::string>;
    Check check;
    int me = rankrun_global_rank(nullptr);
    std::string a(static_cast<size_t>(me), 'a');  // rank 0's is empty
    std::string b = "bcd";
    const rankrun_bytes both[] = {{a.data(), a.size()}, {b.data(), b.size()}};
    rankrun_bytes* got = nullptr;
    int sender = -1;
    check.Ok("all", rankrun_all_gather_object(nullptr, both, kUsual, &got));
    check.Equal("all", Taken(got, 2), Texts{"", "a"});
    check.Ok("gather", rankrun_gather_object(nullptr, both, 1, kUsual, &got));
    check.Equal("gather", Taken(got, 2), me == 1 ? Texts{"", "a"} : Texts{});
    check.Ok("broadcast",
             rankrun_broadcast_objects(nullptr, me == 1 ? both : nullptr, 2, 1, kUsual, &got));
    check.Equal("broadcast", Taken(got, 2), Texts{"a", "bcd"});
    check.Ok("scatter", rankrun_scatter_objects(nullptr, me == 1 ? both : nullptr, me == 1 ? 2 : 0,
                                                1, kUsual, &got));
    check.Equal("scatter", Taken(got, 1), me == 0 ? Texts{"a"} : Texts{"bcd"});
    if (me == 1) {
      check.Ok("send", rankrun_send_objects(nullptr, both, 2, 0, 5, kUsual));
    } else {
      check.Ok("recv",
               rankrun_recv_objects(nullptr, 2, RANKRUN_ANY_SOURCE, 5, kUsual, &got, &sender));
      check.Equal("recv", Taken(got, 2), Texts{"a", "bcd"});
      check.Equal("sender", sender, 1);
    }
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(CApiCallsTest, GroupsAndTheirRanks) {
  auto texts = OnRanks(3, [] {
    Check check;
    int me = rankrun_global_rank(nullptr);
    const int32_t members[] = {2, 0};
    rankrun_group_options options;
    options.size = sizeof options;
    check.Ok("defaults", rankrun_group_options_default(&options));
    options.ranks = members;
    options.ranks_count = 2;
    options.sort_ranks = 0;
    options.description = "ends";
    rankrun_group* ends = nullptr;
    check.Ok("new_group", rankrun_new_group(&options, &ends));
    check.Equal("is_member", rankrun_is_member(ends), me == 1 ? 0 : 1);
    check.Equal("group_rank", rankrun_group_rank(ends), me == 1 ? -1 : (me == 2 ? 0 : 1));
    check.Equal("world_size", rankrun_world_size(ends), me == 1 ? -1 : 2);
    check.Equal("description", std::string(rankrun_group_description(ends)), std::string("ends"));
    check.Equal("name of the world", std::string(rankrun_group_name(nullptr)),
                std::string("world"));
    check.Equal("backend", std::string(rankrun_group_backend(nullptr)), std::string("shm"));
    check.Equal("a non-member's backend", rankrun_group_backend(ends) == nullptr, me == 1);
    const int* ranks = nullptr;
    size_t count = 0;
    check.Ok("group_ranks", rankrun_group_ranks(ends, &ranks, &count));
    check.Equal("ranks", Ints(ranks, ranks + count), Ints{2, 0});
    int rank = -1;
    check.Ok("to_group_rank", rankrun_to_group_rank(ends, 0, &rank));
    check.Equal("group rank of 0", rank, 1);
    check.Ok("to_global_rank", rankrun_to_global_rank(ends, 0, &rank));
    check.Equal("global rank of 0", rank, 2);
    check.Ok("state", rankrun_group_state(ends));
    Ints value{me};
    auto tensor = In(value);
    check.Ok("broadcast", rankrun_broadcast(ends, &tensor, 2, kUsual, nullptr));
    check.Equal("value", value[0], me == 1 ? 1 : 2);
    check.Ok("destroy", rankrun_destroy(ends));
    check.Equal("initialized", rankrun_initialized(), 1);
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(CApiCallsTest, GroupsOfTheRanksOfAGroup) {
  auto texts = OnRanks(3, [] {
    Check check;
    const int me = rankrun_global_rank(nullptr);
    rankrun_subgroup_options options;
    options.size = sizeof options;
    check.Ok("defaults", rankrun_subgroup_options_default(&options));
    options.description = "part";
    const int32_t ranks[] = {2, 0, 1};
    const size_t sizes[] = {2, 1};
    rankrun_group* part = nullptr;
    check.Ok("split", rankrun_split_group(nullptr, ranks, sizes, 2, &options, &part));
    check.Equal("rank in the part", rankrun_group_rank(part), me == 0 ? 1 : 0);
    check.Equal("size of the part", rankrun_world_size(part), me == 1 ? 1 : 2);
    check.Equal("description", std::string(rankrun_group_description(part)), std::string("part"));
    if (me == 1) return check.Said();
    rankrun_group* rest = nullptr;
    const int32_t excluded[] = {1};
    check.Ok("shrink", rankrun_shrink_group(nullptr, excluded, 1, nullptr, &rest));
    check.Equal("size of the rest", rankrun_world_size(rest), 2);
    check.Equal("state of the parent", rankrun_group_state(nullptr), RANKRUN_BACKEND);
    Ints value{1};
    auto tensor = In(value);
    check.Ok("all_reduce", rankrun_all_reduce(rest, &tensor, nullptr, kUsual, nullptr));
    check.Equal("sum", value[0], 2);
    check.Equal("sizes", rankrun_split_group(rest, nullptr, sizes, 1, nullptr, &part),
                RANKRUN_INVALID);
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(CApiCallsTest, AnAbortEndsTheCallsOfAllRanks) {
  auto texts = OnRanks(2, [] {
    Check check;
    const bool aborts = rankrun_global_rank(nullptr) == 1;
    if (aborts) check.Ok("abort", rankrun_abort(nullptr, "enough"));
    if (aborts) check.Ok("abort again", rankrun_abort(nullptr, nullptr));
    Ints value{1};
    auto tensor = In(value);
    const rankrun_status status =
        rankrun_recv(nullptr, &tensor, aborts ? 0 : 1, 0, kUsual, nullptr);
    check.Equal("status", status == RANKRUN_BACKEND || (!aborts && status == RANKRUN_NETWORK),
                true);
    const std::string text = rankrun_last_error();
    check.Equal("text", text.find("rank 1 aborted the group: enough") != std::string::npos, true);
    check.Ok("destroy", rankrun_destroy(nullptr));
    check.Equal("abort after destroy", rankrun_abort(nullptr, nullptr), RANKRUN_INVALID);
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

TEST(CApiCallsTest, ContextsAndDestroyedGroups) {
  auto texts = OnRanks(2, [] {
    Check check;
    rankrun_context* context = nullptr;
    rankrun_group* world = nullptr;
    rankrun_group* group = nullptr;
    check.Ok("context", rankrun_context_init("io", nullptr, &context));
    check.Ok("world of it", rankrun_context_world(context, &world));
    check.Ok("group of it", rankrun_context_new_group(context, nullptr, &group));
    Ints value{1};
    auto tensor = In(value);
    check.Ok("all_reduce", rankrun_all_reduce(world, &tensor, nullptr, kUsual, nullptr));
    check.Ok("all_reduce", rankrun_all_reduce(group, &tensor, nullptr, kUsual, nullptr));
    check.Equal("sum", value[0], 4);
    check.Ok("destroy the group", rankrun_destroy(group));
    rankrun_context_release(context);
    for (rankrun_group* destroyed : {group, world}) {
      check.Equal("barrier", rankrun_barrier(destroyed, kUsual, nullptr), RANKRUN_INVALID);
      check.Equal("world size", rankrun_world_size(destroyed), -1);
      check.Equal("name", rankrun_group_name(destroyed) == nullptr, true);
    }
    const std::string error = rankrun_last_error();
    check.Equal(error.c_str(), error.ends_with("is destroyed: want no call after Destroy()"), true);
    rankrun_context_release(nullptr);
    return check.Said();
  });
  EXPECT_THAT(texts, Each(""));
}

}  // namespace
}  // namespace rankrun::comm
