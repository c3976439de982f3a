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
}

TEST(LoggedErrorTest, FindsOneBeforeASignal) {
  EXPECT_EQ(LoggedError("ERROR cannot read shard 7\nstep 4\n"), "ERROR cannot read shard 7");
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

}  // namespace
}  // namespace rankrun::agent
