#include "agent/report/last_error.h"

#include <gtest/gtest.h>

#include <string>

#include "agent/report/lost_peer.h"

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

TEST(FindLastErrorTest, APanicOfRustIsAnException) {
  const std::string panic =
      "\nthread 'main' panicked at src/loader.rs:88:14:\nindex out of bounds: the len is 3\n";
  const std::string text = panic.substr(1);
  LastError error = FindLastError("step 3\n" + panic + "note: run with `RUST_BACKTRACE=1`\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, text);
  EXPECT_EQ(error.lines_after, 0);
  std::string backtrace = "stack backtrace:\n";
  for (int frame = 0; frame < 40; ++frame) backtrace += "   1: core::f\n             at a.rs\n";
  error = FindLastError(panic + backtrace + "note: Some details are omitted\n");
  EXPECT_EQ(error.text, text);
  EXPECT_EQ(error.lines_after, 0);
  EXPECT_EQ(FindLastError(panic + "joined\n\ngoing on\n").lines_after, 1);
  error = FindLastError("thread 'loader' (7) panicked at 'no data', src/a.rs:3:5\n");
  EXPECT_EQ(error.text, "thread 'loader' (7) panicked at 'no data', src/a.rs:3:5\n");
}

TEST(FindLastErrorTest, APanicOfGoIsAnException) {
  const std::string panic = "panic: runtime error: index out of range [7] with length 3\n";
  std::string stacks = "\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:88 +0x1d\n";
  for (int other = 0; other < 40; ++other) stacks += "\ngoroutine 7 [select]:\nmain.f()\n";
  LastError error = FindLastError("step 3\n" + panic + stacks);
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, panic);
  EXPECT_EQ(error.lines_after, 0);
  EXPECT_EQ(FindLastError("fatal error: all goroutines are asleep - deadlock!\n" + stacks).text,
            "fatal error: all goroutines are asleep - deadlock!\n");
  error = FindLastError(stacks);
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, "goroutine 1 [running]:\nmain.main()\n\t/src/main.go:88 +0x1d\n");
  EXPECT_EQ(FindLastError(panic + "\ngoing on\n").lines_after, 1);
  EXPECT_FALSE(FindLastError("don't panic: all is well\n").is_exception);
}

TEST(FindLastErrorTest, AnExceptionOfJavaHasItsCauses) {
  LastError error = FindLastError(
      "[1] step 3\nException in thread \"main\" java.lang.RuntimeException: sync failed\n"
      "\tat Train.step(Train.java:33)\nCaused by: java.io.EOFException\n\t... 2 more\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, "java.lang.RuntimeException: sync failed\njava.io.EOFException\n");
  EXPECT_EQ(error.lines_after, 0);
  EXPECT_EQ(FindLastError("Exception in thread \"main\"").text, "main\"\n");
  error = FindLastError("Exception in thread \"a\" E: one\ntwo\n\tat a.b\n\tat c.d\nlog\n");
  EXPECT_EQ(error.text, "E: one\ntwo\n");
  EXPECT_EQ(error.lines_after, 1);
}

TEST(FindLastErrorTest, AnOverdueProgramOfPythonShowsItsPlace) {
  LastError error = FindLastError(
      "step 3\nTimeout (0:00:01)!\nThread 0x7f6d (most recent call first):\n"
      "  File \"/lib/threading.py\", line 982 in run\n  File \"/lib/threading.py\", line 2 in f\n\n"
      "Thread 0x7f6e (most recent call first):\n  File \"a.py\", line 4 in load\n"
      "  File \"a.py\", line 6 in <module>\nleaving\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, "Timeout (0:00:01)!\n  File \"a.py\", line 4 in load\n");
  EXPECT_EQ(error.lines_after, 1);
  error = FindLastError("Timeout (0:00:01)!\n");
  EXPECT_EQ(error.text, "Timeout (0:00:01)!\n");
  EXPECT_FALSE(FindLastError("Timeout (0:00:01)! Trying again.\n").is_exception);
}

TEST(FindLastErrorTest, AnErrorAtWhichUcxEndsTheProgramIsAnException) {
  const std::string line =
      "[1.2] [n:8  :0]     ucp_ep.c:1504 UCX  DIAG  ep 0x7: error 'Connection reset by remote "
      "peer' "
      "on tcp/eth0 will not be handled since no error callback is installed";
  std::string stack =
      "[n:8  :0:8] Caught signal 11 (Segmentation fault)\n==== backtrace (tid: 8)\n";
  for (int i = 0; i < 40; ++i) stack += " " + std::to_string(i) + "  libucs.so.0(f)\n";
  LastError error = FindLastError(line + '\n' + stack + "=================================\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, line + '\n');
  EXPECT_EQ(error.lines_after, 0);
  EXPECT_EQ(FindLastError(line + "\nstep 8\nstep 9\n").lines_after, 2);
  EXPECT_FALSE(
      FindLastError("[1.2] [n:8] a.c:1 UCX  DIAG  ep 0x7: error 'x', ignored\n").is_exception);
}

TEST(FindLastErrorTest, AnErrorOfNodeJsIsAnException) {
  LastError error = FindLastError(
      "step 3\nError: read ECONNRESET\n    at TCP.onStreamRead (node:a:2:3)\nEmitted 'error' event "
      "on Socket instance at:\n    at f (node:b:1:2) {\n  code: 'ECONNRESET'\n}\n\nNode.js v22\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, "Error: read ECONNRESET\n");
  EXPECT_EQ(error.lines_after, 0);
  EXPECT_FALSE(FindLastError("    at the end\n").text.empty());
}

TEST(FindLastErrorTest, AFatalLineOfALogIsAnException) {
  const std::string line = "F1126 12:00:00.123456    77 client.h:80] Check failed: n == 7\n";
  LastError error = FindLastError("I1126 12:00:00.1 77 a.cc:3] begin\n" + line + "of 3 tasks\n" +
                                  "*** Check failure stack trace: ***\n    @     0x7f  main\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text, line + "of 3 tasks\n");
  EXPECT_EQ(error.lines_after, 0);
  EXPECT_FALSE(FindLastError("F11a6 12:00:00 77 a.cc:3] text\n").is_exception);
  // Another process has written it, and this one goes on.
  error = FindLastError(line + "I1126 12:00:01.1 77 a.cc:3] Connection refused\nstep 3\n");
  EXPECT_EQ(error.text, line);
  EXPECT_EQ(error.lines_after, 2);
}

// torch.distributed.checkpoint raises on all ranks.
TEST(FindLastErrorTest, ATracebackOfAnotherRankBelongsToItsText) {
  std::string text = "E: E ranks:dict_keys([1])\nTraceback (most recent call last): (RANK 1)\n";
  for (int i = 0; i < 30; ++i) text += "  File \"a.py\", line 3, in f\n";
  text += "OSError: [Errno 28] No space left on device\n";
  LastError error =
      FindLastError("Traceback (most recent call last):\n  File \"b.py\", line 7\n" + text);
  EXPECT_EQ(error.text, text);
  EXPECT_EQ(error.lines_after, 0);
}

TEST(FindLastErrorTest, WithoutAnExceptionItIsTheLastThreeLines) {
  LastError error = FindLastError("recv: Connection reset by peer\na\n\nb\nc\n");
  EXPECT_EQ(error.text, "a\nb\nc\n");
  EXPECT_FALSE(error.is_exception);
  EXPECT_FALSE(BlamesLostPeer(error));
  EXPECT_EQ(FindLastError("").text, "");
}

TEST(SanitizerErrorTest, IsTheFirstLineOfItsReport) {
  const std::string error = "==77==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6";
  EXPECT_EQ(SanitizerError("step 3\n" + error + "\n    #0 0x1 in main\n==77==ABORTING\n"), error);
  EXPECT_EQ(SanitizerError("built with AddressSanitizer: yes\n"), "");
  EXPECT_EQ(SanitizerError(""), "");
}

TEST(FindLastErrorTest, FindsAnExceptionOfDotNet) {
  const LastError error = FindLastError(
      "step 3\nUnhandled exception. System.IO.IOException: Unable to read data: reset.\n"
      " ---> System.Net.Sockets.SocketException (104): Connection reset by peer\n"
      "   at System.Net.Sockets.Socket.Receive(Span`1 buffer)\n"
      "   --- End of inner exception stack trace ---\n   at Program.Main()\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text,
            "System.IO.IOException: Unable to read data: reset.\n ---> "
            "System.Net.Sockets.SocketException (104): Connection reset by peer\n");
  EXPECT_EQ(error.lines_after, 0);
  EXPECT_TRUE(BlamesLostPeer(error));
}

TEST(FindLastErrorTest, FindsAnErrorOfR) {
  const LastError error = FindLastError(
      "step 3\nError in unserialize(node$con) : error reading from connection\nCalls: main\n"
      "Execution halted\n");
  EXPECT_TRUE(error.is_exception);
  EXPECT_EQ(error.text,
            "Error in unserialize(node$con) : error reading from connection\nCalls: main\n");
  EXPECT_TRUE(BlamesLostPeer(error));
  EXPECT_FALSE(BlamesLostPeer(FindLastError("Error: cannot allocate\nExecution halted\n")));
  EXPECT_EQ(FindLastError("Execution halted\n").text, "Execution halted\n");
}

TEST(FindLastErrorTest, AMetricIsNoException) {
  EXPECT_FALSE(FindLastError("MeanSquaredError: 0.31\n").is_exception);
  EXPECT_FALSE(FindLastError("MeanSquaredError: -inf\n").is_exception);
  EXPECT_TRUE(FindLastError("KeyError: 3\n").is_exception);
}

TEST(FindLastErrorTest, FindsTheExceptionOfALineOfJson) {
  const std::string line =
      R"({"level": "error", "event": "step 7 failed", "exception": "Traceback (most recent call )"
      R"(last):\n  File \"a.py\", line 3\nKeyError: 'mask'"})";
  EXPECT_EQ(FindLastError(line + "\n").text, "KeyError: 'mask'\n");
  EXPECT_TRUE(FindLastError(line + "\n").is_exception);
}

}  // namespace
}  // namespace rankrun::agent
