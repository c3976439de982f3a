#include "agent/machine/worker_gpus.h"

#include <algorithm>
#include <string_view>

#include "agent/job/environment.h"
#include "agent/machine/accelerators.h"

namespace rankrun::agent {
namespace {

std::string Join(const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) text += (&entry == &entries[0] ? "" : ",") + entry;
  return text;
}

}  // namespace

std::optional<std::vector<std::string>> NamedGpus(const JobSpec& spec) {
  if (spec.gpus) return spec.gpus;
  auto value = VariableOf(spec.environment, spec.gpu_variable);
  if (!value) return std::nullopt;
  return EntriesOf(spec.gpu_variable, *value);
}

std::string OriginOfGpus(const JobSpec& spec) {
  if (spec.gpus) return "--gpus " + Join(*spec.gpus);
  return spec.gpu_variable + "=" + VariableOf(spec.environment, spec.gpu_variable).value_or("");
}

std::optional<std::string> GpusOfWorker(const JobSpec& spec, int local_rank) {
  if (!spec.virtual_local_rank) {
    return spec.gpus ? std::optional(ValueFor(spec.gpu_variable, *spec.gpus)) : std::nullopt;
  }
  auto named = NamedGpus(spec);
  const auto rank = static_cast<size_t>(local_rank);
  return ValueFor(spec.gpu_variable, {named ? named->at(rank) : std::to_string(rank)});
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
