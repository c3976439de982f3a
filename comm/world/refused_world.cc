// The part of GroupTable that knows of worlds that are not of this process: a world that could
// not be made, that of a fork's parent, and that of the next program of this rank.

#include <utility>

#include "comm/group/process_group_access.h"
#include "comm/world/group_table.h"

namespace rankrun::comm {

Result<void> GroupTable::CheckHome() const {
  const ProcessGroup* first = world();
  // Not GroupOf, which throws.
  if (first == nullptr || first->group_->home().is_here()) return {};
  return ErrorOfFork(*first->group_);
}

void GroupTable::KeepRefused(Meeting meeting, const Error& reason) {
  if (meeting.file)
    NoteInFile(*meeting.file, *meeting.store, "whose Init failed: " + reason.message);
  refused_.server = std::move(meeting.server);
  if (meeting.file) refused_.store = std::move(meeting.store);
  refused_.file = std::move(meeting.file);
}

void GroupTable::ForgetRefused() {
  if (!refused_.home.is_here()) {
    static_cast<void>(new RefusedWorld(std::move(refused_)));  // the parent still uses it
  } else if (refused_.file) {
    LeaveFile(*refused_.file, *refused_.store);
  }
  refused_ = {};
}

// The store of a broken world may be stuck.
void GroupTable::GivePlaceBack() {
  const WorldNumber next{context_, generation_};
  if (TheWorld().state() == GroupState::kOk) {
    LeaveTo(next, world_.place, TheWorld().store());
  } else if (auto own = TheWorld().store().CloneWith(kCleaning, kCleaning)) {
    LeaveTo(next, world_.place, **own);
  }
}

// Errors in local arguments consume no generation, because the other ranks
// still wait for this call.
Error GroupTable::CountFailedInit(Error error) {
  if (error.code != ErrorCode::kInvalid) generation_ += 1;
  return error;
}

}  // namespace rankrun::comm
