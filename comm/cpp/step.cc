#include <rankrun/step_notice.h>

#include "base/status/status_page.h"
#include "base/status/step_notice.h"

namespace rankrun {

bool NoteStep(int64_t step) {
  const StatusPage* page = StatusPage::OfThisProcess();
  if (page == nullptr) return false;
  if (step >= 0) WriteStep(*page, step);
  return true;
}

}  // namespace rankrun
