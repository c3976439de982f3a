#include "comm/training/model_text.h"

#include <set>
#include <utility>

#include "base/roll_call.h"
#include "comm/reduce/reduction.h"

namespace rankrun::comm {
namespace {

// No line of a model begins with it.
constexpr char kRefused = '!';
// Ends a line, because names may contain any other byte.
constexpr char kEnd = '\0';

Error Invalid(const std::string& message) { return {ErrorCode::kInvalid, message}; }

std::string Counted(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Returns "parameter 0 ("weight")".
std::string NameIn(const std::string& kind, size_t index, const std::string& name) {
  return kind + " " + std::to_string(index) + " (\"" + name + "\")";
}

Result<void> CheckMemory(const std::string& place, const Tensor& tensor) {
  if (tensor.device.type != DeviceType::kCpu) {
    return Invalid(place + " is in GPU memory: want CPU memory");
  }
  if (tensor.data == nullptr && tensor.count > 0) return Invalid(place + " has no memory");
  return {};
}

Result<void> CheckParameter(const std::string& place, const Parameter& parameter) {
  const Tensor& value = parameter.value;
  const Tensor& gradient = parameter.gradient;
  if (auto ok = CheckMemory(place, value); !ok) return ok;
  if (auto ok = CheckMemory("the gradient of " + place, gradient); !ok) return ok;
  if (value.dtype != gradient.dtype || value.count != gradient.count) {
    auto text = [](const Tensor& tensor) {
      return Counted(tensor.count, "element") + " of " + NameOf(tensor.dtype);
    };
    return Invalid(place + " has " + text(value) + ", its gradient " + text(gradient) +
                   ": want the same");
  }
  if (Lower(value.dtype, ReduceOp::kAvg, 1)) return {};
  return Invalid(place + " is of " + NameOf(value.dtype) +
                 ", which has no average: want another type");
}

// Appends the lines of all tensors of a kind, after `check` of each.
template <typename Item, typename Check>
Result<void> AppendAll(const std::string& kind, const std::vector<Item>& items, Check check,
                       std::string& text) {
  std::set<std::string> names;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string place = NameIn(kind, i, items[i].name);
    if (items[i].name.find(kEnd) != std::string::npos) {
      return Invalid(place + " has a null byte in its name");
    }
    if (!names.insert(items[i].name).second) {
      return Invalid(place + " has the name of an earlier one: want different names");
    }
    if (Result<void> ok = check(place, items[i]); !ok) return ok;
    const Tensor& value = items[i].value;
    text += place + " with " + Counted(value.count, "element") + " of " + NameOf(value.dtype);
    text += kEnd;
  }
  return {};
}

// Returns the line of `text` that begins at `at`.
std::string LineAt(const std::string& text, size_t at) {
  size_t begin = std::min(at, text.size());
  return text.substr(begin, text.find(kEnd, begin) - begin);
}

// Returns the begin of the first line in which the texts differ.
size_t FirstDifference(const std::vector<std::string>& texts) {
  const std::string& first = texts.front();
  size_t same = first.size();
  for (const std::string& text : texts) {
    size_t limit = std::min(same, text.size());
    same = 0;
    while (same < limit && text[same] == first[same]) ++same;
  }
  size_t end = same == 0 ? std::string::npos : first.rfind(kEnd, same - 1);
  return end == std::string::npos ? 0 : end + 1;
}

}  // namespace

Result<std::string> ModelText(const std::vector<Parameter>& parameters,
                              const DataParallelOptions& options) {
  if (parameters.empty()) return Invalid("there is no parameter: want at least one");
  if (options.bucket_cap_bytes == 0 || options.first_bucket_cap_bytes == 0) {
    return Invalid(
        "a bucket may have 0 bytes: want bucket_cap_bytes and first_bucket_cap_bytes "
        "of at least 1");
  }
  const std::string lines[] = {
      Counted(parameters.size(), "parameter"), Counted(options.buffers.size(), "buffer"),
      "first_bucket_cap_bytes = " + std::to_string(options.first_bucket_cap_bytes),
      "bucket_cap_bytes = " + std::to_string(options.bucket_cap_bytes),
      std::string("find_unused_parameters = ") +
          (options.find_unused_parameters ? "true" : "false")};
  std::string text;
  for (const std::string& line : lines) text += line + kEnd;
  if (auto ok = AppendAll("parameter", parameters, CheckParameter, text); !ok) return ok.error();
  auto check = [](const std::string& place, const Buffer& buffer) {
    return CheckMemory(place, buffer.value);
  };
  if (auto ok = AppendAll("buffer", options.buffers, check, text); !ok) return ok.error();
  return text;
}

std::string ModelRefusal(const Error& reason) { return kRefused + reason.message + kEnd; }

// FNV-1a.
uint64_t HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Result<void> CompareModelTexts(const std::vector<int>& ranks,
                               const std::vector<std::string>& texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() || texts[i][0] != kRefused) continue;
    return Invalid(RanksInWords({ranks[i]}) + " refused it: " + LineAt(texts[i], 1));
  }
  size_t at = FirstDifference(texts);
  std::vector<std::pair<std::string, std::vector<int>>> lines;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string line = LineAt(texts[i], at);
    auto same = [&](const auto& other) { return other.first == line; };
    auto found = std::find_if(lines.begin(), lines.end(), same);
    if (found == lines.end()) found = lines.insert(lines.end(), {line, {}});
    found->second.push_back(ranks[i]);
  }
  if (lines.size() == 1) return {};
  std::string message = "the ranks have different models: ";
  for (const auto& [line, those] : lines) {
    if (&line != &lines.front().first) message += ", ";
    message += RanksInWords(those) + (those.size() == 1 ? " has " : " have ") + line;
  }
  return Error{ErrorCode::kMismatch, message};
}

}  // namespace rankrun::comm
