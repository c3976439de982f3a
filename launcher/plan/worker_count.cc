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

// PyTorch's names of types of devices; "gpu" and "auto" stand for any of them.
constexpr std::array<std::string_view, 9> kTypes = {"cuda", "xpu",  "npu", "hpu", "mps",
                                                    "mtia", "musa", "mlu", "xla"};

bool IsType(std::string_view word) { return std::ranges::find(kTypes, word) != kTypes.end(); }

Error Wrong(const Settings& settings, const std::string& text) {
  constexpr std::array<std::string_view, 3> kWords = {"auto", "cpu", "gpu"};
  std::string wrong =
      "want a whole number from 1 to " + std::to_string(kMaxWorkers) + ", auto, cpu or gpu";
  auto nearest = NearestName(text, kWords);
  bool is_word = !text.empty() && text[0] >= 'a' && text[0] <= 'z';
  std::string hint = nearest && is_word ? "; did you mean " + std::string(*nearest) + "?" : "";
  return settings.Wrong(kName, wrong + Got(text) + hint);
}

// Devices that get one worker each.
struct Gpus {
  size_t count;
  std::string noun;             // "GPU"
  std::string origin;           // " of --gpus"
  std::string torch_type = {};  // if PyTorch found them
  std::string why_none = {};    // if PyTorch could not be asked
};

// The scheduler's number counts if fewer GPUs are ours than are visible, or if
// rankrun cannot count GPUs of this kind.
Result<Gpus> CountGpus(const CountedDevices& devices) {
  std::string noun(agent::NounOf(devices.accelerators.maker));
  if (devices.gpus_typed) return Gpus{devices.gpus_typed->size(), noun, " of --gpus"};
  auto found = devices.visible_gpus();
  if (!found) return std::move(found).error();
  auto given = static_cast<size_t>(devices.scheduler_gpus ? devices.scheduler_gpus->value : 0);
  if (given == 0 || (!found->empty() && found->size() <= given)) {
    return Gpus{found->size(), noun, " that we may use"};
  }
  return Gpus{given, noun, " of " + devices.scheduler_gpus->variable};
}

// Counts the devices that a word stands for. PyTorch is slow, so it comes last.
Result<Gpus> CountGpusFor(std::string_view word, const CountedDevices& devices) {
  bool is_ours = !IsType(word) || word == agent::TorchTypeOf(devices.accelerators.maker);
  if (is_ours) {
    auto gpus = CountGpus(devices);
    if (!gpus || gpus->count > 0) return gpus;
  }
  Gpus none{0, "GPU", ""};
  auto asked = devices.ask_torch();
  const bool may_use_cpus = word == "auto" && devices.accelerators.named_by.empty();
  if (!asked && may_use_cpus) return Gpus{0, "GPU", "", "", asked.error().message};
  if (!asked) return std::move(asked).error();
  if (IsType(word) && asked->type != word) return none;
  return Gpus{static_cast<size_t>(asked->count), asked->type + " device", " that PyTorch finds",
              asked->type};
}

WorkerCount ForEach(const Gpus& gpus) {
  return {static_cast<int>(gpus.count),
          "one for each of " + CountText(gpus.count, gpus.noun) + gpus.origin, gpus.torch_type};
}

WorkerCount ForEachCpu(const CountedDevices& devices) {
  const auto limit = devices.cpu_limit ? devices.cpu_limit() : std::nullopt;
  bool is_limited = limit && *limit < devices.cpus;
  int cpus = is_limited ? *limit : devices.cpus;
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
  auto gpus = CountGpusFor(word, devices);
  if (!gpus) return std::move(gpus).error().In(settings.OriginOf(kName) + " " + word);
  if (gpus->count > 0) return ForEach(*gpus);
  const std::string& named_by = devices.accelerators.named_by;
  if (word == "auto" && named_by.empty()) {
    WorkerCount count = ForEachCpu(devices);
    if (!gpus->why_none.empty()) count.why += ", because " + gpus->why_none;
    return count;
  }
  if (word == "auto") {
    return settings.Wrong(kName, "auto finds no device of " + named_by + "; want a number, or cpu");
  }
  std::string device = word == "gpu" ? "a GPU" : "a device of this type";
  return settings.Wrong(kName, word + " needs " + device + ", and there is none that we may use");
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
  bool is_word = *text == "auto" || *text == "cpu" || *text == "gpu" || IsType(*text);
  if (is_word) return ByWord(settings, *text, devices);
  auto number = ParseNumber<int>(*text);
  if (!number || *number < 1 || *number > kMaxWorkers) return Wrong(settings, *text);
  return WorkerCount{*number, ""};
}

}  // namespace rankrun::launcher
