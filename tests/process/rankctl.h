#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {

const std::string kRankctl = test::Program("rankctl");

// Runs `rankctl store serve` on a free port.
class ServedStore {
 public:
  explicit ServedStore(const std::vector<std::string>& flags = {},
                       const std::function<void()>& in_child = {}) {
    std::vector<std::string> arguments{"store", "serve", "--port=0"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    job_ = std::make_unique<Job>(
        Job::Options{.arguments = arguments, .program = kRankctl, .in_child = in_child});
    EXPECT_TRUE(job_->WaitForOut("\n")) << job_->Err();
    std::string line = job_->Out();
    address_ = line.substr(line.rfind(' ') + 1);
    if (address_.ends_with('\n')) address_.pop_back();
  }

  Job& job() { return *job_; }
  const std::string& address() const { return address_; }  // "127.0.0.1:41234"
  std::string port() const { return address_.substr(address_.rfind(':') + 1); }

 private:
  std::unique_ptr<Job> job_;
  std::string address_;
};

}  // namespace rankrun::testing
