#include "launcher/settings/signal_names.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>

namespace rankrun::launcher {
namespace {

using Signals = std::vector<int>;

Signals Parse(const std::string& list) {
  auto signals = ParseSignals(list);
  EXPECT_TRUE(signals) << signals.error().message;
  return signals ? *signals : Signals{};
}

std::string ErrorOf(const std::string& list) {
  auto signals = ParseSignals(list);
  return signals ? "accepted" : signals.error().message;
}

TEST(SignalNamesTest, NamesMayHaveTheirSig) {
  EXPECT_EQ(Parse("SIGTERM,SIGINT,SIGHUP,SIGQUIT"), (Signals{SIGTERM, SIGINT, SIGHUP, SIGQUIT}));
  EXPECT_EQ(Parse("TERM, USR1 ,SIGUSR2"), (Signals{SIGTERM, SIGUSR1, SIGUSR2}));
  EXPECT_EQ(Parse("ALRM,XCPU,PROF,PWR"), (Signals{SIGALRM, SIGXCPU, SIGPROF, SIGPWR}));
}

TEST(SignalNamesTest, EachCountsOnce) { EXPECT_EQ(Parse("TERM,SIGTERM"), Signals{SIGTERM}); }

TEST(SignalNamesTest, AnUnknownNameGetsTheNearestOne) {
  EXPECT_EQ(ErrorOf("SIGTERN"), "unknown signal \"SIGTERN\"; did you mean SIGTERM?");
  EXPECT_EQ(ErrorOf("SIGTERM,UST1"), "unknown signal \"UST1\"; did you mean SIGUSR1?");
  EXPECT_EQ(ErrorOf("sigint"), "unknown signal \"sigint\"; did you mean SIGINT?");
  EXPECT_EQ(ErrorOf("KILLS"), "unknown signal \"KILLS\"; want names as SIGTERM,SIGINT")
      << "what is refused is no hint";
  EXPECT_EQ(ErrorOf("15"), "unknown signal \"15\"; want names as SIGTERM,SIGINT");
  EXPECT_EQ(ErrorOf("SIGTERM,"), "unknown signal \"\"; want names as SIGTERM,SIGINT");
}

TEST(SignalNamesTest, SignalsThatCannotBeHandledAreRefused) {
  EXPECT_EQ(ErrorOf("SIGKILL"), "SIGKILL cannot be handled by any program");
  EXPECT_EQ(ErrorOf("STOP"), "SIGSTOP cannot be handled by any program");
  for (std::string name : {"CHLD", "CONT", "TSTP", "SEGV", "BUS", "ILL", "FPE", "ABRT"}) {
    EXPECT_EQ(ErrorOf(name), "SIG" + name + " cannot be in the list: rankrun needs it itself");
  }
}

}  // namespace
}  // namespace rankrun::launcher
