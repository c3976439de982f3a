#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rankrun::launcher {

// The text of --rdzv-conf: "a=1,b=2". Values are checked only when they are
// used, because torchrun ignores values of unknown keys. Pure.
class RdzvConf {
 public:
  // Errors: kInvalid; the message names the accepted form.
  static Result<RdzvConf> Parse(std::string_view text);

  const std::map<std::string, std::string, std::less<>>& all() const { return values_; }
  bool Has(std::string_view key) const { return values_.contains(key); }

  // Return nothing if the key is absent. Errors: kInvalid.
  Result<std::optional<int>> Number(std::string_view key, int least) const;
  Result<std::optional<bool>> Switch(std::string_view key) const;
  // Returns whether store_type is "file", so that the endpoint is a path; the default is "tcp".
  // Errors: kInvalid.
  Result<bool> HasFileStore() const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace rankrun::launcher
