// Messages of a group: from this rank to itself, and those pending when the
// group ends.

#include <gmock/gmock.h>

#include <future>
#include <string>
#include <vector>

#include <rankrun/dist_error.h>

#include "tests/comm/group/group_fixture.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct GroupMessagesTest : GroupTest {};

TEST_F(GroupMessagesTest, AMessageOfARankToItselfNeedsNoOtherRank) {
  auto group = Make(0, 2);
  std::vector<int64_t> sent{7, 8}, received(2), later(2);
  Work before = *group->IRecv(later, GroupRank{0}, 5, {});
  EXPECT_FALSE(before.WaitFor(milliseconds(1)));
  ASSERT_TRUE(group->ISend(sent, GroupRank{0}, 1, {}));
  ASSERT_TRUE(group->ISend(sent, GroupRank{0}, 5, {}));
  EXPECT_TRUE(before.IsSuccess());
  Work after = *group->IRecv(received, Source(), 1, {});
  after.Wait();
  EXPECT_EQ(after.source_global_rank(), 0);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(later, sent);
  ASSERT_TRUE(group->ISend(sent, GroupRank{0}, 2, {}));
  EXPECT_EQ(*group->Recv(received, Source(), 2, {}), 0);
  EXPECT_THAT(ErrorOf(group->Send(sent, GroupRank{0}, 0, {})).message,
              EndsWith("the destination is this rank: want another, or ISend"));
}

TEST_F(GroupMessagesTest, AReceiveOfARankFromItselfTimesOut) {
  std::vector<int64_t> received(2);
  auto group = MakeOf({0, 1}, 0, milliseconds(20));
  Work work = *group->IRecv(received, GroupRank{0}, 5, {});
  EXPECT_THROW(work.Wait(), DistTimeoutError);
  EXPECT_EQ(group->state(), GroupState::kBroken);

  group = MakeOf({0, 1}, 0, std::chrono::seconds(60));
  EXPECT_THAT(ErrorOf(group->Recv(received, GroupRank{0}, 5, milliseconds(20))).message,
              HasSubstr("no matching Send after 20 ms"));
}

TEST_F(GroupMessagesTest, TheTimeoutOfAPostedMessageStartsWithItsWait) {
  for (GroupRank from : {GroupRank{0}, GroupRank{1}}) {
    FakeBackend* backend = nullptr;
    auto group = MakeOf({0, 1}, 0, milliseconds(20), &backend);
    backend->has_messages = true;
    Work work = *group->IRecv(data, from, 5, {});
    auto posted = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() < posted + milliseconds(200)) {
      ASSERT_FALSE(work.IsCompleted());
    }
    EXPECT_EQ(group->state(), GroupState::kOk);
    EXPECT_THROW(work.Wait(), DistTimeoutError);
    EXPECT_EQ(group->state(), GroupState::kBroken);
  }
}

TEST_F(GroupMessagesTest, APostedMessageMayHaveATimeoutOfItsOwn) {
  for (GroupRank from : {GroupRank{0}, GroupRank{1}}) {
    FakeBackend* backend = nullptr;
    auto group = MakeOf({0, 1}, 0, std::chrono::seconds(60), &backend);
    backend->has_messages = true;
    Work work = *group->IRecv(data, from, 5, milliseconds(20));
    EXPECT_THROW(work.Wait(), DistTimeoutError);
    EXPECT_EQ(work.result(), WorkResult::kTimeout);
    EXPECT_THAT(ErrorOf(group->ISend(data, from, 5, milliseconds(0))).message,
                HasSubstr("want at least 1 ms"));
  }
}

TEST_F(GroupMessagesTest, AReceiveOfARankFromItselfEndsWithTheGroup) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  Work work = *group->IRecv(data, GroupRank{0}, 5, {});
  auto blocked =
      std::async(std::launch::async, [&] { return group->Recv(data, GroupRank{0}, 6, {}); });
  backend->failure = Error{ErrorCode::kPeerLost, "lost rank 1"};
  ErrorOf(group->Barrier({}));
  EXPECT_THROW(work.Wait(), DistBackendError);
  EXPECT_THAT(ErrorOf(blocked.get()).message, HasSubstr("lost rank 1"));
}

TEST_F(GroupMessagesTest, AReceiveOfARankFromItselfEndsWithADeath) {
  auto group = Make(0, 2);
  Work work = *group->IRecv(data, GroupRank{0}, 5, {});
  page.PublishPeerDeath("rank 1 was killed by SIGKILL");
  try {
    work.Wait();
    ADD_FAILURE();
  } catch (const DistError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 was killed by SIGKILL"));
  }
}

TEST_F(GroupMessagesTest, AMessageThatIsLateWhileTheGroupBreaksWaitsForTheBackendToEnd) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  backend->has_messages = true;
  std::future<Result<int>> late = std::async(
      std::launch::async, [&] { return group->Recv(data, GroupRank{1}, 0, milliseconds(100)); });
  backend->has_begun.wait(false);
  backend->while_aborting = [&] { late.wait_for(milliseconds(300)); };
  backend->failure = Error{ErrorCode::kPeerLost, "lost rank 1"};
  ErrorOf(group->Barrier({}));
  EXPECT_EQ(ErrorOf(late.get()).code, ErrorCode::kTimeout);
}

TEST_F(GroupMessagesTest, DestroyWithPendingMessagesNamesRankAndMessage) {
  FakeBackend* backend = nullptr;
  std::string told;
  auto group = MakeOf({1, 3}, 0, std::chrono::seconds(60), &backend);
  backend->has_messages = true;
  backend->while_aborting = [&] { told = backend->aborted; };
  Work other = *group->IRecv(data, GroupRank{1}, 5, {});
  Work own = *group->IRecv(data, GroupRank{0}, 5, {});
  group.reset();
  EXPECT_EQ(told, "rank 1 destroyed the process group with messages under way");
  for (const Work& work : {other, own}) {
    try {
      work.Wait();
      ADD_FAILURE();
    } catch (const DistBackendError& error) {
      EXPECT_THAT(error.what(), AllOf(StartsWith("Recv (16 x float32 from rank "),
                                      EndsWith("): the process group was destroyed")));
    }
  }
}

}  // namespace
}  // namespace rankrun::comm
