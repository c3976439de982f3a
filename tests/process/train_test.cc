// Runs examples/train_lm on real text.

#include <gmock/gmock.h>

#include <cmath>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::vector<std::string> Train(const std::string& workers, std::vector<std::string> flags) {
  std::vector<std::string> arguments{
      "-n",      workers, "--max-restarts", "1", test::Program("train_lm"),
      "--steps", "60",    "--hidden",       "16"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return arguments;
}

double FinalLoss(const std::string& out) {
  size_t at = out.find("final loss ");
  return at == std::string::npos ? NAN : std::stod(out.substr(at + 11));
}

TEST(TrainTest, LossIsTheSameWithOneTwoAndFourWorkers) {
  std::vector<double> losses;
  for (const char* workers : {"1", "2", "4"}) {
    Job job({.arguments = Train(workers, {})});
    ASSERT_TRUE(job.Wait(milliseconds(100'000)).value_or(ProcessExit{true, 0}).succeeded())
        << job.Err();
    EXPECT_THAT(job.Out(), ContainsRegex("communication over shm: [0-9]+\\.[0-9] % of the time"));
    losses.push_back(FinalLoss(job.Out()));
  }
  EXPECT_LT(losses[0], 5.0) << "it has learnt something";
  EXPECT_NEAR(losses[1] / losses[0], 1, 1e-3);
  EXPECT_NEAR(losses[2] / losses[0], 1, 1e-3);
}

TEST(TrainTest, KilledWorkerCostsARestartAndNoAccuracy) {
  ScratchFolder folder;
  Job undisturbed({.arguments = Train("4", {})});
  ASSERT_TRUE(undisturbed.Wait(milliseconds(100'000)).has_value());
  Job job({.arguments = Train("4", {"--checkpoint", folder.Path("ck"), "--checkpoint-every", "20",
                                    "--die-rank", "2", "--die-at", "50"})});
  ASSERT_TRUE(job.Wait(milliseconds(100'000)).value_or(ProcessExit{true, 0}).succeeded())
      << job.Err();
  EXPECT_THAT(job.Err(), HasSubstr("cause: rank 2"));
  EXPECT_THAT(job.Err(), HasSubstr("killed by SIGKILL, not sent by rankrun"));
  EXPECT_THAT(job.Err(), HasSubstr("next: restart 1 of 1"));
  EXPECT_THAT(job.Out(), HasSubstr("resumed from step 40"));
  EXPECT_NEAR(FinalLoss(job.Out()) / FinalLoss(undisturbed.Out()), 1, 1e-3);
}

}  // namespace
}  // namespace rankrun::testing
