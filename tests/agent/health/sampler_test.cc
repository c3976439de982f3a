#include "agent/health/sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

TEST(SamplerTest, AddsFactsToSamplesWithAProcess) {
  Loop loop;
  Sampler sampler(loop);
  std::vector<WorkerSample> read;
  auto done = [&](std::vector<WorkerSample> samples) {
    read = std::move(samples);
    loop.Stop();
  };
  ASSERT_TRUE(sampler.Read({{.global_rank = 4, .pid = getpid()}, {.global_rank = 5}}, {}, done));
  EXPECT_FALSE(sampler.Read({}, {}, done)) << "a batch is under way";
  loop.Run();
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].global_rank, 4);
  ASSERT_TRUE(read[0].process);
  EXPECT_NE(read[0].process->state, '\0');
  EXPECT_FALSE(read[1].process);
  EXPECT_TRUE(sampler.Read({}, {}, done)) << "the batch has ended";
  loop.Run();
}

TEST(SamplerTest, ADestroyedSamplerCallsNothing) {
  Loop loop;
  auto sampler = std::make_unique<Sampler>(loop);
  Sampler other(loop);
  bool was_called = false;
  ASSERT_TRUE(sampler->Read({{.pid = getpid()}}, {}, [&](const auto&) { was_called = true; }));
  sampler.reset();
  ASSERT_TRUE(other.Read({{.pid = getpid()}}, {}, [&](const auto&) { loop.Stop(); }));
  loop.Run();
  EXPECT_FALSE(was_called);
}

}  // namespace
}  // namespace rankrun::agent
