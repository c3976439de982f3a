#include "agent/job/job_record.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <random>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

JobRecord FullRecord() {
  return {.node_id = 0xfedc'ba98'7654'3210,
          .incarnation = 3,
          .job_began = TimePoint(std::chrono::nanoseconds(123'456'789'012'345)),
          .last_end = "the agent (pid 7) was killed by SIGKILL",
          .run_id = "job \"7\"",
          .events_file = "events.jsonl",
          .attempt = 2,
          .may_restart = true,
          .restarts = RestartsUsed{.used = 2, .most = 5, .consecutive_failures = 1},
          .folder = JobFolder{.temporary_base = "/tmp/a", .path = "/tmp/a/\xff", .keep = true},
          .state = std::string("\0\xff\n", 3)};
}

// Returns this process's descriptors of the slots.
std::vector<int> Slots() {
  std::vector<int> slots;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    std::string target = std::filesystem::read_symlink(entry.path(), ignored);
    if (target.starts_with("/memfd:rankrun-job"))
      slots.push_back(std::stoi(entry.path().filename()));
  }
  return slots;
}

// Returns a record whose content and size depend on `number`.
JobRecord Numbered(int number) {
  auto size = static_cast<size_t>(number) * 7919 % 100'000;
  return {.incarnation = number, .state = std::string(size, static_cast<char>(number % 128))};
}

TEST(JobRecordTest, EncodingAndDecodingPreservesARecord) {
  EXPECT_EQ(DecodeJobRecord(EncodeJobRecord(FullRecord())), FullRecord());
  EXPECT_EQ(DecodeJobRecord(EncodeJobRecord({})), JobRecord{});
}

TEST(JobRecordTest, InvalidBytesAreNotDecoded) {
  std::string whole = EncodeJobRecord(FullRecord());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(DecodeJobRecord(whole.substr(0, length))) << length;
  }
  EXPECT_FALSE(DecodeJobRecord(whole + "x"));
  EXPECT_FALSE(DecodeJobRecord(std::string(1, '\xa0')));  // an empty map
}

TEST(JobMemoryTest, ANewMemoryHasItsOwnNodeIdAndMayNotRestart) {
  auto one = JobMemory::Create();
  auto other = JobMemory::Create();
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->Read().node_id, other->Read().node_id);
  EXPECT_EQ(one->Read().node_id, one->Read().node_id);
  EXPECT_EQ(one->Read().incarnation, 0);
  EXPECT_FALSE(one->Read().may_restart);
  EXPECT_GT(one->Read().job_began, TimePoint{});
}

TEST(JobMemoryTest, TheLastRecordWinsWhateverItsSize) {
  auto memory = JobMemory::Create();
  ASSERT_TRUE(memory);
  for (int number : {1, 2, 50, 3, 12, 13, 4}) {
    ASSERT_TRUE(memory->Write(Numbered(number)));
    EXPECT_EQ(memory->Read(), Numbered(number));
  }
  JobRecord large{.state = std::string(3'000'000, 'x')};
  ASSERT_TRUE(memory->Write(large));
  EXPECT_EQ(memory->Read(), large);
  ASSERT_TRUE(memory->Write(FullRecord()));
  EXPECT_EQ(memory->Read(), FullRecord());
}

TEST(JobMemoryTest, AHalfWrittenRecordLeavesTheOneBefore) {
  auto memory = JobMemory::Create();
  ASSERT_TRUE(memory && memory->Write(Numbered(1)) && memory->Write(Numbered(2)));
  std::vector<int> slots = Slots();
  ASSERT_EQ(slots.size(), 2u);
  // A complete record is read, whichever slot is damaged and wherever.
  for (int slot : slots) {
    off_t size = lseek(slot, 0, SEEK_END);
    for (off_t at = 0; at < size; at += 97) {
      char before = 0;
      ASSERT_EQ(pread(slot, &before, 1, at), 1);
      const char damaged = static_cast<char>(before ^ 0x20);
      ASSERT_EQ(pwrite(slot, &damaged, 1, at), 1);
      JobRecord read = memory->Read();
      EXPECT_TRUE(read == Numbered(1) || read == Numbered(2)) << "byte " << at;
      ASSERT_EQ(pwrite(slot, &before, 1, at), 1);
    }
  }
  for (int slot : slots) ASSERT_EQ(ftruncate(slot, 10), 0);
  EXPECT_FALSE(memory->Read().may_restart);
  ASSERT_TRUE(memory->Write(Numbered(9)));
  EXPECT_EQ(memory->Read(), Numbered(9));
}

TEST(JobMemoryTest, AWriterKilledAtAnyMomentLeavesAWholeRecord) {
  std::mt19937 random(20240117);
  auto memory = JobMemory::Create();
  ASSERT_TRUE(memory && memory->Write(Numbered(1)));
  for (int round = 0; round < 50; ++round) {
    int first = memory->Read().incarnation;
    test::Pipe alive = test::MakePipe();
    pid_t writer = test::Fork([&] {
      for (int number = first + 1;; ++number) {
        if (!memory->Write(Numbered(number))) return 1;
        if (write(alive.write_end.get(), "x", 1) != 1) return 1;
      }
    });
    unsigned records = 1 + static_cast<unsigned>(random() % 20);
    char byte;
    for (unsigned i = 0; i < records; ++i) ASSERT_EQ(read(alive.read_end.get(), &byte, 1), 1);
    kill(writer, SIGKILL);
    test::WaitForExit(writer);
    JobRecord read = memory->Read();
    EXPECT_GE(read.incarnation, first + static_cast<int>(records));
    EXPECT_EQ(read, Numbered(read.incarnation));
  }
}

TEST(JobMemoryTest, WorkersDoNotInheritIt) {
  auto memory = JobMemory::Create();
  ASSERT_TRUE(memory);
  for (int slot : Slots()) EXPECT_TRUE(IsOurs(slot));
  EXPECT_EQ(Slots().size(), 2u);
}

}  // namespace
}  // namespace rankrun::agent
