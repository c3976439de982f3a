#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/shm/ranks.h"

namespace rankrun::comm::shm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using Kind = Operation::Kind;

constexpr Reduction kSum{.dtype = DType::kFloat32, .op = ReduceOp::kSum};

std::byte* BytesOf(std::vector<float>& data) { return reinterpret_cast<std::byte*>(data.data()); }

// Returns the error of each rank when all run this; none may wait for its
// time-out.
std::vector<Error> ErrorsOf(int ranks, const std::function<Result<void>(ShmRank&)>& call) {
  std::vector<Error> errors(static_cast<size_t>(ranks), Error{ErrorCode::kSystem, "none"});
  RunShmRanks(ranks, [&](ShmRank& me) {
    TimePoint began = MonotonicClock().Now();
    auto done = call(me);
    EXPECT_LT(MonotonicClock().Now() - began, milliseconds(kLoadedMs));
    if (!done) errors[static_cast<size_t>(me.rank())] = done.error();
  });
  return errors;
}

void ExpectMismatch(const std::vector<Error>& errors, const std::string& one,
                    const std::string& other) {
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, ErrorCode::kMismatch) << error.message;
    EXPECT_THAT(error.message, AllOf(HasSubstr(one), HasSubstr(other)));
  }
}

TEST(ShmMismatchTest, KindsAreCompared) {
  auto errors = ErrorsOf(3, [](ShmRank& me) {
    std::vector<float> data(16);
    return me.rank() == 1 ? me.Barrier() : me.Sum(data);
  });
  ExpectMismatch(errors, "ranks 0, 2 called AllReduce #1 (16 x float32",
                 "rank 1 called Barrier #1");
}

TEST(ShmMismatchTest, CountsOfLargeAndSmallCallsAreCompared) {
  auto errors = ErrorsOf(2, [](ShmRank& me) {
    std::vector<float> data(me.rank() == 0 ? 4 : 400'000);
    return me.Sum(data);
  });
  ExpectMismatch(errors, "rank 0 called AllReduce #1 (4 x", "rank 1 called AllReduce #1 (400000 x");
}

TEST(ShmMismatchTest, TypesOperationsAndRootsAreCompared) {
  for (int what = 0; what < 3; ++what) {
    auto errors = ErrorsOf(2, [&](ShmRank& me) {
      std::vector<float> data(100);
      bool odd = me.rank() == 1;
      Operation operation{.kind = Kind::kReduce};
      operation.dtype = what == 0 && odd ? DType::kInt32 : DType::kFloat32;
      operation.op = what == 1 && odd ? ReduceOp::kMax : ReduceOp::kSum;
      operation.root = what == 2 && odd ? 1 : 0;
      operation.count = 100;
      return Reduce(me.backend(), BytesOf(data), BytesOf(data), 100, kSum, me.Next(operation));
    });
    ExpectMismatch(errors, "rank 0 called Reduce #1", "rank 1 called Reduce #1");
  }
}

TEST(ShmMismatchTest, IsReportedThoughARankNeverCalls) {
  std::atomic<int> told = 0;
  auto errors = ErrorsOf(3, [&](ShmRank& me) -> Result<void> {
    std::vector<float> data(16);
    if (me.rank() == 2) {
      while (told < 2) std::this_thread::yield();
      return Error{ErrorCode::kMismatch, "called AllReduce #1, called Barrier #1"};
    }
    auto done = me.rank() == 1 ? me.Barrier() : me.Sum(data);
    told += 1;
    return done;
  });
  ExpectMismatch(errors, "called AllReduce #1", "called Barrier #1");
  EXPECT_THAT(errors[0].message, HasSubstr("rank 2 called nothing yet"));
}

TEST(ShmMismatchTest, BytesOfUnevenCallsAreCompared) {
  auto errors = ErrorsOf(2, [](ShmRank& me) {
    std::vector<float> data(16), other(16);
    const size_t wanted[] = {16, me.rank() == 0 ? 12u : 16u};  // rank 1 sends 16
    std::vector<Block> outputs{{BytesOf(other), wanted[0]}, {BytesOf(other) + 16, wanted[1]}};
    return AllGather(me.backend(), outputs, {BytesOf(data), 16},
                     me.Next(Kind::kAllGather, DType::kUInt8, 16));
  });
  ExpectMismatch(errors, "rank 1 sends 16 bytes", "rank 0, which expects 12");
}

// Returns blocks of the given sizes in `memory`.
template <typename AnyBlock>
std::vector<AnyBlock> BlocksIn(std::vector<float>& memory, const std::vector<size_t>& bytes) {
  std::vector<AnyBlock> blocks;
  for (size_t each : bytes) blocks.push_back({BytesOf(memory), each});
  return blocks;
}

TEST(ShmMismatchTest, DifferingBytesGiveAllRanksTheSameError) {
  auto all_to_all = ErrorsOf(4, [](ShmRank& me) {
    std::vector<float> data(16), other(16);
    std::vector<size_t> gives{8, 8, 8, 8}, wants{8, 8, 8, 8};
    if (me.rank() == 1) gives[2] = 12;
    if (me.rank() == 3) wants[0] = 4;
    return AllToAll(me.backend(), BlocksIn<Block>(other, wants), BlocksIn<ConstBlock>(data, gives),
                    me.Next(Kind::kAllToAll, DType::kUInt8));
  });
  for (const Error& error : all_to_all) {
    EXPECT_EQ(error.code, ErrorCode::kMismatch);
    EXPECT_EQ(error.message, "rank 0 sends 8 bytes to rank 3, which expects 4");
  }
}

TEST(ShmMismatchTest, BytesOfRootedCallsAreComparedByAll) {
  auto of = [](Kind kind) {
    return ErrorsOf(4, [kind](ShmRank& me) {
      std::vector<float> data(16), other(16);
      size_t own = me.rank() == 2 ? 12 : 8;  // the root sends it 8
      bool root = me.rank() == 1;
      Call call = me.Next(kind, DType::kUInt8, 0, 1);
      std::vector<size_t> all;
      if (root) all = {8, 8, 8, 8};
      if (kind == Kind::kGather) {
        return Gather(me.backend(), BlocksIn<Block>(other, all), {BytesOf(data), own}, call);
      }
      return Scatter(me.backend(), {BytesOf(other), own}, BlocksIn<ConstBlock>(data, all), call);
    });
  };
  for (const Error& error : of(Kind::kGather)) {
    EXPECT_EQ(error.message, "rank 2 sends 12 bytes to rank 1, which expects 8");
  }
  for (const Error& error : of(Kind::kScatter)) {
    EXPECT_EQ(error.message, "rank 1 sends 8 bytes to rank 2, which expects 12");
  }
}

TEST(ShmRefusalTest, EndsThatCallAndNothingElse) {
  RunShmRanks(3, [](ShmRank& me) {
    std::vector<float> data(50'000, 1);
    EXPECT_TRUE(me.Sum(data));
    for (int i = 0; i < 3; ++i) {
      Call call = me.Next(Kind::kBarrier);
      if (me.rank() == 1) {
        EXPECT_TRUE(me.backend().Refuse(call, "the tensor is on another device"));
        continue;
      }
      auto done = Barrier(me.backend(), call);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, ErrorCode::kInvalid);
      EXPECT_EQ(done.error().message, "rank 1 refused Barrier #" + std::to_string(i + 2) +
                                          ": the tensor is on another device");
    }
    data.assign(50'000, 1);
    auto done = me.Sum(data);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_EQ(data, std::vector<float>(50'000, 3));
  });
}

TEST(ShmRefusalTest, ManyInARowWaitForTheOthers) {
  std::atomic<bool> lines_are_full = false;
  RunShmRanks(3, [&](ShmRank& me) {
    for (int i = 1; i <= 10; ++i) {
      Call call = me.Next(Kind::kBarrier);
      if (me.rank() == 0) {
        EXPECT_TRUE(me.backend().Refuse(call, std::to_string(i)));
        if (i == 3) lines_are_full = true;
        continue;
      }
      while (!lines_are_full) std::this_thread::yield();
      auto done = Barrier(me.backend(), call);
      ASSERT_FALSE(done);
      std::string n = std::to_string(i);
      EXPECT_EQ(done.error().message, "rank 0 refused Barrier #" + n + ": " + n);
    }
    auto done = me.Barrier();
    EXPECT_TRUE(done) << done.error().message;
  });
}

TEST(ShmRefusalTest, ManyInARowFailIfTheOthersDoNotCall) {
  std::atomic<bool> over = false;
  RunShmRanks(2, [&](ShmRank& me) {
    if (me.rank() == 1) {
      while (!over) std::this_thread::yield();
      return;
    }
    me.set_timeout(milliseconds(50));
    for (bool told : {true, true, true, false}) {
      EXPECT_EQ(me.backend().Refuse(me.Next(Kind::kBarrier), "bad"), told);
    }
    over = true;
  });
}

TEST(ShmRefusalTest, ManyInARowNameTheRanksMissingInTheFirst) {
  std::atomic<bool> came = false, over = false;
  RunShmRanks(3, [&](ShmRank& me) {
    if (me.rank() == 0) {
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(me.backend().Refuse(me.Next(Kind::kBarrier), "bad"));
      }
      while (!came) std::this_thread::yield();
      me.set_timeout(milliseconds(50));
      EXPECT_FALSE(me.backend().Refuse(me.Next(Kind::kBarrier), "bad"));
      over = true;
      return;
    }
    if (me.rank() == 1) {
      EXPECT_FALSE(me.Barrier());
      came = true;
    }
    while (!over) std::this_thread::yield();
    auto done = me.Barrier();
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, testing::StartsWith("rank 2 has not called Barrier #1;"));
  });
}

TEST(ShmRefusalTest, IsReportedThoughTheRefusingRankHasLeft) {
  std::atomic<int> left = 0, told = 0;
  RunShmRanks(3, [&](ShmRank& me) {
    Call call = me.Next(Kind::kBarrier);
    if (me.rank() == 2) {
      EXPECT_TRUE(me.backend().Refuse(call, "tensor has no data"));
      me.Leave();
      left = 1;
      return;
    }
    while (left == 0 || told < me.rank()) std::this_thread::yield();  // rank 1 is late
    auto done = Barrier(me.backend(), call);
    told += 1;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "rank 2 refused Barrier #1: tensor has no data");
  });
}

TEST(ShmRefusalTest, IsReportedThoughAnInformedRankHasLeft) {
  std::atomic<int> told = 0;
  RunShmRanks(4, [&](ShmRank& me) {
    Call call = me.Next(Kind::kBarrier);
    if (me.rank() == 3) {
      EXPECT_TRUE(me.backend().Refuse(call, "tensor has no data"));
      while (told < 3) std::this_thread::yield();
      return;
    }
    while (told < me.rank()) std::this_thread::yield();  // one after the other
    auto done = Barrier(me.backend(), call);
    EXPECT_FALSE(done);
    if (!done) {
      EXPECT_EQ(done.error().code, ErrorCode::kInvalid);
      EXPECT_EQ(done.error().message, "rank 3 refused Barrier #1: tensor has no data");
    }
    if (me.rank() == 0) me.Leave();
    told += 1;
  });
}

TEST(ShmLeaveTest, EndsTheWaitsOfTheOthers) {
  RunShmRanks(3, [](ShmRank& me) {
    EXPECT_TRUE(me.Barrier());
    if (me.rank() == 2) return me.Leave();
    TimePoint began = MonotonicClock().Now();
    auto done = me.Barrier();
    ASSERT_FALSE(done);
    EXPECT_LT(MonotonicClock().Now() - began, milliseconds(kLoadedMs));
    EXPECT_EQ(done.error().code, ErrorCode::kPeerLost);
    EXPECT_EQ(done.error().message, "rank 2 has left the group");
  });
}

TEST(ShmTimeoutTest, NamesAllMissingRanksAndTheirOperations) {
  std::atomic<bool> over = false;
  RunShmRanks(4, [&](ShmRank& me) {
    if (me.rank() < 3) {
      EXPECT_TRUE(me.backend().Refuse(me.Next(Kind::kBarrier), "bad"));
    }
    if (me.rank() != 0) {
      while (!over) std::this_thread::yield();
      return;
    }
    me.set_timeout(milliseconds(50));
    auto done = me.Barrier();
    over = true;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(done.error().message, HasSubstr("rank 3 has not called Barrier #1"));
    EXPECT_THAT(done.error().message, HasSubstr("the last call of rank 3 was none"));
  });
}

TEST(ShmTimeoutTest, HasTheLastCallOfMissingRanks) {
  std::atomic<bool> over = false;
  RunShmRanks(3, [&](ShmRank& me) {
    EXPECT_TRUE(me.Barrier());
    if (me.rank() != 0) {
      while (!over) std::this_thread::yield();
      return;
    }
    me.set_timeout(milliseconds(50));
    std::vector<float> data(3);
    auto done = me.Sum(data);
    over = true;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(done.error().message,
                HasSubstr("ranks 1, 2 have not called AllReduce #2 (3 x float32"));
    EXPECT_THAT(done.error().message, HasSubstr("the last call of rank 2 was Barrier #1"));
  });
}

TEST(ShmTimeoutTest, EndsTheCallsOfLateRanksWhateverTheirSize) {
  for (size_t count : {size_t{0}, size_t{8}, size_t{16'384}}) {
    std::atomic<bool> over = false;
    RunShmRanks(2, [&](ShmRank& me) {
      std::vector<float> data(count);
      if (me.rank() == 0) me.set_timeout(milliseconds(20));
      while (me.rank() == 1 && !over) std::this_thread::yield();
      auto done = count == 0 ? me.Barrier() : me.Sum(data);
      over = true;
      ASSERT_FALSE(done) << count;
      EXPECT_EQ(done.error().code, ErrorCode::kTimeout);
      EXPECT_THAT(done.error().message, HasSubstr("rank 1 has not called "));
      EXPECT_FALSE(me.backend().Refuse(me.Next(Kind::kBarrier), "bad"));
    });
  }
}

int OpenFiles() {
  int files = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++files;
  closedir(folder);
  return files;
}

int Mappings() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  int shared = 0;
  while (std::getline(maps, line)) shared += line.find("rankrun-shm") != std::string::npos;
  return shared;
}

TEST(ShmLifeTest, TwoHundredGroupsLeaveNothing) {
  int files = OpenFiles();
  for (int i = 0; i < 200; ++i) {
    RunShmRanks(2, [](ShmRank& me) { EXPECT_TRUE(me.Barrier()); });
  }
  EXPECT_EQ(OpenFiles(), files);
  EXPECT_EQ(Mappings(), 0);
}

TEST(ShmLifeTest, AMissingRankIsNamed) {
  MemoryStore store(std::make_shared<MemoryKeys>());
  BackendConfig config = ShmConfig(store, 0, 3);
  config.timeout = milliseconds(30);
  auto backend = ShmBackend::Create(config);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(backend.error().message, HasSubstr("ranks 1, 2 did not join"));
}

TEST(ShmLifeTest, MemoryThatCannotBeOpenedIsAnErrorForAll) {
  auto keys = std::make_shared<MemoryKeys>();
  RunRanks(2, [&](int rank) {
    MemoryStore store(keys);
    if (rank == 1) {
      EXPECT_TRUE(store.Get("group/shm/segment", milliseconds(5'000)));
      EXPECT_TRUE(store.Set("group/shm/segment", "1 987654 5 abc"));  // another process
    }
    auto backend = ShmBackend::Create(ShmConfig(store, rank, 2));
    ASSERT_FALSE(backend);
    EXPECT_EQ(backend.error().code, ErrorCode::kSystem);
    EXPECT_THAT(backend.error().message, AllOf(HasSubstr("/proc/1/fd/987654"),
                                               HasSubstr("must run on one host, as one user")));
  });
}

}  // namespace
}  // namespace rankrun::comm::shm
