#include "comm/async/work_handle.h"

#include <exception>
#include <string>

#include "base/log.h"

namespace rankrun::comm {
namespace {

void WarnOnce(const std::optional<Operation>& operation, bool has_failed) {
  static std::atomic<bool> is_logged = false;
  if (is_logged.exchange(true)) return;
  const std::string what = operation ? Describe(*operation) : "several operations";
  if (has_failed) {
    LogWarn(what +
            " has failed, and the program has dropped its Work unused: want Wait, which "
            "throws the error (logged once)");
  } else {
    LogWarn(
        "the program has dropped the Work of " + what +
        " before its end: want Wait, because the call uses its tensors until then (logged once)");
  }
}

}  // namespace

WorkHandle::~WorkHandle() {
  if (is_used_ || !state_->home().is_here()) return;
  if (std::uncaught_exceptions() > 0) return;  // of another Work, perhaps
  const bool is_over = state_->done();
  if (!is_over || !state_->result()) WarnOnce(operation_, is_over);
}

}  // namespace rankrun::comm
