#include "agent/report/last_error.h"

#include <gtest/gtest.h>

#include <string>

namespace rankrun::agent {
namespace {

const std::string kOwn =
    "step 12\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    "
    "main()\n"
    "ValueError: no such shard: 17\n";
const std::string kLost =
    "Traceback (most recent call last):\n  File \"b.py\", line 9, in <module>\n"
    "ConnectionResetError: [Errno 104] Connection reset by peer\n";
const std::string kDuring =
    "\nDuring handling of the above exception, another exception occurred:\n\n";
const std::string kFrom =
    "\nThe above exception was the direct cause of the following exception:\n\n";

TEST(FindLastErrorTest, AnExceptionIsItsTypeAndText) {
  LastError error = FindLastError(kOwn);
  EXPECT_EQ(error.text, "ValueError: no such shard: 17\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.lines_after, 0);
}

TEST(FindLastErrorTest, PyTorchsPrefixOfEachLineIsRemoved) {
  std::string prefixed =
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 3\n"
      "[rank1]: ValueError: no\n";
  EXPECT_EQ(FindLastError(prefixed).text, "ValueError: no\n");
}

TEST(FindLastErrorTest, TheLastOfSeveralExceptionsCounts) {
  EXPECT_EQ(FindLastError(kLost + "connected again\n" + kOwn).text,
            "ValueError: no such shard: 17\n");
  EXPECT_FALSE(BlamesLostPeer(FindLastError(kLost + "connected again\n" + kOwn)));
}

TEST(FindLastErrorTest, OfAChainTheFirstExceptionCounts) {
  EXPECT_FALSE(BlamesLostPeer(FindLastError(kOwn + kDuring + kLost)));
  EXPECT_TRUE(BlamesLostPeer(FindLastError(kLost + kFrom + kOwn)));
  EXPECT_TRUE(BlamesLostPeer(FindLastError(kLost + kDuring + kOwn + kFrom + kOwn)));
  EXPECT_EQ(FindLastError(kOwn + kDuring + kLost).lines_after, 0);
}

TEST(FindLastErrorTest, LinesAfterACaughtExceptionAreCounted) {
  EXPECT_EQ(FindLastError(kOwn + "skipped\n\ngoing on\n").lines_after, 2);
}

TEST(FindLastErrorTest, ATracebackWithoutItsEndHasNoText) {
  LastError error = FindLastError("Traceback (most recent call last):\n  File \"a.py\"\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, "");
}

TEST(FindLastErrorTest, AnExceptionOfCppIsTypeAndText) {
  LastError error = FindLastError(
      "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no data\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_NE(error.text.find("what():  no data"), std::string::npos);
}

TEST(FindLastErrorTest, AnExceptionThatAProgramPrintsBeforeItExitsCounts) {
  LastError error = FindLastError("step 3\nRuntimeError: Connection closed by peer\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, "RuntimeError: Connection closed by peer\n");
  EXPECT_TRUE(FindLastError("std::OutOfMemoryException\n").is_exception);
  EXPECT_FALSE(FindLastError("step 3: RuntimeError: no\n").is_exception);
  EXPECT_FALSE(FindLastError("RuntimeError: no\nanother attempt\n").is_exception);
}

TEST(FindLastErrorTest, WithoutAnExceptionItIsTheLastThreeLines) {
  LastError error = FindLastError("recv: Connection reset by peer\na\n\nb\nc\n");
  EXPECT_EQ(error.text, "a\nb\nc\n");
  EXPECT_FALSE(error.is_exception);
  EXPECT_FALSE(BlamesLostPeer(error));
  EXPECT_EQ(FindLastError("").text, "");
}

TEST(BlamesLostPeerTest, KnowsTheTextsOfOthers) {
  auto blames = [](const std::string& text) {
    return BlamesLostPeer({.text = text + "\n", .is_exception = true});
  };
  for (const char* text : {
           "RuntimeError: [../gloo/pair.cc:553] Connection closed by peer [127.0.0.1]:30605",
           "torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
           "BrokenPipeError: [Errno 32] Broken pipe",
           "ConnectionAbortedError",
           "torch.distributed.DistBackendError: NCCL error: ncclRemoteError: A call failed",
           "EOFError",
           "rankrun.DistError: rank 0: Barrier #3 of world: rank 2 was killed by SIGKILL",
       }) {
    EXPECT_TRUE(blames(text)) << text;
  }
  for (const char* text : {"EOFError: EOF when reading a line", "ValueError: no such shard: 17",
                           "KeyError: 'rank 2'", "FileNotFoundError: /data/rank 2"}) {
    EXPECT_FALSE(blames(text)) << text;
  }
}

TEST(BlamesLostPeerTest, KnowsWaitsForOthers) {
  auto blames = [](const std::string& text) { return BlamesLostPeer({.text = text + "\n"}); };
  EXPECT_TRUE(
      blames("RuntimeError: Rank 2 successfully reached monitoredBarrier, but received "
             "errors while waiting for send/recv from rank 0."));
  EXPECT_TRUE(blames("RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 3 ms"));
}

TEST(TimedOutTest, KnowsTheTextsOfOthers) {
  auto timed_out = [](const std::string& text) { return TimedOut({.text = text + "\n"}); };
  EXPECT_TRUE(timed_out("DistStoreError: wait timeout after 3000ms, keys: /a/0"));
  EXPECT_TRUE(
      timed_out("RuntimeError: [unbound_buffer.cc:78] Timed out waiting 1800000ms for recv"));
  EXPECT_TRUE(
      timed_out("what():  [Rank 0] Watchdog caught collective operation timeout: WorkNCCL("));
  EXPECT_TRUE(timed_out("DistTimeoutError: AllReduce #3 of world: not in time"));
  EXPECT_TRUE(timed_out("TimeoutError"));
  EXPECT_TRUE(timed_out("TimeoutError: timed out"));
  EXPECT_FALSE(timed_out("ValueError: timeout must be positive"));
  EXPECT_FALSE(
      timed_out("requests.exceptions.ReadTimeout: HTTPConnectionPool(host='data', "
                "port=80): Read timed out. (read timeout=5)"));
  EXPECT_FALSE(timed_out("TimeoutError: [Errno 110] Connection timed out"));
  EXPECT_FALSE(timed_out("subprocess.TimeoutExpired: Command 'make' timed out after 5 seconds"));
}

TEST(EndsWithLostPeerTest, IsWhatPerrorWrites) {
  EXPECT_TRUE(EndsWithLostPeer({.text = "step 3\nrecv: Connection reset by peer\n"}));
  EXPECT_TRUE(EndsWithLostPeer({.text = "write: Broken pipe"}));
  EXPECT_FALSE(EndsWithLostPeer({.text = "Connection refused, trying again\n"}));
  EXPECT_FALSE(EndsWithLostPeer({.text = "connect: Connection refused\ngoing on\n"}));
  EXPECT_FALSE(EndsWithLostPeer({.text = ""}));
}

TEST(SanitizerErrorTest, IsTheFirstLineOfItsReport) {
  const std::string error = "==77==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6";
  EXPECT_EQ(SanitizerError("step 3\n" + error + "\n    #0 0x1 in main\n==77==ABORTING\n"), error);
  EXPECT_EQ(SanitizerError("built with AddressSanitizer: yes\n"), "");
  EXPECT_EQ(SanitizerError(""), "");
}

}  // namespace
}  // namespace rankrun::agent
