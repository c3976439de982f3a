#include "launcher/settings/settings.h"

#include "launcher/flags/text.h"
#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

using Strings = std::vector<std::string>;

std::string VariableOf(std::string_view prefix, std::string_view flag) {
  std::string name(prefix);
  for (char c : flag) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

// Returns a value that the flag accepts.
std::string SampleOf(const Flag& flag) {
  switch (flag.value) {
    case FlagValue::kNone:
      return "1";
    case FlagValue::kCount:
    case FlagValue::kPort:
    case FlagValue::kSeconds:
      return "7";
    case FlagValue::kSize:
      return "64M";
    case FlagValue::kChoice:
      return std::string(flag.choices.substr(0, flag.choices.find('|')));
    default:
      return "text";
  }
}

std::string ErrorOf(std::string_view prefix, const Variables& variables) {
  auto settings = SettingsOfVariables(RankrunFlags(), prefix, EnvironmentOf(variables));
  return settings ? "accepted" : settings.error().message;
}

TEST(SettingsTest, EveryFlagIsReadFromTheVariablesThatItHas) {
  for (const Flag& flag : Flags()) {
    for (std::string_view prefix : {"RANKRUN_", "PET_"}) {
      bool has = flag.sources == FlagSources::kPet ||
                 (flag.sources == FlagSources::kOurs && prefix == "RANKRUN_");
      std::string variable = VariableOf(prefix, flag.name);
      auto settings =
          SettingsOfVariables(RankrunFlags(), prefix, EnvironmentOf({{variable, SampleOf(flag)}}));
      ASSERT_TRUE(settings) << settings.error().message;
      ASSERT_EQ(settings->size(), has ? 1U : 0U) << variable;
      if (!has) continue;
      std::string value = flag.value == FlagValue::kNone ? "true" : SampleOf(flag);
      EXPECT_EQ(settings->at(std::string(flag.name)), (Setting{{value}, variable}));
    }
  }
}

TEST(SettingsTest, AnEmptyVariableCountsAsUnset) {
  for (const Flag& flag : Flags()) {
    for (std::string_view prefix : {"RANKRUN_", "PET_"}) {
      auto settings = SettingsOfVariables(RankrunFlags(), prefix,
                                          EnvironmentOf({{VariableOf(prefix, flag.name), ""}}));
      ASSERT_TRUE(settings);
      EXPECT_TRUE(settings->empty()) << flag.name;
    }
  }
}

TEST(SettingsTest, ASwitchInAVariableIsOnOrOff) {
  for (const char* on : {"1", "true", "yes"}) EXPECT_EQ(SwitchText(on), "true");
  for (const char* off : {"0", "false", "no"}) EXPECT_EQ(SwitchText(off), "false");
  for (const char* bad : {"", "2", "on", "True", "y", " 1"})
    EXPECT_EQ(SwitchText(bad), std::nullopt);
  EXPECT_EQ(ErrorOf("PET_", {{"PET_STANDALONE", "True"}}),
            "PET_STANDALONE: want 1, true or yes, or 0, false or no, got \"True\"");
}

TEST(SettingsTest, AWrongValueNamesItsVariable) {
  EXPECT_EQ(ErrorOf("PET_", {{"PET_MAX_RESTARTS", "x"}}),
            "PET_MAX_RESTARTS: want a whole number from 0 to 1000000, got \"x\"");
  EXPECT_EQ(ErrorOf("RANKRUN_", {{"RANKRUN_MASTER_PORT", "http"}}),
            "RANKRUN_MASTER_PORT: want a port number from 0 to 65535, got \"http\"");
  EXPECT_EQ(ErrorOf("PET_", {{"PET_START_METHOD", "frok"}}),
            "PET_START_METHOD: want spawn, fork or forkserver, got \"frok\"; did you mean fork?");
  EXPECT_EQ(ErrorOf("PET_", {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "-1"}}),
            "TORCH_ELASTIC_SHUTDOWN_TIMEOUT: want seconds, from 0 to a year, got \"-1\"");
}

TEST(SettingsTest, FlagsWinOverOurVariablesOverTorchruns) {
  Variables variables = {{"PET_TEE", "1"}, {"RANKRUN_TEE", "2"}};
  EXPECT_EQ(SettingsOf({}, {{"PET_TEE", "1"}}).Text("tee"), "1");
  EXPECT_EQ(SettingsOf({}, variables).Text("tee"), "2");
  Settings settings = SettingsOf({"--tee=3"}, variables);
  EXPECT_EQ(settings.Text("tee"), "3");
  EXPECT_EQ(settings.OriginOf("tee"), "--tee");
  ASSERT_EQ(settings.overridden().size(), 2U);
  EXPECT_EQ(settings.overridden()[0].setting, (Setting{{"2"}, "RANKRUN_TEE"}));
  EXPECT_EQ(settings.overridden()[0].by, "--tee");
  EXPECT_EQ(settings.overridden()[1].setting, (Setting{{"1"}, "PET_TEE"}));
}

TEST(SettingsTest, AStrongerSourceMayTurnASwitchOff) {
  Settings settings = SettingsOf({}, {{"PET_STANDALONE", "1"}, {"RANKRUN_STANDALONE", "no"}});
  EXPECT_FALSE(settings.IsOn("standalone"));
  EXPECT_TRUE(SettingsOf({}, {{"PET_STANDALONE", "yes"}}).IsOn("standalone"));
  EXPECT_TRUE(SettingsOf({"--standalone"}, {{"RANKRUN_STANDALONE", "no"}}).IsOn("standalone"));
}

TEST(SettingsTest, TheShutdownTimeoutHasALastVariable) {
  Variables variables = {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}};
  Settings settings = SettingsOf({}, variables);
  EXPECT_EQ(settings.Text("shutdown-timeout"), "7");
  EXPECT_EQ(settings.OriginOf("shutdown-timeout"), "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  variables["PET_SHUTDOWN_TIMEOUT"] = "8";
  EXPECT_EQ(SettingsOf({}, variables).Text("shutdown-timeout"), "8");
  EXPECT_EQ(SettingsOf({"--shutdown-timeout=9"}, variables).Text("shutdown-timeout"), "9");
}

TEST(SettingsTest, AllValuesOfAFlagThatRepeatsCount) {
  Settings settings = SettingsOf({"-xA=1", "--env=B=2"}, {{"RANKRUN_ENV", "A=0"}});
  EXPECT_EQ(settings.values().Texts("env"), (Strings{"A=0", "A=1", "B=2"}));
  EXPECT_EQ(settings.OriginOf("env"), "RANKRUN_ENV, --env");
  EXPECT_TRUE(settings.overridden().empty());
}

TEST(SettingsTest, TheLastValueOfOtherFlagsCounts) {
  Settings settings = SettingsOf({"-n2", "-n4"});
  EXPECT_EQ(settings.values().Texts("nproc-per-node"), Strings{"4"});
}

TEST(SettingsTest, AnErrorNamesTheOrigin) {
  EXPECT_EQ(SettingsOf({}, {{"PET_TEE", "9"}}).Wrong("tee", "want 3").message, "PET_TEE: want 3");
  EXPECT_EQ(SettingsOf({"-t9"}).Wrong("tee", "want 3").message, "--tee: want 3");
  EXPECT_EQ(SettingsOf({}).Wrong("tee", "want 3").message, "--tee: want 3");
}

TEST(SettingsTest, AFlagTurnsOffTheSwitchOfAVariable) {
  Variables on = {{"RANKRUN_STANDALONE", "1"}};
  EXPECT_TRUE(SettingsOf({}, on).IsOn("standalone"));
  EXPECT_FALSE(SettingsOf({"--standalone=no"}, on).IsOn("standalone"));
  EXPECT_TRUE(SettingsOf({"--standalone=0", "--standalone"}).IsOn("standalone"));
  EXPECT_FALSE(SettingsOf({"--standalone", "--standalone=false"}).IsOn("standalone"));
}

TEST(SettingsTest, VariablesThatAreNotReadAreReported) {
  auto told = [](const Strings& variables) { return UnreadVariables(RankrunFlags(), variables); };
  EXPECT_EQ(told({"RANKRUN_NPROC=4"}),
            Strings{"RANKRUN_NPROC is not read: did you mean RANKRUN_NPROC_PER_NODE?"});
  EXPECT_EQ(told({"RANKRUN_LIFELINE=3"}),
            Strings{"RANKRUN_LIFELINE is not read: --lifeline has no variable"});
  EXPECT_EQ(told({"HOME=/", "PET_TEA=3", "RANKRUN_TEE=3", "RANKRUN_LOG=debug",
                  "RANKRUN_STATUS_FD=3", "RANKRUN_SAVE_FIFO=f", "RANKRUN_STORE=a",
                  "RANKRUN_SECRET=s", "RANKRUN_DEBUGGER=g", "RANKRUN_ZZZ=1"}),
            Strings{});
}

// A pod gets these variables for a Service "rankrun-master" or "pet-master" with two ports.
TEST(SettingsTest, VariablesOfServicesAreNoSettings) {
  for (const std::string service : {"RANKRUN_MASTER", "PET_MASTER"}) {
    Variables links = {{service + "_SERVICE_HOST", "10.96.1.5"},
                       {service + "_SERVICE_PORT", "29400"},
                       {service + "_SERVICE_PORT_METRICS", "9100"},
                       {service + "_PORT", "tcp://10.96.1.5:29400"},
                       {service + "_PORT_29400_TCP", "tcp://10.96.1.5:29400"},
                       {service + "_PORT_29400_TCP_PROTO", "tcp"},
                       {service + "_PORT_29400_TCP_PORT", "29400"},
                       {service + "_PORT_29400_TCP_ADDR", "10.96.1.5"}};
    for (const char* port : {"tcp://10.96.1.5:29400", "udp://10.96.1.5:53", "sctp://[fd00::5]:1"}) {
      links[service + "_PORT"] = port;
      EXPECT_FALSE(SettingsOf({}, links).Has("master-port")) << port;
    }
    Strings entries;
    for (const auto& [name, value] : links) entries.push_back(name + "=" + value);
    EXPECT_EQ(UnreadVariables(RankrunFlags(), entries), Strings{});
  }
  EXPECT_EQ(UnreadVariables(RankrunFlags(), {"RANKRUN_MASTER_PORTS=tcp://10.96.1.5:1"}),
            Strings{"RANKRUN_MASTER_PORTS is not read: did you mean RANKRUN_MASTER_PORT?"});
  EXPECT_EQ(ErrorOf("PET_", {{"PET_MASTER_PORT", "http://10.96.1.5:1"}}),
            "PET_MASTER_PORT: want a port number from 0 to 65535, got \"http://10.96.1.5:1\"");
}

TEST(SettingsTest, AnErrorBlamesWhereTheValueCameFrom) {
  Settings settings = SettingsOf({"--gpus=0"}, {{"RANKRUN_EVENTS", "e"}});
  auto at_origin = [&](const std::string& text) {
    return settings.AtOrigin({ErrorCode::kInvalid, text}).message;
  };
  EXPECT_EQ(at_origin("--events e: Is a directory"), "RANKRUN_EVENTS e: Is a directory");
  EXPECT_EQ(at_origin("--gpus 0: no"), "--gpus 0: no");
  EXPECT_EQ(at_origin("--log-dir x: no"), "--log-dir x: no");
}

}  // namespace
}  // namespace rankrun::launcher
