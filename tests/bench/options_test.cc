#include "bench/rankrun_bench/options.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <regex>

#include <rankrun/distributed.h>

namespace rankrun::bench {
namespace {

using ::testing::HasSubstr;

Parsed Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "rankrun-bench");
  return ParseOptions(static_cast<int>(words.size()), words.data());
}

TEST(OptionsTest, SizesHaveUnitsOf1024) {
  const Parsed parsed = Parse({"all_reduce", "--min-bytes", "3K", "--max-bytes", "2M"});
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.min_bytes, 3072U);
  EXPECT_EQ(parsed.options.max_bytes, std::size_t{2} << 20);
}

TEST(OptionsTest, SizesThatAreNoneAreRefused) {
  for (const char* word : {"-5", "8x", "1.5K", "8kb", "8k", "K", "3Q", "0x8", "9000000T", ""}) {
    for (const char* flag : {"--min-bytes", "--max-bytes"}) {
      const Parsed parsed = Parse({"all_reduce", flag, word});
      EXPECT_EQ(parsed.exit_code, 2) << flag << " " << word;
      EXPECT_EQ(parsed.text, std::string("rankrun-bench: ") + flag +
                                 ": want a size, as 512, 8K, 64M, 1G or 2T, got \"" + word +
                                 "\"\n");
    }
  }
}

TEST(OptionsTest, ReductionsThatTheLibraryRefusesAreRefusedBefore) {
  ProcessGroup& world = Init({.rank = 0, .world_size = 1, .store = std::make_shared<HashStore>()});
  const auto library_takes = [&](DType dtype, ReduceOp::Kind op) {
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
      const auto dtype = static_cast<DType>(number);
      const auto kind = static_cast<ReduceOp::Kind>(op);
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
  const Parsed parsed = Parse({"--version"});
  EXPECT_EQ(parsed.exit_code, 0);
  EXPECT_TRUE(std::regex_match(parsed.text, std::regex("rankrun-bench [0-9.]+\n"))) << parsed.text;
}

TEST(OptionsTest, NamesAreThoseOfTheTables) {
  const Parsed parsed = Parse({"send_recv", "barrier", "--dtype", "bfloat16", "--op", "max"});
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.options.collectives, (std::vector{Collective::kSendRecv, Collective::kBarrier}));
  EXPECT_EQ(parsed.options.dtype, DType::kBFloat16);
  EXPECT_EQ(parsed.options.op, ReduceOp::kMax);
}

TEST(OptionsTest, AllAreSevenCollectives) {
  EXPECT_EQ(Parse({"all"}).options.collectives.size(), 7U);
}

TEST(OptionsTest, WrongWordsAreNamedWithWhatWouldBeRight) {
  const std::pair<std::vector<const char*>, const char*> cases[] = {
      {{}, "COLLECTIVE is required"},
      {{"all_reduc"}, "\"all_reduc\" is none of all_gather, all_reduce"},
      {{"all_reduce", "--dtype", "half"}, "--dtype: \"half\" is none of bfloat16"},
      {{"all_reduce", "--op", "plus"}, "--op: \"plus\" is none of avg"},
      {{"all_reduce", "--factor", "1"}, "--factor: Value 1 not in range 2"},
      {{"all_reduce", "--iters", "-1"}, "--iters: Value -1 not in range 0"},
      {{"all_reduce", "--min-bytes", "0"}, "--min-bytes: must be from 1"},
      {{"all_reduce", "--min-bytes", "2", "--max-bytes", "1"}, "--min-bytes: must be from 1"},
      {{"all_reduce", "--dtype", "bool", "--op", "avg"}, "--op: avg does not go with bool: want"},
      {{"all", "--dtype", "float8_e5m2"}, "--dtype: float8_e5m2 can be moved, not reduced"},
      {{"all_reduce", "--nothing"}, "--nothing"},
  };
  for (const auto& [words, text] : cases) {
    const Parsed parsed = Parse(words);
    EXPECT_EQ(parsed.exit_code, 2) << text;
    EXPECT_THAT(parsed.text, HasSubstr(text));
    EXPECT_TRUE(parsed.text.starts_with("rankrun-bench: ")) << parsed.text;
  }
}

TEST(OptionsTest, ManPageHasEveryFlagWithItsDefault) {
  std::ifstream file(RANKRUN_SOURCE_DIR "/man/rankrun-bench.1");
  std::string page{std::istreambuf_iterator<char>(file), {}};
  std::erase(page, '\\');
  const Parsed parsed = Parse({"--help"});
  EXPECT_EQ(parsed.exit_code, 0);
  const std::regex flag("\n  (--[a-z-]+)( [A-Z]+)?(=([a-z0-9A-Z]+))?");
  int found = 0;
  for (std::sregex_iterator at(parsed.text.begin(), parsed.text.end(), flag), end; at != end;
       ++at, ++found) {
    const std::size_t entry = page.find((*at)[1].str());
    ASSERT_NE(entry, std::string::npos) << (*at)[1];
    const std::string text = page.substr(entry, page.find(".TP", entry) - entry);
    if ((*at)[4].matched) {
      EXPECT_THAT(text, HasSubstr("Default: " + (*at)[4].str() + "."));
    }
  }
  EXPECT_EQ(found, 12);
}

TEST(OptionsTest, ManPageHasEveryCollective) {
  std::ifstream file(RANKRUN_SOURCE_DIR "/man/rankrun-bench.1");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const Collective collective : Parse({"all"}).options.collectives) {
    EXPECT_THAT(page, HasSubstr(std::string("\n.B ") + NameOf(collective) + "\n"));
  }
}

}  // namespace
}  // namespace rankrun::bench
