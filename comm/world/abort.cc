// The part of GroupTable that ends calls from any thread.

#include <algorithm>
#include <string>

#include "comm/world/group_table.h"

namespace rankrun::comm {
namespace {

// Bytes of the reason of an Abort, so that each backend can carry the text.
constexpr size_t kMaxReasonBytes = 400;

// Returns "aborted the group: <reason>", in one line.
std::string AbortInWords(const std::string& reason) {
  std::string text = "aborted the group";
  if (reason.empty()) return text;
  text += ": " + reason.substr(0, kMaxReasonBytes);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

}  // namespace

Result<void> GroupTable::Abort(const ProcessGroup& group, const std::string& reason) {
  auto ok = live_.Abort(group, AbortInWords(reason));
  if (ok || ok.error().code != ErrorCode::kNotFound) return ok;
  return Error{ErrorCode::kInvalid, group.place_ + " " + ok.error().message};
}

}  // namespace rankrun::comm
