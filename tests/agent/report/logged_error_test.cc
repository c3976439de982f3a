#include "agent/report/logged_error.h"

#include <gtest/gtest.h>

#include <string>

namespace rankrun::agent {
namespace {

const std::string kHeader = "Traceback (most recent call last):\n  File \"a.py\", line 3\n";
const std::string kLostPeer = kHeader + "RuntimeError: Connection closed by peer\n";

TEST(LoggedErrorTest, FindsALineOfALogBeforeTheLastError) {
  EXPECT_EQ(LoggedError("step 3\n| WARNING: ran out of memory; skipping batch\n" + kLostPeer),
            "| WARNING: ran out of memory; skipping batch");
  EXPECT_EQ(LoggedError("ERROR cannot read shard 7\nterminate called after throwing an instance of "
                        "'A'\n  what():  op.preamble.length <= op.nbytes\n"),
            "ERROR cannot read shard 7");
}

TEST(LoggedErrorTest, FindsAnExceptionThatWasCaught) {
  EXPECT_EQ(LoggedError("ERROR validation failed\n" + kHeader + "ValueError: no data\n" + kHeader +
                        "RuntimeError: validation failed on 1 rank\n"),
            "ValueError: no data");
  EXPECT_EQ(LoggedError(kHeader + "ValueError: no data\nterminate called after throwing an "
                                  "instance of 'A'\n  what():  Connection closed by peer\n"),
            "ValueError: no data");
}

TEST(LoggedErrorTest, FindsOneBeforeASignal) {
  EXPECT_EQ(LoggedError("ERROR cannot read shard 7\nstep 4\n"), "ERROR cannot read shard 7");
}

TEST(LoggedErrorTest, ATracebackWithoutItsExceptionHidesNothing) {
  EXPECT_EQ(LoggedError("ERROR cannot read shard 7\n" + kHeader), "ERROR cannot read shard 7");
}

TEST(LoggedErrorTest, LongLinesAreSearchedAtTheirEnds) {
  const std::string values(5'000, '7');
  EXPECT_EQ(
      LoggedError("ERROR cannot read shard 7\n" + kHeader + "ConnectionError: " + values + "\n"),
      "ERROR cannot read shard 7");
  EXPECT_EQ(LoggedError("ERROR " + values + ": Connection reset by peer\n" + kLostPeer), "");
}

TEST(LoggedErrorTest, AnErrorLongBeforeTheLastOneIsForgotten) {
  std::string steps;
  for (int i = 0; i < 25; ++i) steps += "step\n";
  EXPECT_EQ(LoggedError("ERROR cannot read shard 7\n" + steps + kLostPeer), "");
  EXPECT_EQ(LoggedError(kHeader + "ValueError: caught\n" + steps + kLostPeer), "");
  EXPECT_EQ(LoggedError(kHeader + "ValueError: caught\n" + steps +
                        "ERROR shard 7 is empty\nrecv: Connection reset by peer\n"),
            "ERROR shard 7 is empty");
}

TEST(LoggedErrorTest, AWarningOrALostPeerIsNoErrorOfItsOwn) {
  EXPECT_EQ(LoggedError("UserWarning: the error is ignored\n" + kLostPeer), "");
  EXPECT_EQ(LoggedError("ERROR Connection refused, trying again\n" + kLostPeer), "");
  EXPECT_EQ(LoggedError(kLostPeer + kHeader + "RuntimeError: cannot go on\n"), "");
  EXPECT_EQ(LoggedError(kLostPeer), "");
  EXPECT_EQ(LoggedError(""), "");
}

TEST(LoggedErrorTest, FindsAnErrorByItsLevel) {
  const char* const kLines[] = {
      "ERROR 3 shards are missing",
      "ERROR: cannot read shard 7",
      "ERROR:trainer:cannot read shard 7",
      "2026-11-26 12:00:00,123 [rank1] ERROR trainer: shard 7 is empty",
      "2026-11-26 12:00:00.123 | CRITICAL | __main__:main:7 - shard 7 is empty",
      "2026-11-26T12:00:00Z FATAL loader: shard 7 is empty",
      "E0101 12:00:00.000000    77 loader.cc:80] shard 7 is empty",
      "[rank1]:[E1126 12:00:00.123456789 Loader.cpp:80] shard 7 is empty",
      "[2026-11-26 12:00:00.123] [loader] [error] 3 shards are empty",
      "time=2026-11-26T12:00:00Z level=error msg=\"shard 7 is empty\"",
      "Error: shard 7 is empty",
      "[rank1]: error: shard 7 is empty",
      "loader.py: error: shard 7 is empty",
      "12:00:00 fatal: shard 7 is empty",
      "skipping the batch: ValueError: shard 7 is empty",
      "WARNING skipping the batch, botocore.exceptions.ClientError: (404) Not Found",
      "INFO retrying after java.lang.IllegalStateException: closed",
      "out of memory: skipping the batch",
  };
  for (const char* line : kLines) EXPECT_EQ(LoggedError(line + ("\n" + kLostPeer)), line);
}

TEST(LoggedErrorTest, AMetricIsNoError) {
  const char* const kLines[] = {
      "val error: 0.31",
      "step 100 loss 2.1 error=0.02",
      "reconstruction error 1e-3",
      "0 errors",
      "error rate: 3.2 %",
      "max relative error 0.5",
      "error: 0.31",
      "Error: 0.31 (best 0.28)",
      "step 7 | error: nan",
      "Error is 0.3",
      "VAL ERROR: 0.31",
      "VAL ERROR = 3.1e-1, LOSS 2.5",
      "ERROR RATE: 3.2 %",
      "MeanSquaredError: 0.31",
      "MeanSquaredError: -inf",
      "no exception was raised",
      "args: log_level=error retries=3",
      "NCCL_DEBUG=ERROR",
      "times out of memory: 0",
      "ERRORS: none",
  };
  for (const char* line : kLines) EXPECT_EQ(LoggedError(line + ("\n" + kLostPeer)), "") << line;
}

TEST(LoggedErrorTest, FindsAnErrorInALineOfJson) {
  const auto logged = [](const std::string& line) { return LoggedError(line + "\n" + kLostPeer); };
  EXPECT_EQ(logged(R"({"level": "error", "message": "shard 7 is empty"})"),
            "ERROR shard 7 is empty");
  EXPECT_EQ(logged(R"({"severity":"ERROR","time":7,"msg":"shard 7 is empty"})"),
            "ERROR shard 7 is empty");
  EXPECT_EQ(logged(R"({"levelname": "CRITICAL", "event": "shard 7 is empty"})"),
            "ERROR shard 7 is empty");
  EXPECT_EQ(logged(R"({"level": "info", "message": "error: 0.31"})"), "");
  EXPECT_EQ(logged(R"({"error": 0.31, "step": 7})"), "");
  EXPECT_EQ(logged(R"({"level": "error", "message": "Connection reset by peer"})"), "");
  EXPECT_EQ(logged(R"({"level": "error", "message": )"), "");
}

}  // namespace
}  // namespace rankrun::agent
