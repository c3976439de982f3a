#include "bench/rankrun_bench/options.h"

#include <gmock/gmock.h>

#include <regex>

#include <rankrun/distributed.h>

#include "bench/rankrun_bench/flags.h"
#include "launcher/flags/marked_text.h"
#include "tests/launcher/flags/man_page.h"

namespace rankrun::bench {
namespace {

using ::testing::HasSubstr;

Parsed Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "rankrun-bench");
  return ParseOptions(static_cast<int>(words.size()), words.data());
}

TEST(OptionsTest, SizesHaveUnitsOf1024) {
  Parsed parsed = Parse({"all_reduce", "--min-bytes", "3K", "--max-bytes", "2M"});
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.min_bytes, 3072U);
  EXPECT_EQ(parsed.options.max_bytes, size_t{2} << 20);
}

TEST(OptionsTest, FlagsAndNamesOfNcclTestsAreTaken) {
  Parsed parsed = Parse({"broadcast", "-b", "8", "-e", "128M", "-f", "4", "-n", "20", "-w", "3",
                         "-d", "half", "-o", "prod", "-r", "2"});
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  const Options& options = parsed.options;
  EXPECT_EQ(options.min_bytes, 8U);
  EXPECT_EQ(options.max_bytes, size_t{128} << 20);
  EXPECT_EQ(options.factor, 4U);
  EXPECT_EQ(options.plan.calls, 20);
  EXPECT_EQ(options.plan.warmup_calls, 3);
  EXPECT_EQ(options.dtype, DType::kFloat16);
  EXPECT_EQ(options.op, ReduceOp::kProduct);
  EXPECT_EQ(options.root, 2);
}

TEST(OptionsTest, InvalidSizesAreRefused) {
  for (const char* word : {"-5", "8x", "1.5K", "8kb", "8k", "K", "3Q", "0x8", "0", "16777216T"}) {
    for (const char* flag : {"--min-bytes", "--max-bytes"}) {
      Parsed parsed = Parse({"all_reduce", flag, word});
      EXPECT_EQ(parsed.exit_code, 2) << flag << " " << word;
      EXPECT_EQ(parsed.text, std::string("rankrun-bench: ") + flag +
                                 ": want a size, as 512, 8K, 64M, 1G or 2T, got \"" + word +
                                 "\"\n");
    }
  }
}

TEST(OptionsTest, ReductionsThatTheLibraryRefusesAreRefusedEarly) {
  ProcessGroup& world = Init({.rank = 0, .world_size = 1, .store = std::make_shared<HashStore>()});
  auto library_takes = [&](DType dtype, ReduceOp::Kind op) {
    std::byte element[16] = {};
    try {
      world.AllReduce(Tensor(element, dtype, 1), op);
    } catch (const DistError&) {
      return false;
    }
    return true;
  };
  for (int number = 0; number < kDTypes; ++number) {
    for (int op = ReduceOp::kSum; op < ReduceOp::kPremulSum; ++op) {
      auto dtype = static_cast<DType>(number);
      auto kind = static_cast<ReduceOp::Kind>(op);
      const std::vector<const char*> flags{"--dtype", NameOf(dtype), "--op", NameOf(kind)};
      std::vector<const char*> words{"all"};
      words.insert(words.end(), flags.begin(), flags.end());
      EXPECT_EQ(!Parse(words).exit_code, library_takes(dtype, kind))
          << NameOf(dtype) << " " << NameOf(kind);
      words[0] = "broadcast";
      EXPECT_FALSE(Parse(words).exit_code) << NameOf(dtype) << " " << NameOf(kind);
    }
  }
  Destroy();
}

TEST(OptionsTest, VersionIsPrinted) {
  Parsed parsed = Parse({"--version"});
  EXPECT_EQ(parsed.exit_code, 0);
  EXPECT_TRUE(std::regex_match(parsed.text, std::regex("rankrun-bench [0-9.]+\n"))) << parsed.text;
}

TEST(OptionsTest, NamesAreThoseOfTheTables) {
  Parsed parsed = Parse({"send_recv", "barrier", "--dtype", "bfloat16", "--op", "max"});
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.collectives, (std::vector{Collective::kSendRecv, Collective::kBarrier}));
  EXPECT_EQ(parsed.options.dtype, DType::kBFloat16);
  EXPECT_EQ(parsed.options.op, ReduceOp::kMax);
}

TEST(OptionsTest, AllAreSevenCollectives) {
  EXPECT_EQ(Parse({"all"}).options.collectives.size(), 7U);
}

TEST(OptionsTest, TuningTakesTheCollectivesWithSeveralAlgorithms) {
  Parsed parsed = Parse({"all", "--tune"});
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_TRUE(parsed.options.tune);
  EXPECT_EQ(parsed.options.collectives,
            (std::vector{Collective::kAllReduce, Collective::kAllGather, Collective::kBroadcast,
                         Collective::kAllToAll}));
  EXPECT_EQ(parsed.options.max_bytes, size_t{8} << 20);
  EXPECT_EQ(Parse({"all", "--tune", "--max-bytes", "1M"}).options.max_bytes, size_t{1} << 20);
}

TEST(OptionsTest, InvalidArgumentsAreNamedWithTheValidOnes) {
  const std::pair<std::vector<const char*>, const char*> cases[] = {
      {{}, "no collective given; usage: rankrun-bench [flags] COLLECTIVE..."},
      {{"all_reduc"}, "COLLECTIVE: want all_reduce, all_gather,"},
      {{"all_reduc"}, "got \"all_reduc\"; did you mean all_reduce?"},
      {{"all_reduce", "--dtype", "fp8"}, "--dtype: want float32, float64,"},
      {{"all_reduce", "--op", "plus"}, "--op: want sum, avg,"},
      {{"all_reduce", "--factor", "1"}, "--factor: want a whole number from 2 to "},
      {{"all_reduce", "--iters", "-1"}, "--iters: want a whole number from 0 to "},
      {{"all_reduce", "--max-bytes", ""}, "--max-bytes needs a value (SIZE)"},
      {{"all_reduce", "--max-bytes", "9000000T"}, "--max-bytes: want at most 1048576G"},
      {{"all_reduce", "--min-bytes", "2", "--max-bytes", "1"}, "--min-bytes: want at most the"},
      {{"all_reduce", "--dtype", "bool", "--op", "avg"}, "--op: avg does not support bool: want"},
      {{"all", "--dtype", "float8_e5m2"}, "--dtype: float8_e5m2 cannot be reduced"},
      {{"all_reduce", "--nothing"}, "--nothing"},
      {{"barrier", "--tune"}, "--tune: barrier has one algorithm: want all_reduce, all_gather,"},
      {{"all", "--tune", "--backend", "shm"}, "--tune: only tcp has a table of algorithms: want"},
  };
  for (const auto& [words, text] : cases) {
    Parsed parsed = Parse(words);
    EXPECT_EQ(parsed.exit_code, 2) << text;
    EXPECT_THAT(parsed.text, HasSubstr(text));
    EXPECT_TRUE(parsed.text.starts_with("rankrun-bench: ")) << parsed.text;
  }
}

TEST(OptionsTest, TheDefaultsAreThoseOfTheTable) {
  Options wanted = Parse({"all"}).options;
  for (const launcher::Flag& flag : BenchFlags().flags) {
    std::string value = launcher::PlainText(flag.default_value);
    if (value.empty() || flag.name == "backend") continue;
    std::string word = "--" + std::string(flag.name) + "=" + value;
    Parsed parsed = Parse({"all", word.c_str()});
    ASSERT_FALSE(parsed.exit_code) << parsed.text;
    const Options& options = parsed.options;
    EXPECT_EQ(options.min_bytes, wanted.min_bytes) << word;
    EXPECT_EQ(options.max_bytes, wanted.max_bytes) << word;
    EXPECT_EQ(options.factor, wanted.factor) << word;
    EXPECT_EQ(options.dtype, wanted.dtype) << word;
    EXPECT_EQ(options.op, wanted.op) << word;
    EXPECT_EQ(options.plan.warmup_calls, wanted.plan.warmup_calls) << word;
    EXPECT_EQ(options.plan.calls, wanted.plan.calls) << word;
    EXPECT_EQ(options.plan.batches, wanted.plan.batches) << word;
    EXPECT_EQ(options.plan.limit, wanted.plan.limit) << word;
  }
}

TEST(OptionsTest, HelpHasEveryFlag) {
  Parsed parsed = Parse({"--help"});
  EXPECT_EQ(parsed.exit_code, 0);
  for (const launcher::Flag& flag : BenchFlags().flags) {
    EXPECT_THAT(parsed.text, HasSubstr("--" + std::string(flag.name) + " "));
  }
}

TEST(OptionsTest, ThePageHasThePartThatTheTableGives) {
  EXPECT_EQ(launcher::GeneratedPartOf("rankrun-bench.1"), BenchManPart()) << "run scripts/man.sh";
}

TEST(OptionsTest, ManPageHasEveryCollective) {
  std::string page = launcher::ReadSource("man/rankrun-bench.1");
  for (Collective collective : Parse({"all"}).options.collectives) {
    EXPECT_THAT(page, HasSubstr(std::string("\n.B ") + NameOf(collective) + "\n"));
  }
}

}  // namespace
}  // namespace rankrun::bench
