#include <optional>
#include <set>
#include <utility>

#include <rankrun/saving_notice.h>

#include "base/mutex.h"
#include "base/status/status_page.h"
#include "comm/core/home_process.h"

namespace rankrun {
namespace {

// Global because a process has one status page.
struct Saving {
  Mutex mutex;
  std::set<const SavingNotice*> notices GUARDED_BY(mutex);  // all that exist
  std::optional<StatusPage> page GUARDED_BY(mutex);         // set while a notice exists
};

// Never destroyed, because a thread may save until the process ends.
Saving& TheSaving() {
  static constinit comm::PerProcess<Saving> saving;
  return saving.Get();
}

}  // namespace

SavingNotice::SavingNotice() {
  Saving& saving = TheSaving();
  MutexLock lock(saving.mutex);
  if (saving.notices.empty()) {
    auto page = StatusPage::FromEnvironment();
    if (page) {
      page->SetSaving(true);
      saving.page = std::move(*page);
    }
  }
  saving.notices.insert(this);
  heard_ = saving.page.has_value();
}

SavingNotice::~SavingNotice() {
  Saving& saving = TheSaving();
  MutexLock lock(saving.mutex);
  if (saving.notices.erase(this) == 0) return;  // the parent's, which still saves
  if (!saving.notices.empty() || !saving.page) return;
  saving.page->SetSaving(false);
  saving.page.reset();
}

}  // namespace rankrun
