// Calls of the C ABI in a world of one rank. Memory is as large as each call says;
// all other arguments are arbitrary.

#include <fuzzer/FuzzedDataProvider.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include <rankrun/rankrun.h>

#include "tests/fuzz/check_input.h"

namespace rankrun::test {
namespace {

constexpr size_t kMaxCount = 8;
constexpr size_t kMaxElementBytes = 16;

bool Join() {
  std::string path = "/tmp/rankrun-c-api-fuzz." + std::to_string(getpid());
  std::string method = "file://" + path;
  rankrun_init_options options;
  options.size = sizeof options;
  rankrun_init_options_default(&options);
  options.rank = 0;
  options.world_size = 1;
  options.backend = "shm";
  options.init_method = method.c_str();
  bool has_joined = rankrun_init(&options) == RANKRUN_OK;
  unlink(path.c_str());
  return has_joined;
}

struct Calls {
  rankrun_tensor Tensor() {
    memory.emplace_back(kMaxCount * kMaxElementBytes);
    return {.data = choices.ConsumeIntegralInRange(0, 9) == 0 ? nullptr : memory.back().data(),
            .count = choices.ConsumeIntegralInRange<size_t>(0, kMaxCount),
            .row = choices.ConsumeIntegralInRange<size_t>(0, kMaxCount + 1),
            .device_index = choices.ConsumeIntegralInRange(-1, 2),
            .dtype = choices.ConsumeIntegralInRange<uint8_t>(0, 20),
            .device_type = choices.ConsumeIntegralInRange<uint8_t>(0, 3),
            .reserved = static_cast<uint16_t>(choices.ConsumeIntegralInRange(0, 9) == 0)};
  }
  rankrun_status Call() {
    rankrun_tensor one = Tensor(), other = Tensor();
    rankrun_tensor list[] = {Tensor(), Tensor()};
    rankrun_reduce_op op{.factor = choices.ConsumeFloatingPoint<double>(),
                         .kind = choices.ConsumeIntegralInRange<uint8_t>(0, 12)};
    auto lists = choices.ConsumeIntegralInRange<size_t>(0, 2);
    int root = choices.ConsumeIntegralInRange(-2, 2);
    int64_t timeout = choices.ConsumeBool() ? RANKRUN_DEFAULT_TIMEOUT
                                            : choices.ConsumeIntegralInRange<int64_t>(-3, 20);
    size_t splits[] = {choices.ConsumeIntegralInRange<size_t>(0, kMaxCount + 1)};
    switch (choices.ConsumeIntegralInRange(0, 12)) {
      case 0:
        return rankrun_all_reduce(nullptr, &one, &op, timeout, &work);
      case 1:
        return rankrun_reduce(nullptr, &one, root, &op, timeout, &work);
      case 2:
        return rankrun_broadcast(nullptr, &one, root, timeout, &work);
      case 3:
        return rankrun_all_gather(nullptr, list, lists, &one, timeout, &work);
      case 4:
        return rankrun_all_gather_into(nullptr, &one, &other, timeout, &work);
      case 5:
        return rankrun_gather(nullptr, list, lists, &one, root, timeout, &work);
      case 6:
        return rankrun_scatter(nullptr, &one, list, lists, root, timeout, &work);
      case 7:
        return rankrun_reduce_scatter(nullptr, &one, list, lists, &op, timeout, &work);
      case 8:
        return rankrun_reduce_scatter_from(nullptr, &one, &other, &op, timeout, &work);
      case 9:
        return rankrun_all_to_all(nullptr, list, lists, list, lists, timeout, &work);
      case 10:
        return rankrun_all_to_all_single(nullptr, &one, &other, splits, 1, splits, lists & 1,
                                         timeout, &work);
      case 11:
        return rankrun_barrier(nullptr, timeout, &work);
      default:
        return rankrun_monitored_barrier(nullptr, choices.ConsumeIntegral<int>(), timeout);
    }
  }

  FuzzedDataProvider choices;
  std::vector<std::vector<char>> memory = {};
  rankrun_work* work = nullptr;
};

}  // namespace

std::string CheckInput(std::string_view input) {
  static const bool has_joined = Join();
  if (!has_joined) return std::string("no world: ") + rankrun_last_error();
  Calls calls{.choices = {reinterpret_cast<const uint8_t*>(input.data()), input.size()}};
  calls.memory.reserve(kMaxCount);
  rankrun_status status = calls.Call();
  if (calls.work != nullptr && rankrun_work_wait(calls.work) == RANKRUN_INTERNAL) {
    return std::string("internal error: ") + rankrun_last_error();
  }
  rankrun_work_release(calls.work);
  if (status == RANKRUN_INTERNAL) return std::string("internal error: ") + rankrun_last_error();
  if (rankrun_group_state(nullptr) != RANKRUN_OK) {
    return std::string("a refused call broke the world: ") + rankrun_last_error();
  }
  return "";
}

}  // namespace rankrun::test
