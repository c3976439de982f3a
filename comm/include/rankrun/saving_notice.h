#pragma once

#include <rankrun/export.h>

namespace rankrun {

// Marks a save that must not be interrupted. While a notice exists, rankrun
// waits up to --save-timeout instead of --shutdown-timeout for this worker to
// end. Several may exist at a time. Needs no Init. Ends with the process.
//   {
//     rankrun::SavingNotice saving;
//     WriteCheckpoint();
//   }
// Thread: any.
class RANKRUN_API SavingNotice {
 public:
  SavingNotice();
  SavingNotice(const SavingNotice&) = delete;
  SavingNotice& operator=(const SavingNotice&) = delete;
  ~SavingNotice();

  // Returns whether rankrun can read the notice; false if another launcher, or
  // none, started this process.
  bool heard() const { return heard_; }

 private:
  bool heard_;
};

}  // namespace rankrun
