#include "comm/rpc/roster.h"

#include <algorithm>

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

Result<void> CheckWorkerName(const Worker& worker) {
  if (IsName(worker.name)) return {};
  return Invalid("the name of worker " + std::to_string(worker.id) + " is \"" + worker.name +
                 "\": want 1 to " + std::to_string(kMaxName) + " letters, digits, '-', '_' or ':'");
}

Result<void> Roster::Add(const Worker& worker) {
  if (auto ok = CheckWorkerName(worker); !ok) return ok;
  MutexLock lock(mutex_);
  if (auto same = ids_.find(worker.name); same != ids_.end()) {
    return Invalid("workers " + std::to_string(same->second) + " and " + std::to_string(worker.id) +
                   " have the name " + worker.name + ": want different names");
  }
  if (auto same = names_.find(worker.id); same != names_.end()) {
    return Invalid("workers " + same->second + " and " + worker.name + " have the id " +
                   std::to_string(worker.id) + ": want different ids");
  }
  names_.emplace(worker.id, worker.name);
  ids_.emplace(worker.name, worker.id);
  return {};
}

void Roster::Remove(int id) {
  MutexLock lock(mutex_);
  auto found = names_.find(id);
  if (found == names_.end()) return;
  ids_.erase(found->second);
  names_.erase(found);
}

std::string Roster::Known() const {
  std::string text;
  size_t named = 0;
  for (const auto& [id, name] : names_) {
    if (named == kNamesInText) return text + " ...";
    text += (named++ == 0 ? "" : ", ") + name;
  }
  return text;
}

Result<Worker> Roster::Find(std::string_view name) const {
  MutexLock lock(mutex_);
  auto found = ids_.find(name);
  if (found != ids_.end()) return Worker{found->second, found->first};
  return Invalid("there is no worker " + std::string(name) + ": want " + Known());
}

Result<Worker> Roster::Find(int id) const {
  MutexLock lock(mutex_);
  auto found = names_.find(id);
  if (found != names_.end()) return Worker{id, found->second};
  return Invalid("there is no worker with the id " + std::to_string(id) + ": want " + Known());
}

std::vector<Worker> Roster::All() const {
  MutexLock lock(mutex_);
  std::vector<Worker> all;
  for (const auto& [id, name] : names_) all.push_back({id, name});
  return all;
}

}  // namespace rankrun::comm::rpc
