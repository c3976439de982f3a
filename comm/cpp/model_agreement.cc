#include "comm/cpp/model_agreement.h"

#include <vector>

#include <rankrun/objects.h>

#include "comm/core/part_of.h"
#include "comm/training/model_text.h"

namespace rankrun::comm {

Result<void> AgreeOnModel(ProcessGroup& group, const Result<std::string>& text, Timeout timeout) {
  const PartOf part_of(ProgramCall::kDataParallel);
  const std::string mine = text ? *text : ModelRefusal(text.error());
  const std::vector<uint64_t> digest{HashOf(mine), mine.size()};
  std::vector<uint64_t> digests(digest.size() * static_cast<size_t>(group.world_size()));
  group.AllGatherInto(digests, digest, timeout);
  bool are_equal = true;
  for (size_t i = 0; i < digests.size(); ++i) are_equal &= digests[i] == digest[i % digest.size()];
  std::vector<std::string> texts;
  if (!are_equal) {
    const auto* bytes = reinterpret_cast<const std::byte*>(mine.data());
    for (const Object& object : AllGatherObject(group, {bytes, bytes + mine.size()}, timeout)) {
      texts.emplace_back(reinterpret_cast<const char*>(object.data()), object.size());
    }
  }
  if (!text) return text.error();
  if (are_equal) return {};
  return CompareModelTexts(group.global_ranks(), texts);
}

}  // namespace rankrun::comm
