#include <mutex>
#include <optional>
#include <utility>

#include <rankrun/distributed.h>

#include "base/status_page.h"

namespace rankrun {
namespace {

// Global because a process has one status page.
struct Saving {
  std::mutex mutex;
  int notices = 0;                 // that live; guarded by mutex
  std::optional<StatusPage> page;  // while there are any; guarded by mutex
};

// Never destroyed: a thread may save until the process ends.
Saving& TheSaving() {
  static auto* const kInstance = new Saving;
  return *kInstance;
}

}  // namespace

SavingNotice::SavingNotice() {
  Saving& saving = TheSaving();
  std::lock_guard lock(saving.mutex);
  if (saving.notices++ == 0) {
    auto page = StatusPage::FromEnvironment();
    if (page) {
      page->SetSaving(true);
      saving.page = std::move(*page);
    }
  }
  heard_ = saving.page.has_value();
}

SavingNotice::~SavingNotice() {
  Saving& saving = TheSaving();
  std::lock_guard lock(saving.mutex);
  if (--saving.notices > 0 || !saving.page) return;
  saving.page->SetSaving(false);
  saving.page.reset();
}

}  // namespace rankrun
