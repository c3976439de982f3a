#include "agent/health/stack_suspect.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "agent/health/early_end.h"
#include "agent/stacks/stack_text.h"
#include "base/roll_call.h"

namespace rankrun::agent {
namespace {

constexpr std::string_view kFolder = "/torch/distributed/";
constexpr std::string_view kDataParallel = "/torch/nn/parallel/distributed.py";
constexpr std::string_view kDecorators = "/c10d_logger.py";  // around each function of the folder
constexpr std::string_view kNative[] = {"c10d::", "gloo::", "nccl"};

bool IsInTorchDistributed(const StackFrame& frame) {
  if (frame.file.ends_with(kDecorators)) return false;
  return frame.file.find(kFolder) != std::string::npos || frame.file.ends_with(kDataParallel);
}

bool IsNative(const StackFrame& frame) {
  return std::ranges::any_of(kNative,
                             [&](auto begin) { return frame.function.starts_with(begin); });
}

// The frame of a main thread that has returned, and waits for other threads or runs handlers.
bool IsOfAnExit(const StackFrame& frame) {
  if (frame.file.ends_with("/threading.py")) return frame.function == "_shutdown";
  if (frame.file.ends_with("/multiprocessing/util.py")) return frame.function == "_exit_function";
  return frame.function == "Py_FinalizeEx" || frame.function == "__run_exit_handlers";
}

bool IsExiting(const ProcessStacks& stacks) {
  return !stacks.threads.empty() &&
         std::ranges::any_of(MergedFrames(stacks, stacks.threads.front()), IsOfAnExit);
}

bool AreKnown(const ProcessStacks& stacks) {
  if (stacks.threads.empty() || !stacks.python_note.empty()) return false;
  const ThreadStack& main = stacks.threads.front();
  return stacks.interpreter.empty() ? !main.native.empty() : !main.python.empty();
}

std::string PlaceOf(const ProcessStacks& stacks) {
  constexpr size_t kShown = 2;
  std::vector<std::string> frames = FramesThatMatter(stacks);
  std::string text;
  for (size_t i = 0; i < std::min(frames.size(), kShown); ++i) {
    text += (i > 0 ? " <- " : "") + frames[i];
  }
  return text;
}

// Returns the outermost function of a library that the program has called from Python, if it is
// in one: "c10d::TCPStore::get".
std::string NativeCallOf(const std::vector<StackFrame>& frames) {
  std::string call;
  for (const StackFrame& frame : frames) {
    if (frame.file.ends_with(".py")) break;
    if (IsNative(frame)) call = ShortFunction(frame.function);
  }
  return call;
}

// Returns the outermost function of torch.distributed around the innermost one, which its user
// knows.
std::string CallOf(const ProcessStacks& stacks) {
  if (stacks.threads.empty()) return "";
  const auto frames = MergedFrames(stacks, stacks.threads.front());
  std::string call;
  for (auto frame = std::ranges::find_if(frames, IsInTorchDistributed); frame != frames.end();
       ++frame) {
    if (IsInTorchDistributed(*frame)) {
      call = frame->function;
    } else if (!frame->file.ends_with(kDecorators)) {
      break;
    }
  }
  if (call.empty()) call = NativeCallOf(frames);
  return call.empty() ? CollectiveOf(stacks) : call;
}

bool IsNativeDial(const StackFrame& frame) {
  return frame.function.find("SocketConnectOp") != std::string::npos ||
         frame.function.starts_with("c10d::detail::Socket::connect");
}

// Returns the address of the store that the main thread makes, or its place if only the native
// frames show a dial: "a store, in connect (train.py:4)". Empty: it makes none.
std::string StoreOf(const ThreadStack& thread) {
  const auto made = std::ranges::find_if(
      thread.python, [](const StackFrame& frame) { return !frame.address.empty(); });
  if (made != thread.python.end()) return made->address;
  if (std::ranges::none_of(thread.native, IsNativeDial)) return "";
  const auto caller = std::ranges::find_if(
      thread.python, [](const StackFrame& frame) { return !IsInTorchDistributed(frame); });
  if (caller == thread.python.end()) return "a store";
  return "a store, in " + caller->function + " (" +
         caller->file.substr(caller->file.rfind('/') + 1) + ":" + std::to_string(caller->line) +
         ")";
}

// A program pauses between dials that are refused, and waits in a dial without an answer. One that
// is connected polls, too.
Dial DialOf(const ThreadStack& thread) {
  if (std::ranges::any_of(thread.native, IsNative) &&
      std::ranges::none_of(thread.native, IsNativeDial)) {
    return Dial::kNone;
  }
  // A call that was interrupted before has lost its name, but its functions are known.
  std::string call = thread.system_call + " " + thread.wait_channel;
  for (size_t i = 0; i < std::min<size_t>(2, thread.native.size()); ++i) {
    call += " " + thread.native[i].function;
  }
  const auto has = [&](const char* part) { return call.find(part) != std::string::npos; };
  if (has("nanosleep")) return Dial::kRefused;
  return has("poll") || has("connect") ? Dial::kUnanswered : Dial::kNone;
}

bool IsMessage(std::string_view function) {
  constexpr std::string_view kMessages[] = {"send", "recv", "isend", "irecv", "batch_isend_irecv"};
  return std::ranges::find(kMessages, function) != std::end(kMessages);
}

// Returns the only index with its collective; nothing if there are none or several.
std::optional<size_t> TheOnlyOne(const std::vector<std::string>& collectives,
                                 const std::string& collective) {
  if (std::ranges::count(collectives, collective) != 1) return std::nullopt;
  return static_cast<size_t>(std::ranges::find(collectives, collective) - collectives.begin());
}

// A rank that is exiting waits for none of those that have ended.
HangVerdict BlamingTheExiting(HangVerdict verdict, const std::vector<RankDigest>& workers) {
  const bool all_exit = std::ranges::all_of(workers, [](const RankDigest& worker) {
    return worker.digest.is_exiting && worker.digest.collective.empty();
  });
  if (workers.empty() || !all_exit) return verdict;
  verdict.causes.clear();
  std::vector<int> ranks;
  for (const auto& [rank, digest] : workers) {
    ranks.push_back(rank);
    verdict.causes[rank] = "exiting, in " + digest.place + "; all others have ended";
  }
  verdict.text = RanksInWords(ranks) +
                 (ranks.size() == 1 ? " is exiting, and does" : " are exiting, and do") +
                 " not end; all others have ended";
  return verdict;
}

}  // namespace

std::string CollectiveOf(const ProcessStacks& stacks) {
  if (stacks.threads.empty()) return "";
  std::string native;
  for (const StackFrame& frame : MergedFrames(stacks, stacks.threads.front())) {
    if (IsInTorchDistributed(frame)) return frame.function;
    if (native.empty() && IsNative(frame)) native = ShortFunction(frame.function);
  }
  return native;
}

StackDigest DigestOf(const ProcessStacks& stacks) {
  StackDigest digest{.is_known = AreKnown(stacks),
                     .is_exiting = IsExiting(stacks),
                     .collective = CollectiveOf(stacks),
                     .place = PlaceOf(stacks),
                     .call = CallOf(stacks)};
  if (!stacks.threads.empty()) digest.address = StoreOf(stacks.threads.front());
  if (!digest.address.empty()) digest.dial = DialOf(stacks.threads.front());
  return digest;
}

std::vector<RankDigest> DigestsOf(const std::vector<WorkerSample>& workers,
                                  const std::map<pid_t, ProcessStacks>& stacks) {
  std::vector<RankDigest> digests;
  for (const WorkerSample& worker : workers) {
    if (worker.has_ended) continue;
    const auto found = stacks.find(worker.pid);
    digests.push_back(
        {worker.global_rank, found != stacks.end() ? DigestOf(found->second) : StackDigest()});
  }
  return digests;
}

std::optional<StackSuspect> SuspectByStacks(const std::vector<RankDigest>& workers) {
  if (workers.size() < 2) return std::nullopt;
  std::vector<std::string> collectives;
  std::map<std::string, size_t> counts;
  for (const RankDigest& worker : workers) {
    if (!worker.digest.is_known) return std::nullopt;
    collectives.push_back(worker.digest.collective);
    ++counts[collectives.back()];
  }
  const bool is_outside = counts.contains("");
  if (is_outside) {
    const auto found = TheOnlyOne(collectives, "");
    if (!found) return std::nullopt;
    const std::string others = counts.size() == 2 ? counts.rbegin()->first : "torch.distributed";
    const std::string& place = workers[*found].digest.place;
    return StackSuspect{.global_rank = workers[*found].global_rank,
                        .what = (place.empty() ? "elsewhere" : "in " + place) +
                                ", while all others are in " + others};
  }
  if (counts.size() != 2 || workers.size() < 3) return std::nullopt;
  auto one = counts.begin(), other = std::next(one);
  if (one->second > other->second) std::swap(one, other);
  const auto found = TheOnlyOne(collectives, one->first);
  // A rank in a collective may wait for those that exchange messages first.
  if (!found || (!IsMessage(one->first) && IsMessage(other->first))) return std::nullopt;
  return StackSuspect{.global_rank = workers[*found].global_rank,
                      .what = "in " + one->first + ", while all others are in " + other->first};
}

HangVerdict WithSuspect(HangVerdict verdict, const std::vector<RankDigest>& workers) {
  if (!verdict.needs_stacks) return verdict;
  if (!verdict.causes.empty()) return BlamingTheExiting(std::move(verdict), workers);
  const auto suspect = SuspectByStacks(workers);
  if (!suspect) return verdict;
  verdict.causes[suspect->global_rank] = suspect->what + "; " + verdict.text;
  verdict.text += "; " + RanksInWords({suspect->global_rank}) + " is " + suspect->what;
  return verdict;
}

HangVerdict WithAwaitedEnd(HangVerdict verdict, const std::set<int>& ended,
                           const std::vector<RankDigest>& workers) {
  if (!verdict.needs_stacks) return verdict;
  if (const auto suspect = SuspectByStacks(workers)) {
    verdict.causes = {{suspect->global_rank, suspect->what}};
    verdict.text = RanksInWords({suspect->global_rank}) + " is " + suspect->what;
    return verdict;
  }
  std::vector<int> waiters;
  std::set<std::string> collectives;
  for (const auto& [rank, digest] : workers) {
    const bool waits = digest.is_known && !digest.collective.empty();
    if (!waits) return BlamingTheExiting(std::move(verdict), workers);
    waiters.push_back(rank);
    collectives.insert(digest.collective);
  }
  // Ranks in several collectives may wait for each other, in groups without the ended ones.
  if (collectives.size() != 1) return verdict;
  const std::string why = EndedWhileAwaited(waiters, ended, *collectives.begin());
  verdict.text = RanksInWords({ended.begin(), ended.end()}) + " " + why;
  verdict.causes.clear();
  for (int rank : ended) verdict.causes[rank] = why;
  return verdict;
}

}  // namespace rankrun::agent
