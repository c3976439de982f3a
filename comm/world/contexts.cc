#include "comm/world/contexts.h"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>

#include "base/mutex.h"

namespace rankrun::comm {
namespace {

struct NamedTable {
  explicit NamedTable(const std::string& name) : table(name) {}

  GroupTable table;
  bool is_open = false;
};

struct Contexts {
  Mutex mutex;
  std::map<std::string, std::unique_ptr<NamedTable>> by_name GUARDED_BY(mutex);
};

Contexts& OfThisProcess();

// A fork must not happen while a thread holds the mutex, because the child lacks the thread
// that would release it.
void LockForFork() NO_THREAD_SAFETY_ANALYSIS { OfThisProcess().mutex.Lock(); }
void UnlockAfterFork() NO_THREAD_SAFETY_ANALYSIS { OfThisProcess().mutex.Unlock(); }

Contexts& OfThisProcess() {
  static auto* const kContexts = [] {
    auto* contexts = new Contexts;
    pthread_atfork(LockForFork, UnlockAfterFork, UnlockAfterFork);
    return contexts;
  }();
  return *kContexts;
}

// Names are parts of keys in the store.
bool IsName(const std::string& name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name.find_first_not_of(kAllowed) == std::string::npos;
}

}  // namespace

GroupTable& DefaultContext() {
  static auto* const kTable = new GroupTable("");
  return *kTable;
}

Result<GroupTable*> OpenContext(const std::string& name) {
  if (!IsName(name)) {
    return Error{ErrorCode::kInvalid,
                 "the name is \"" + name + "\": want letters, digits, '_', '-' or '.'"};
  }
  Contexts& contexts = OfThisProcess();
  MutexLock lock(contexts.mutex);
  std::unique_ptr<NamedTable>& context = contexts.by_name[name];
  if (context == nullptr) context = std::make_unique<NamedTable>(name);
  if (auto ok = context->table.CheckHome(); !ok) return ok.error();
  if (context->is_open) {
    return Error{ErrorCode::kInvalid, "this process has a context of this name: want another name"};
  }
  context->is_open = true;
  return &context->table;
}

void CloseContext(const std::string& name) {
  Contexts& contexts = OfThisProcess();
  GroupTable* table = nullptr;
  {
    MutexLock lock(contexts.mutex);
    table = &contexts.by_name.at(name)->table;
  }
  table->Clear();
  MutexLock lock(contexts.mutex);
  contexts.by_name.at(name)->is_open = false;
}

bool AnyWorld() {
  if (DefaultContext().world() != nullptr) return true;
  Contexts& contexts = OfThisProcess();
  MutexLock lock(contexts.mutex);
  return std::ranges::any_of(
      contexts.by_name, [](const auto& named) { return named.second->table.world() != nullptr; });
}

}  // namespace rankrun::comm
