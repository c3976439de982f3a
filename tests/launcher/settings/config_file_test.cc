#include "launcher/settings/config_file.h"

#include <gtest/gtest.h>

#include "launcher/flags/flags.h"

namespace rankrun::launcher {
namespace {

using Strings = std::vector<std::string>;

ConfigFile Read(const std::string& text) {
  auto config = ReadConfig(RankrunFlags(), text, "job.json");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : ConfigFile{};
}

std::string ErrorOf(const std::string& text) {
  auto config = ReadConfig(RankrunFlags(), text, "job.json");
  if (config) return "accepted";
  EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
  return config.error().message;
}

TEST(ConfigFileTest, KeysAreTheNamesOfFlagsInBothSpellings) {
  ConfigFile config = Read(R"({"nproc-per-node": 4, "max_restarts": "3", "tee": "0:3"})");
  EXPECT_EQ(config.settings.at("nproc-per-node"),
            (Setting{{"4"}, "\"nproc-per-node\" in job.json"}));
  EXPECT_EQ(config.settings.at("max-restarts"), (Setting{{"3"}, "\"max_restarts\" in job.json"}));
  EXPECT_EQ(config.settings.at("tee").values, Strings{"0:3"});
  EXPECT_EQ(config.settings.size(), 3U);
  EXPECT_TRUE(config.program.empty());
}

TEST(ConfigFileTest, EverySettingMayStandInIt) {
  for (const Flag& flag : Flags()) {
    if (flag.sources == FlagSources::kNowhere || flag.name == "config") continue;
    std::string value = "\"text\"";
    if (flag.value == FlagValue::kNone) value = "true";
    if (flag.value == FlagValue::kChoice) {
      value = "\"" + std::string(flag.choices.substr(0, flag.choices.find('|'))) + "\"";
    }
    bool number = flag.value == FlagValue::kCount || flag.value == FlagValue::kPort ||
                  flag.value == FlagValue::kSeconds || flag.value == FlagValue::kSize;
    if (number) value = "7";
    if (flag.repeats) value = R"(["A=b"])";
    EXPECT_EQ(Read("{\"" + std::string(flag.name) + "\": " + value + "}").settings.size(), 1U);
  }
}

TEST(ConfigFileTest, VariablesAreAnObjectOrAnArray) {
  ConfigFile object = Read(R"({"env": {"A": "b c", "N": 4, "E": ""}})");
  EXPECT_EQ(object.settings.at("env").values, (Strings{"A=b c", "E=", "N=4"}));
  EXPECT_EQ(Read(R"({"env": ["A=b", "PATH"]})").settings.at("env").values,
            (Strings{"A=b", "PATH"}));
}

TEST(ConfigFileTest, TheProgramIsAnArrayOrAText) {
  EXPECT_EQ(Read(R"({"program": ["train.py", "--lr", 0.5]})").program,
            (Strings{"train.py", "--lr", "0.5"}));
  EXPECT_EQ(Read(R"({"program": "train.py"})").program, Strings{"train.py"});
}

TEST(ConfigFileTest, SwitchesAreTrueOrFalse) {
  EXPECT_EQ(Read(R"({"standalone": true})").settings.at("standalone").values, Strings{"true"});
  EXPECT_EQ(Read(R"({"standalone": false})").settings.at("standalone").values, Strings{"false"});
}

TEST(ConfigFileTest, AnUnknownKeyGetsTheNearestOne) {
  EXPECT_EQ(ErrorOf(R"({"max-restart": 3})"),
            "job.json: unknown key \"max-restart\"; did you mean \"max-restarts\"?");
  EXPECT_EQ(ErrorOf(R"({"programs": "x"})"),
            "job.json: unknown key \"programs\"; did you mean \"program\"?");
  EXPECT_EQ(ErrorOf(R"({"frobnicate": 3})"),
            "job.json: unknown key \"frobnicate\"; rankrun --help lists all");
  for (std::string key : {"help", "version", "completion", "config", "lifeline"}) {
    EXPECT_EQ(ErrorOf("{\"" + key + "\": 3}"),
              "job.json: \"" + key + "\": cannot be set in a file");
  }
}

TEST(ConfigFileTest, AMessageIsOneLineThatControlsNoTerminal) {
  EXPECT_EQ(ErrorOf(R"({"a\nb\u001b[31m": 3})"),
            R"(job.json: unknown key "a\nb\x1b[31m"; rankrun --help lists all)");
  EXPECT_EQ(ErrorOf(R"({"max-restarts": "3\n"})"),
            R"(job.json: "max-restarts": want a whole number from 0 to 1000000, got "3\n")");
}

TEST(ConfigFileTest, AWrongTypeNamesTheKey) {
  struct Row {
    const char* text;
    const char* message;
  };
  for (const Row& row : {
           Row{R"({"tee": true})", "\"tee\": want a text or a number, got true"},
           Row{R"({"tee": [3]})", "\"tee\": want a text or a number, got an array"},
           Row{R"({"tee": null})", "\"tee\": want a text or a number, got null"},
           Row{R"({"tee": {}})", "\"tee\": want a text or a number, got an object"},
           Row{R"({"standalone": "yes"})", "\"standalone\": want true or false, got a text"},
           Row{R"({"standalone": 1})", "\"standalone\": want true or false, got the number 1"},
           Row{R"({"env": 1})", "\"env\": want an object of names and values, got the number 1"},
           Row{R"({"env": {"A": true}})", "\"env\": want a text or a number for \"A\", got true"},
           Row{R"({"env": {"A=b": "c"}})", "\"env\": \"A=b\" cannot be the name of a variable"},
           Row{R"({"env": {"": "c"}})", "\"env\": \"\" cannot be the name of a variable"},
           Row{R"({"program": ["a\u0000b"]})",
               "\"program\": want texts or numbers, got a text with a NUL character"},
           Row{R"({"program": 1})", "\"program\": want an array of texts, got the number 1"},
           Row{R"({"program": [[]]})", "\"program\": want texts or numbers, got an array"},
           Row{R"([1])", "want a JSON object, got an array"},
       }) {
    EXPECT_EQ(ErrorOf(row.text), std::string("job.json: ") + row.message);
  }
}

TEST(ConfigFileTest, AKeyOccursOnce) {
  EXPECT_EQ(ErrorOf(R"({"tee": 1, "bind": "core", "tee": 3})"),
            "job.json: \"tee\": is given twice");
  EXPECT_EQ(ErrorOf(R"({"env": {"A": 1, "A": 2}})"), "job.json: \"A\": is given twice");
  EXPECT_EQ(ErrorOf(R"({"env": {"tee": 1}, "tee": 3})"), "accepted") << "not in one object";
}

TEST(ConfigFileTest, ANumberThatIsTooLargeNamesTheKey) {
  EXPECT_EQ(ErrorOf(R"({"tee": 1, "timeout": 1e400})"),
            "job.json: \"timeout\": the number is too large");
}

TEST(ConfigFileTest, AWrongValueNamesTheKey) {
  EXPECT_EQ(ErrorOf(R"({"max-restarts": -1})"),
            "job.json: \"max-restarts\": want a whole number from 0 to 1000000, got \"-1\"");
  EXPECT_EQ(
      ErrorOf(R"({"bind": "cores"})"),
      "job.json: \"bind\": want none, core, numa or socket, got \"cores\"; did you mean core?");
}

TEST(ConfigFileTest, OneKeyInBothSpellingsIsRefused) {
  EXPECT_EQ(ErrorOf(R"({"log-dir": "a", "log_dir": "b"})"),
            "job.json: \"log_dir\": is given in both spellings");
}

TEST(ConfigFileTest, InvalidJsonIsReportedWithItsPlace) {
  EXPECT_EQ(ErrorOf("{\n  \"tee\": 3,\n  oops\n}"), "job.json: invalid JSON at line 3, column 3");
  EXPECT_EQ(ErrorOf(""), "job.json: invalid JSON at line 1, column 1");
  EXPECT_EQ(ErrorOf("{\"a\": \"\xff\"}"), "job.json: invalid JSON at line 1, column 8");
}

}  // namespace
}  // namespace rankrun::launcher
