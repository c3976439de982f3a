#include "launcher/worker_count.h"

#include <algorithm>
#include <array>

#include "agent/gpus.h"
#include "launcher/nearest_name.h"
#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

constexpr std::string_view kName = "nproc-per-node";
constexpr int kMostWorkers = 10'000;

// "4 GPUs", "1 GPU"
std::string Of(size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

Error Wrong(const Settings& settings, const std::string& text) {
  constexpr std::array<std::string_view, 3> kWords = {"auto", "cpu", "gpu"};
  for (std::string_view device : {"xpu", "npu", "hpu", "mps", "mtia", "musa", "xla"}) {
    if (text != device) continue;
    return settings.Wrong(
        kName, "rankrun cannot count devices of the kind " + text + "; want their number");
  }
  std::string wrong =
      "want a whole number from 1 to " + std::to_string(kMostWorkers) + ", auto, cpu or gpu";
  auto nearest = NearestName(text, kWords);
  bool is_word = !text.empty() && text[0] >= 'a' && text[0] <= 'z';
  std::string hint = nearest && is_word ? "; did you mean " + std::string(*nearest) + "?" : "";
  return settings.Wrong(kName, wrong + Got(text) + hint);
}

// The GPUs that there is a worker each for.
struct Gpus {
  size_t count;
  std::string whose;
};

// What the scheduler has given us is what counts: of others that can be seen,
// and of kinds that cannot be counted here.
Result<Gpus> CountGpus(const CountedDevices& devices) {
  if (devices.gpus_typed) return Gpus{devices.gpus_typed->size(), " of --gpus"};
  auto found = devices.visible_gpus();
  if (!found) return std::move(found).error();
  auto said = static_cast<size_t>(devices.gpus_said ? devices.gpus_said->value : 0);
  if (said == 0 || (!found->empty() && found->size() <= said)) {
    return Gpus{found->size(), " that we may use"};
  }
  return Gpus{said, " of " + devices.gpus_said->variable};
}

WorkerCount ForEach(const Gpus& gpus) {
  return {static_cast<int>(gpus.count), "one for each of " + Of(gpus.count, "GPU") + gpus.whose};
}

WorkerCount ForEachCpu(const CountedDevices& devices) {
  auto cpus = static_cast<size_t>(devices.cpus);
  return {devices.cpus, "one for each of " + Of(cpus, "CPU") + " that we may use"};
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

// What is wrong with `gpus` where `all` are there; empty: nothing.
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
      return settings.Wrong("gpus", "GPU " + gpu + " is there twice" + Got(*text));
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
  if (!number || *number < 1 || *number > kMostWorkers) return Wrong(settings, *text);
  return WorkerCount{*number, ""};
}

}  // namespace rankrun::launcher
