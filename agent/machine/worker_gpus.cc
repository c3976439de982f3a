#include "agent/machine/worker_gpus.h"

#include <algorithm>
#include <string_view>

#include "agent/job/environment.h"

namespace rankrun::agent {
namespace {

constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";

std::string_view WithoutBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::vector<std::string> Split(std::string_view list) {
  std::vector<std::string> entries;
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    entries.emplace_back(WithoutBlanks(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return entries;
}

std::string Join(const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) text += (&entry == &entries[0] ? "" : ",") + entry;
  return text;
}

}  // namespace

std::optional<std::vector<std::string>> NamedGpus(const JobSpec& spec) {
  if (spec.gpus) return spec.gpus;
  auto variable = VariableOf(spec.environment, kVariable);
  if (!variable) return std::nullopt;
  return Split(*variable);
}

std::string OriginOfGpus(const JobSpec& spec) {
  if (spec.gpus) return "--gpus " + Join(*spec.gpus);
  return kVariable + ("=" + VariableOf(spec.environment, kVariable).value_or(""));
}

std::optional<std::string> CudaVisibleDevices(const JobSpec& spec, int local_rank) {
  if (!spec.virtual_local_rank) {
    return spec.gpus ? std::optional(Join(*spec.gpus)) : std::nullopt;
  }
  auto named = NamedGpus(spec);
  return named ? named->at(static_cast<size_t>(local_rank)) : std::to_string(local_rank);
}

Result<void> CheckGpus(const JobSpec& spec) {
  auto named = NamedGpus(spec);
  if (!spec.virtual_local_rank || !named) return {};
  if (named->size() >= static_cast<size_t>(spec.workers)) return {};
  auto count = std::ranges::count_if(*named, [](const std::string& gpu) { return !gpu.empty(); });
  return Error{ErrorCode::kInvalid,
               "--virtual-local-rank gives each worker a GPU: " + std::to_string(spec.workers) +
                   " workers, but " + OriginOfGpus(spec) + " names " + std::to_string(count)};
}

}  // namespace rankrun::agent
