#include "launcher/command_line.h"

#include <gtest/gtest.h>

#include "launcher/flags.h"

namespace rankrun::launcher {
namespace {

using std::chrono::milliseconds;
using Words = std::vector<std::string>;

Options Parse(Words words) {
  words.push_back("train.py");
  auto options = ParseCommandLine(words);
  EXPECT_TRUE(options) << options.error().message;
  return options ? *options : Options{};
}

std::string ErrorOf(const Words& words) {
  auto options = ParseCommandLine(words);
  EXPECT_FALSE(options);
  if (options) return "accepted";
  EXPECT_EQ(options.error().code, ErrorCode::kInvalid);
  return options.error().message;
}

std::string DefaultOf(std::string_view name) {
  for (const Flag& flag : Flags()) {
    if (flag.name == name) return std::string(flag.default_value);
  }
  return "no such flag";
}

TEST(CommandLineTest, TheDefaultsAreThoseOfTheTable) {
  Options options = Parse({});
  EXPECT_EQ(std::to_string(options.workers), DefaultOf("nproc-per-node"));
  EXPECT_EQ(std::to_string(options.max_restarts), DefaultOf("max-restarts"));
  EXPECT_EQ(std::to_string(options.shutdown_timeout / std::chrono::seconds(1)),
            DefaultOf("shutdown-timeout"));
  EXPECT_EQ(options.master_addr, std::nullopt);
  EXPECT_EQ(options.master_port, std::nullopt);
  EXPECT_EQ(options.store_max_value, std::nullopt);
  EXPECT_FALSE(options.no_python || options.module || options.help || options.version);
}

TEST(CommandLineTest, ReadsEveryFlag) {
  Options options = Parse({"-n8", "--max-restarts=3", "--standalone", "--master-addr=10.0.0.1",
                           "--master-port=29500", "--store-max-value=100M", "--no-python",
                           "--shutdown-timeout=2.5", "--version", "-h"});
  EXPECT_EQ(options.workers, 8);
  EXPECT_EQ(options.max_restarts, 3);
  EXPECT_EQ(options.master_addr, "10.0.0.1");
  EXPECT_EQ(options.master_port, 29500);
  EXPECT_EQ(options.store_max_value, 100u << 20);
  EXPECT_TRUE(options.no_python);
  EXPECT_EQ(options.shutdown_timeout, milliseconds(2500));
  EXPECT_TRUE(options.version);
  EXPECT_TRUE(options.help);
  EXPECT_EQ(options.program, Words{"train.py"});
  EXPECT_TRUE(Parse({"-m"}).module);
}

TEST(CommandLineTest, TheLastOfSeveralValuesCounts) {
  Options options = Parse({"-n2", "--nproc_per_node=4", "--standalone", "--standalone"});
  EXPECT_EQ(options.workers, 4);
}

TEST(CommandLineTest, TextComesThroughUntouched) {
  for (const char* address : {"::1", "[::1]", "[a,b]", "a,b", "\"x\"", "'x'", "my host", "$HOME",
                              "%h", "a=b", "{}", "-x"}) {
    EXPECT_EQ(Parse({"--master-addr=" + std::string(address)}).master_addr, address);
  }
}

TEST(CommandLineTest, TheProgramsArgumentsAreItsOwn) {
  auto options = ParseCommandLine(Words{"-n2", "train.py", "--help", "-n", "x", "--nnodes=2"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->program, (Words{"train.py", "--help", "-n", "x", "--nnodes=2"}));
  EXPECT_FALSE(options->help);
}

TEST(CommandLineTest, WorkersAreAtLeastOne) {
  std::string wanted = "--nproc-per-node: want a whole number from 1 to 10000, got ";
  for (const char* bad : {"0", "-1", "1.5", "two", "4x", "99999999999", "1e3", "+2", "auto"}) {
    EXPECT_EQ(ErrorOf({"-n", bad, "x"}), wanted + '"' + bad + '"');
  }
}

TEST(CommandLineTest, RestartsAreAtLeastNone) {
  EXPECT_EQ(Parse({"--max-restarts=0"}).max_restarts, 0);
  EXPECT_EQ(ErrorOf({"--max-restarts=-1", "x"}),
            "--max-restarts: want a whole number from 0 to 1000000, got \"-1\"");
}

TEST(CommandLineTest, APortIsAPort) {
  EXPECT_EQ(Parse({"--master-port=0"}).master_port, 0);
  EXPECT_EQ(Parse({"--master-port=65535"}).master_port, 65535);
  for (const char* bad : {"65536", "-1", "http", "1.0", "0x50"}) {
    EXPECT_EQ(ErrorOf({"--master-port", bad, "x"}),
              std::string("--master-port: want a port number from 0 to 65535, got \"") + bad + '"');
  }
}

TEST(CommandLineTest, SecondsMayHaveFractionsButAreNeverNegative) {
  EXPECT_EQ(Parse({"--shutdown-timeout=0"}).shutdown_timeout, milliseconds(0));
  EXPECT_EQ(Parse({"--shutdown-timeout=0.25"}).shutdown_timeout, milliseconds(250));
  EXPECT_EQ(Parse({"--shutdown-timeout=1e1"}).shutdown_timeout, milliseconds(10'000));
  for (const char* bad : {"-1", "nan", "inf", "soon", "1s", "1e300", "40000000"}) {
    EXPECT_EQ(
        ErrorOf({"--shutdown-timeout", bad, "x"}),
        std::string("--shutdown-timeout: want seconds, from 0 to a year, got \"") + bad + '"');
  }
}

TEST(CommandLineTest, AStoreValueHasAtMostAGibibyte) {
  EXPECT_EQ(Parse({"--store-max-value=1G", "x"}).store_max_value, 1u << 30);
  EXPECT_EQ(ErrorOf({"--store-max-value=1025M", "x"}),
            "--store-max-value: want at most 1G, got 1074790400 bytes");
}

TEST(CommandLineTest, AWrongValueIsAnErrorThoughALaterOneIsRight) {
  EXPECT_EQ(ErrorOf({"-n", "two", "-n", "2", "x"}),
            "--nproc-per-node: want a whole number from 1 to 10000, got \"two\"");
}

TEST(CommandLineTest, AProgramIsNeeded) {
  std::string wanted = "no program given; usage: rankrun [flags] program [arguments]";
  EXPECT_EQ(ErrorOf({}), wanted);
  EXPECT_EQ(ErrorOf({"-n2"}), wanted);
  EXPECT_EQ(ErrorOf({"-n2", "--"}), wanted);
  EXPECT_EQ(ErrorOf({"", "x"}), wanted);
}

TEST(CommandLineTest, HelpAndVersionNeedNoProgram) {
  auto help = ParseCommandLine(Words{"--help"});
  ASSERT_TRUE(help);
  EXPECT_TRUE(help->help);
  auto version = ParseCommandLine(Words{"--version"});
  ASSERT_TRUE(version);
  EXPECT_TRUE(version->version);
}

TEST(CommandLineTest, ModuleAndNoPythonExcludeEachOther) {
  EXPECT_EQ(ErrorOf({"-m", "--no-python", "mod"}), "--module and --no-python exclude each other");
}

TEST(CommandLineTest, ErrorsOfTheFlagsComeThrough) {
  EXPECT_EQ(ErrorOf({"--max-restart=1", "x"}),
            "unknown flag --max-restart; did you mean --max-restarts?");
}

// Words of a text, with any run of white space as one blank.
std::string Flowed(const std::string& text) {
  std::string flowed;
  for (char c : text) {
    bool blank = c == ' ' || c == '\n';
    if (!blank) {
      flowed += c;
    } else if (!flowed.ends_with(' ')) {
      flowed += ' ';
    }
  }
  return flowed;
}

TEST(CommandLineTest, HelpListsEveryFlagWithItsTextAndDefault) {
  std::string help = Flowed(HelpText());
  EXPECT_NE(help.find("Usage: rankrun [flags] program [arguments] "), std::string::npos);
  for (const Flag& flag : Flags()) {
    std::string entry = "--" + std::string(flag.name) + " ";
    if (flag.letter != 0) entry = std::string("-") + flag.letter + "," + entry;
    if (!flag.value_name.empty()) entry += std::string(flag.value_name) + " ";
    entry += flag.help;
    if (!flag.default_value.empty()) entry += " Default: " + std::string(flag.default_value) + ".";
    EXPECT_NE(help.find(entry), std::string::npos) << entry << "\nis not in\n" << help;
  }
}

}  // namespace
}  // namespace rankrun::launcher
