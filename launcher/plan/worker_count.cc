#include "launcher/plan/worker_count.h"

#include <algorithm>
#include <array>

#include "agent/machine/gpus.h"
#include "base/parse_number.h"
#include "launcher/flags/nearest_name.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

constexpr std::string_view kName = "nproc-per-node";
constexpr int kMaxWorkers = 10'000;

// Returns "4 GPUs" or "1 GPU".
std::string CountText(size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

Error Wrong(const Settings& settings, const std::string& text) {
  constexpr std::array<std::string_view, 3> kWords = {"auto", "cpu", "gpu"};
  for (std::string_view device : {"xpu", "npu", "hpu", "mps", "mtia", "musa", "xla"}) {
    if (text != device) continue;
    return settings.Wrong(kName,
                          "rankrun cannot count devices of kind " + text + "; want a number");
  }
  std::string wrong =
      "want a whole number from 1 to " + std::to_string(kMaxWorkers) + ", auto, cpu or gpu";
  auto nearest = NearestName(text, kWords);
  bool is_word = !text.empty() && text[0] >= 'a' && text[0] <= 'z';
  std::string hint = nearest && is_word ? "; did you mean " + std::string(*nearest) + "?" : "";
  return settings.Wrong(kName, wrong + Got(text) + hint);
}

// GPUs that get one worker each.
struct Gpus {
  size_t count;
  std::string origin;  // " of --gpus"
};

// The scheduler's number counts if fewer GPUs are ours than are visible, or if
// rankrun cannot count GPUs of this kind.
Result<Gpus> CountGpus(const CountedDevices& devices) {
  if (devices.gpus_typed) return Gpus{devices.gpus_typed->size(), " of --gpus"};
  auto found = devices.visible_gpus();
  if (!found) return std::move(found).error();
  auto given = static_cast<size_t>(devices.scheduler_gpus ? devices.scheduler_gpus->value : 0);
  if (given == 0 || (!found->empty() && found->size() <= given)) {
    return Gpus{found->size(), " that we may use"};
  }
  return Gpus{given, " of " + devices.scheduler_gpus->variable};
}

WorkerCount ForEach(const Gpus& gpus) {
  return {static_cast<int>(gpus.count),
          "one for each of " + CountText(gpus.count, "GPU") + gpus.origin};
}

WorkerCount ForEachCpu(const CountedDevices& devices) {
  bool is_limited = devices.cpu_limit && *devices.cpu_limit < devices.cpus;
  int cpus = is_limited ? *devices.cpu_limit : devices.cpus;
  return {cpus, "one for each of " + CountText(static_cast<size_t>(cpus), "CPU") +
                    (is_limited ? " by the container's limit" : " that we may use")};
}

Result<WorkerCount> Default(const CountedDevices& devices) {
  if (devices.one_by_default) return WorkerCount{1, "torchrun's default"};
  auto gpus = CountGpus(devices);
  if (!gpus) return std::move(gpus).error();
  if (gpus->count > 0) return ForEach(*gpus);
  return WorkerCount{1, "there is no GPU that we may use"};
}

Result<WorkerCount> ByWord(const Settings& settings, const std::string& word,
                           const CountedDevices& devices) {
  if (word == "cpu") return ForEachCpu(devices);
  auto gpus = CountGpus(devices);
  if (!gpus) return std::move(gpus).error().In(settings.OriginOf(kName) + " " + word);
  if (gpus->count > 0) return ForEach(*gpus);
  if (word == "auto") return ForEachCpu(devices);
  return settings.Wrong(kName, "gpu needs a GPU, and there is none that we may use");
}

// Returns why `gpus` are not among `all`; an empty text if they are.
std::string WhyNotAmong(const std::vector<std::string>& all, const std::vector<std::string>& gpus) {
  if (all.empty()) return "there is no GPU here";
  for (const std::string& gpu : gpus) {
    auto index = ParseNumber<size_t>(gpu);
    if (index && *index >= all.size()) {
      return "there is no GPU " + gpu + ", the last is " + std::to_string(all.size() - 1);
    }
  }
  return "";
}

}  // namespace

Result<std::optional<std::vector<std::string>>> ReadGpus(const Settings& settings,
                                                         const GpuFinder& all) {
  using Gpus = std::optional<std::vector<std::string>>;
  auto text = settings.Text("gpus");
  if (!text) return Gpus();
  std::vector<std::string> gpus;
  for (std::string_view part : SplitAtCommas(*text)) {
    std::string gpu(Stripped(part));
    if (!agent::IsGpu(gpu)) {
      return settings.Wrong("gpus",
                            "want an index, GPU-<uuid> or MIG-<uuid>, or several with commas "
                            "between, as 0,2" +
                                Got(*text));
    }
    if (std::ranges::find(gpus, gpu) != gpus.end()) {
      return settings.Wrong("gpus", "GPU " + gpu + " is given twice" + Got(*text));
    }
    gpus.push_back(std::move(gpu));
  }
  if (auto found = all(); found) {
    std::string wrong = WhyNotAmong(*found, gpus);
    if (!wrong.empty()) return settings.Wrong("gpus", wrong + Got(*text));
  }
  return Gpus(std::move(gpus));
}

Result<WorkerCount> ReadWorkerCount(const Settings& settings, const CountedDevices& devices) {
  auto text = settings.Text(kName);
  if (!text) return Default(devices);
  if (*text == "auto" || *text == "cpu" || *text == "gpu") {
    return ByWord(settings, *text, devices);
  }
  auto number = ParseNumber<int>(*text);
  if (!number || *number < 1 || *number > kMaxWorkers) return Wrong(settings, *text);
  return WorkerCount{*number, ""};
}

}  // namespace rankrun::launcher
