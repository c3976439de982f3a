#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Workers of RPC, by their ids from 0. Pure.
namespace rankrun::comm::rpc {

class Roster {
 public:
  // Fails at the first name that is empty, has 128 characters or more or others than
  // letters, digits, '-', '_' and ':', or is that of an earlier worker.
  // Error: kInvalid, with the ids.
  static Result<Roster> Make(std::vector<std::string> names);

  int size() const { return static_cast<int>(names_.size()); }
  const std::string& NameOf(int id) const { return names_[static_cast<size_t>(id)]; }
  // Errors: kInvalid, "there is no worker c: want a, b".
  Result<int> IdOf(std::string_view name) const;
  Result<int> Checked(int id) const;

 private:
  explicit Roster(std::vector<std::string> names) : names_(std::move(names)) {}

  std::vector<std::string> names_;
};

}  // namespace rankrun::comm::rpc
