#include "comm/rpc/roster.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rankrun::comm::rpc {
namespace {

constexpr size_t kMaxName = 127;
constexpr size_t kNamesInText = 10;

Error Invalid(const std::string& message) { return {ErrorCode::kInvalid, message}; }

bool MayBeInName(char c) {
  bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == ':';
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName &&
         std::all_of(name.begin(), name.end(), MayBeInName);
}

}  // namespace

Result<Roster> Roster::Make(std::vector<std::string> names) {
  std::map<std::string_view, size_t> ids;
  for (size_t id = 0; id < names.size(); ++id) {
    if (!IsName(names[id])) {
      return Invalid("the name of worker " + std::to_string(id) + " is \"" + names[id] +
                     "\": want 1 to " + std::to_string(kMaxName) +
                     " letters, digits, '-', '_' or ':'");
    }
    auto [first, is_new] = ids.emplace(names[id], id);
    if (is_new) continue;
    return Invalid("workers " + std::to_string(first->second) + " and " + std::to_string(id) +
                   " have the name " + names[id] + ": want different names");
  }
  return Roster(std::move(names));
}

Result<int> Roster::IdOf(std::string_view name) const {
  auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<int>(found - names_.begin());
  std::string text = "there is no worker " + std::string(name) + ": want ";
  for (size_t id = 0; id < std::min(names_.size(), kNamesInText); ++id) {
    text += (id == 0 ? "" : ", ") + names_[id];
  }
  return Invalid(text + (names_.size() > kNamesInText ? " ..." : ""));
}

Result<int> Roster::Checked(int id) const {
  if (id >= 0 && id < size()) return id;
  return Invalid("there is no worker " + std::to_string(id) + ": want 0 to " +
                 std::to_string(size() - 1));
}

}  // namespace rankrun::comm::rpc
