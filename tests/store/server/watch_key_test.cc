#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/server/raw_client.h"
#include "tests/store/server/server_thread.h"
#include "tests/store/wire/wire_decode.h"

// WATCH_KEY, byte by byte as in PyTorch 1.13.1's server: see "WATCH_KEY" in
// docs/store-protocol.md.

namespace rankrun::store {
namespace {

enum NoticeType : char { kUpdated = 0, kCreated = 1, kDeleted = 2 };

std::string Number(uint64_t number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}
std::string Text(std::string_view text) { return Number(text.size()) + std::string(text); }

std::string Notice(NoticeType type, std::string_view key, std::string_view before,
                   std::string_view after) {
  return std::string(1, type) + Text(key) + Text(before) + Text(after);
}

// A client of PyTorch up to about 2.1.
struct OldClient : RawClient {
  explicit OldClient(const ServerThread& server)
      : RawClient(Loopback(server.port()), /*validate=*/false) {}

  void Set(std::string_view key, std::string_view value) {
    Send(std::string(1, 0) + Text(key) + Text(value));
  }
  void CompareSet(std::string_view key, std::string_view expected, std::string_view desired) {
    Send("\1" + Text(key) + Text(expected) + Text(desired));
  }
  void Add(std::string_view key, int64_t delta) {
    Send("\3" + Text(key) + Number(static_cast<uint64_t>(delta)));
  }
  void GetNumKeys() { Send("\6"); }
  void WatchKey(std::string_view key) { Send("\7" + Text(key)); }
  void DeleteKey(std::string_view key) { Send("\10" + Text(key)); }

  // Sends a WATCH_KEY and receives its confirmation.
  void Watch(std::string_view key) {
    WatchKey(key);
    EXPECT_EQ(Receive(1), "\3");
  }
  // Returns whether the next bytes are exactly `expected`.
  testing::AssertionResult Gets(const std::string& expected) {
    std::string bytes = Receive(expected.size());
    if (bytes == expected) return testing::AssertionSuccess();
    return testing::AssertionFailure() << testing::PrintToString(bytes);
  }
  // Returns whether the server answers a GETNUMKEYS with `keys` and has sent
  // nothing before.
  testing::AssertionResult HasReceivedNothing(uint64_t keys) {
    GetNumKeys();
    return Gets(Number(keys));
  }
};

struct WatchKeyTest : testing::Test {
  ServerThread server;
  OldClient watcher{server};
  OldClient other{server};
};

TEST_F(WatchKeyTest, TheBytesAreThoseOfPyTorch) {
  watcher.Send(FromHex("07 02 00 00 00 00 00 00 00 2f 6b"));
  EXPECT_EQ(watcher.Receive(1), FromHex("03"));
  other.Send(FromHex("00 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 6f 6e 65"));
  EXPECT_TRUE(
      watcher.Gets(FromHex("01 02 00 00 00 00 00 00 00 2f 6b"
                           "00 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 6f 6e 65")));
  other.Send(FromHex("00 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 74 77 6f"));
  EXPECT_TRUE(
      watcher.Gets(FromHex("00 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 6f 6e 65"
                           "03 00 00 00 00 00 00 00 74 77 6f")));
  other.Send(FromHex("08 02 00 00 00 00 00 00 00 2f 6b"));
  EXPECT_TRUE(
      watcher.Gets(FromHex("02 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 74 77 6f"
                           "00 00 00 00 00 00 00 00")));
  EXPECT_EQ(other.Receive(8), FromHex("01 00 00 00 00 00 00 00"));
}

TEST_F(WatchKeyTest, AnExistingValueCausesNoNotice) {
  watcher.Set("k", "old");
  watcher.Watch("k");
  EXPECT_TRUE(watcher.HasReceivedNothing(1));
  other.Set("k", "new");
  EXPECT_TRUE(watcher.Gets(Notice(kUpdated, "k", "old", "new")));
}

TEST_F(WatchKeyTest, SettingTheSameValueCausesANotice) {
  watcher.Watch("k");
  other.Set("k", "v");
  other.Set("k", "v");
  EXPECT_TRUE(watcher.Gets(Notice(kCreated, "k", "", "v") + Notice(kUpdated, "k", "v", "v")));
}

TEST_F(WatchKeyTest, AnEmptyValueIsAValue) {
  watcher.Watch("k");
  other.Set("k", "");
  other.Set("k", "v");
  EXPECT_TRUE(watcher.Gets(Notice(kCreated, "k", "", "") + Notice(kUpdated, "k", "", "v")));
  other.Set("k", "");
  other.DeleteKey("k");
  EXPECT_TRUE(watcher.Gets(Notice(kUpdated, "k", "v", "") + Notice(kDeleted, "k", "", "")));
}

TEST_F(WatchKeyTest, AddCausesANotice) {
  watcher.Watch("n");
  other.Add("n", 5);
  other.Add("n", -7);
  other.Add("n", 0);
  EXPECT_TRUE(watcher.Gets(Notice(kCreated, "n", "", "5") + Notice(kUpdated, "n", "5", "-2") +
                           Notice(kUpdated, "n", "-2", "-2")));
  EXPECT_TRUE(other.Gets(Number(5) + Number(uint64_t(-2)) + Number(uint64_t(-2))));
}

TEST_F(WatchKeyTest, ACompareSetThatStoresCausesANotice) {
  watcher.Watch("k");
  other.CompareSet("k", "expected", "v");
  EXPECT_TRUE(other.Gets(Text("expected")));
  EXPECT_TRUE(watcher.HasReceivedNothing(0));
  other.CompareSet("k", "", "v");
  EXPECT_TRUE(watcher.Gets(Notice(kCreated, "k", "", "v")));
  other.CompareSet("k", "wrong", "w");
  EXPECT_TRUE(other.Gets(Text("v") + Text("v")));
  EXPECT_TRUE(watcher.HasReceivedNothing(1));
  other.CompareSet("k", "v", "v");
  EXPECT_TRUE(watcher.Gets(Notice(kUpdated, "k", "v", "v")));
}

TEST_F(WatchKeyTest, OnlyDeletingAnExistingKeyCausesANoticeAndTheWatchRemains) {
  watcher.Watch("k");
  other.DeleteKey("k");
  EXPECT_TRUE(other.Gets(Number(0)));
  EXPECT_TRUE(watcher.HasReceivedNothing(0));
  other.Set("k", "v");
  other.DeleteKey("k");
  other.Set("k", "again");
  EXPECT_TRUE(watcher.Gets(Notice(kCreated, "k", "", "v") + Notice(kDeleted, "k", "v", "") +
                           Notice(kCreated, "k", "", "again")));
}

TEST_F(WatchKeyTest, OtherKeysCauseNoNotice) {
  watcher.Watch("k");
  other.Set("k2", "v");
  other.Set("", "v");
  EXPECT_TRUE(other.HasReceivedNothing(2));
  EXPECT_TRUE(watcher.HasReceivedNothing(2));
}

TEST_F(WatchKeyTest, EachWatchCausesANotice) {
  OldClient second(server);
  watcher.Watch("k");
  watcher.Watch("k");
  second.Watch("k");
  other.Set("k", "v");
  std::string notice = Notice(kCreated, "k", "", "v");
  EXPECT_TRUE(watcher.Gets(notice + notice));
  EXPECT_TRUE(second.Gets(notice));
  EXPECT_TRUE(watcher.HasReceivedNothing(1));
  EXPECT_TRUE(second.HasReceivedNothing(1));
}

TEST_F(WatchKeyTest, AClientReceivesNoticesOfItsOwnChanges) {
  watcher.Watch("k");
  watcher.Set("k", "v");
  EXPECT_TRUE(watcher.Gets(Notice(kCreated, "k", "", "v")));
}

TEST_F(WatchKeyTest, AWaitEndsBeforeTheNotice) {
  // In one piece, so that after the reply to the first request the second one
  // has arrived, too.
  watcher.Send("\7" + Text("k") + "\5" + Number(1) + Text("k"));
  EXPECT_TRUE(watcher.Gets("\3"));
  other.Set("k", "v");
  EXPECT_TRUE(watcher.Gets(std::string(1, 0) + Notice(kCreated, "k", "", "v")));
}

TEST_F(WatchKeyTest, RepliesAndNoticesOfOneConnectionHaveAnOrder) {
  watcher.Watch("k");
  watcher.Add("k", 1);
  EXPECT_TRUE(watcher.Gets(Notice(kCreated, "k", "", "1") + Number(1)));
  watcher.CompareSet("k", "1", "v");
  EXPECT_TRUE(watcher.Gets(Notice(kUpdated, "k", "1", "v") + Text("v")));
  watcher.DeleteKey("k");
  EXPECT_TRUE(watcher.Gets(Notice(kDeleted, "k", "v", "") + Number(1)));
}

TEST_F(WatchKeyTest, ARequestInPiecesIsOne) {
  watcher.Send("\7");
  EXPECT_TRUE(other.HasReceivedNothing(0));
  watcher.Send(Text("k").substr(0, 3));
  EXPECT_TRUE(other.HasReceivedNothing(0));
  watcher.Send(Text("k").substr(3));
  EXPECT_TRUE(watcher.Gets("\3"));
}

TEST_F(WatchKeyTest, AnyKeyThatIsAllowedCanBeWatched) {
  std::string large(8192, 'k');
  watcher.Watch("");
  watcher.Watch(large);
  other.Set("", "v");
  other.Set(large, "v");
  EXPECT_TRUE(watcher.Gets(Notice(kCreated, "", "", "v") + Notice(kCreated, large, "", "v")));
  watcher.WatchKey(large + "k");
  EXPECT_TRUE(watcher.IsClosed());
}

TEST_F(WatchKeyTest, TheWatchOfAClientThatHasLeftHarmsNobody) {
  {
    OldClient gone(server);
    gone.Watch("k");
  }
  EXPECT_TRUE(watcher.HasReceivedNothing(0));
  EXPECT_TRUE(other.HasReceivedNothing(0));
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 2; }));
  OldClient newcomer(server);
  other.Set("k", "v");
  EXPECT_TRUE(other.HasReceivedNothing(1));
  EXPECT_TRUE(newcomer.HasReceivedNothing(1));
}

TEST_F(WatchKeyTest, AFreshStoreHasNoWatches) {
  watcher.Watch("k");
  server.OnLoop([](Server& s) { s.Reset(); });
  EXPECT_TRUE(watcher.IsClosed());
  OldClient fresh(server);
  fresh.Set("k", "v");
  EXPECT_TRUE(fresh.HasReceivedNothing(1));
}

TEST_F(WatchKeyTest, ChangesByCurrentClientsCauseNotices) {
  RawClient current(Loopback(server.port()));
  watcher.Watch("k");
  current.Ask(SetRequest{"k", "a"});
  current.Ask(AppendRequest{"k", "b"});
  current.Ask(MultiSetRequest{{{"k", "c"}, {"k", "d"}}});
  current.Ask(DeleteKeyRequest{"k"});
  current.Ask(AppendRequest{"k", "e"});
  EXPECT_TRUE(watcher.Gets(Notice(kCreated, "k", "", "a") + Notice(kUpdated, "k", "a", "ab") +
                           Notice(kUpdated, "k", "ab", "c") + Notice(kUpdated, "k", "c", "d") +
                           Notice(kDeleted, "k", "d", "") + Notice(kCreated, "k", "", "e")));
}

TEST_F(WatchKeyTest, AQueueOfTheSameNameCausesNoNotice) {
  RawClient current(Loopback(server.port()));
  watcher.Watch("k");
  current.Ask(QueuePushRequest{"k", "item"});
  EXPECT_TRUE(current.IsServed());
  EXPECT_TRUE(watcher.HasReceivedNothing(0));
}

}  // namespace
}  // namespace rankrun::store
