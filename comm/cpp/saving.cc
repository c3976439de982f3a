#include <optional>
#include <utility>

#include <rankrun/saving_notice.h>

#include "base/mutex.h"
#include "base/status/status_page.h"

namespace rankrun {
namespace {

// Global because a process has one status page.
struct Saving {
  Mutex mutex;
  int notices GUARDED_BY(mutex) = 0;                 // number of existing notices
  std::optional<StatusPage> page GUARDED_BY(mutex);  // set while a notice exists
};

// Never destroyed, because a thread may save until the process ends.
Saving& TheSaving() {
  static auto* const kInstance = new Saving;
  return *kInstance;
}

}  // namespace

SavingNotice::SavingNotice() {
  Saving& saving = TheSaving();
  MutexLock lock(saving.mutex);
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
  MutexLock lock(saving.mutex);
  if (--saving.notices > 0 || !saving.page) return;
  saving.page->SetSaving(false);
  saving.page.reset();
}

}  // namespace rankrun
