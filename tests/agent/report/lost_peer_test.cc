#include "agent/report/lost_peer.h"

#include <gtest/gtest.h>

#include <string>

namespace rankrun::agent {
namespace {

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
           "asyncio.exceptions.IncompleteReadError: 0 bytes read on a total of 8 expected bytes",
           "http.client.RemoteDisconnected: Remote end closed connection without response",
           "InactiveRpcError: <RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n>",
           "InactiveRpcError: <RPC that terminated with:\n\tdetails = \"Socket closed\"\n>",
           "ssl.SSLEOFError: EOF occurred in violation of protocol (_ssl.c:2437)",
           "redis.exceptions.ConnectionError: Connection closed by server.",
           "aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected",
           "thread 'main' panicked at src/a.rs:3:5:\ncalled `Result::unwrap()` on an `Err` value: "
           "Os "
           "{ code: 104, kind: ConnectionReset, message: \"Connection reset by peer\" }",
           "panic: read tcp 127.0.0.1:46710->127.0.0.1:4711: read: connection reset by peer",
           "rankrun.DistError: rank 0: Barrier #3 of world: rank 2 was killed by SIGKILL",
           "java.net.SocketException: Connection reset",
           "Error: read ECONNRESET",
           "*** MPI_ERR_PROC_FAILED: Process Failure",
           "ERROR: LoadError: EOFError: read end of file",
           "F1126 12:00:00 77 client.h:80] This most likely indicates that another task died",
       }) {
    EXPECT_TRUE(blames(text)) << text;
  }
  for (const char* text :
       {"EOFError: EOF when reading a line", "EOFError: Ran out of input",
        "ValueError: no such shard: 17", "KeyError: 'rank 2'", "FileNotFoundError: /data/rank 2"}) {
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
  auto timed_out = [](const std::string& text) {
    return TimedOut({.text = text + "\n", .is_exception = true});
  };
  EXPECT_TRUE(timed_out("DistStoreError: wait timeout after 3000ms, keys: /a/0"));
  EXPECT_TRUE(timed_out("java.net.SocketTimeoutException: Read timed out"));
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
  EXPECT_TRUE(EndsWithLostPeer({.text = "recv from rank 1: Connection reset by peer [104]"}));
  EXPECT_FALSE(EndsWithLostPeer({.text = "Connection reset by peer [retry 3]"}));
  EXPECT_FALSE(EndsWithLostPeer({.text = "Connection refused, trying again\n"}));
  EXPECT_FALSE(EndsWithLostPeer({.text = "connect: Connection refused\ngoing on\n"}));
  EXPECT_FALSE(EndsWithLostPeer({.text = ""}));
}

TEST(BlamesLostPeerTest, NotAServiceOutsideTheJob) {
  const LastError hub{.text = "ConnectionError: Couldn't reach 'rajpurkar/squad' on the Hub\n",
                      .is_exception = true};
  EXPECT_FALSE(BlamesLostPeer(hub));
}

TEST(EndsWithLostPeerTest, IsWhatMpiAbortsWith) {
  EXPECT_TRUE(EndsWithLostPeer({.text = "[n1:811] *** MPI_ERR_PROC_FAILED: Process Failure\n"
                                        "[n1:811] *** MPI_ERRORS_ARE_FATAL (processes in this\n"}));
  EXPECT_FALSE(EndsWithLostPeer({.text = "ignored MPI_ERR_PROC_FAILED\n"}));
}

TEST(EndsWithLostPeerTest, IsTheTextOfGoAndRust) {
  for (const char* line : {
           "2026/11/26 12:00:00 step 12: allreduce: read tcp [::1]:1->[::1]:2: read: connection "
           "reset by peer",
           "Error: Os { code: 104, kind: ConnectionReset, message: \"Connection reset by peer\" }",
           "Error: send failed: Broken pipe (os error 32)",
           "Error: send failed\n\nCaused by:\n    Connection refused (os error 111)",
       }) {
    EXPECT_TRUE(EndsWithLostPeer({.text = std::string(line) + "\n"})) << line;
  }
  EXPECT_FALSE(EndsWithLostPeer({.text = "saw a broken pipe\n"}));
  EXPECT_FALSE(EndsWithLostPeer({.text = "Error: Os { code: 2, kind: NotFound }\n"}));
}

TEST(TimedOutTest, KnowsTheLastLineOfGo) {
  EXPECT_TRUE(TimedOut({.text = "step 3\nallreduce: read tcp [::1]:1->[::1]:2: i/o timeout\n"}));
  EXPECT_FALSE(TimedOut({.text = "i/o timeout, trying again\n"}));
  EXPECT_FALSE(TimedOut({.text = "TimeoutError: timed out\ngoing on\n"}));
}

TEST(InputEndedTest, IsAConnectionOrAFileThatEndedEarly) {
  const auto raises = [](const std::string& text) {
    return InputEnded({.text = text + "\n", .is_exception = true});
  };
  EXPECT_TRUE(raises("EOFError: Ran out of input"));
  EXPECT_TRUE(raises("_pickle.UnpicklingError: pickle data was truncated"));
  EXPECT_TRUE(raises("panic: unexpected EOF"));
  EXPECT_FALSE(raises("SyntaxError: unexpected EOF while parsing"));
  EXPECT_FALSE(raises("EOFError: EOF when reading a line"));
  const auto ends_with = [](const std::string& line) { return InputEnded({.text = line + "\n"}); };
  EXPECT_TRUE(ends_with("step 3\n2026/11/26 12:00:00 gather: read: unexpected EOF"));
  EXPECT_TRUE(ends_with("gather: EOF"));
  EXPECT_TRUE(ends_with("Error: Custom { kind: UnexpectedEof, error: \"failed\" }"));
  EXPECT_FALSE(ends_with("read all records until EOF"));
}

}  // namespace
}  // namespace rankrun::agent
