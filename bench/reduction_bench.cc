// Cost of reductions, in cache and beyond, compared with a copy of the same
// size. The copy is the bound of any code that reads and writes memory once.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "comm/reduce/reduction.h"

namespace rankrun::comm {
namespace {

constexpr size_t kInCache = 16 * 1024;
constexpr size_t kBeyond = 64 * 1024 * 1024;

struct Setting {
  DType dtype;
  ReduceOp::Kind op;
  int inputs;
  int divisor = 1;
};

// Counts the bytes read and written.
void Account(benchmark::State& state, size_t bytes, int streams) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * streams *
                          static_cast<int64_t>(bytes));
}

void RunReduce(benchmark::State& state, const Setting& setting, size_t bytes) {
  auto streams = static_cast<size_t>(setting.inputs);
  std::vector<std::vector<std::byte>> memory(streams + 1, std::vector<std::byte>(bytes));
  std::vector<const void*> inputs;
  for (size_t i = 0; i < streams; ++i) inputs.push_back(memory[i].data());
  Reduction reduction{.dtype = setting.dtype, .op = setting.op, .divisor = setting.divisor};
  for (auto _ : state) {
    Reduce(reduction, memory[streams].data(), inputs, bytes / SizeOf(setting.dtype));
    benchmark::ClobberMemory();
  }
  Account(state, bytes, setting.inputs + 1);
}

void RunCopy(benchmark::State& state, size_t bytes) {
  std::vector<std::byte> from(bytes);
  std::vector<std::byte> to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  Account(state, bytes, 2);
}

std::string NameOfSetting(const Setting& setting) {
  return std::string(NameOf(setting.dtype)) + "/op:" + std::to_string(setting.op) +
         "/inputs:" + std::to_string(setting.inputs) + (setting.divisor == 1 ? "" : "/divided");
}

void RegisterAll() {
  const Setting settings[] = {
      {DType::kFloat32, ReduceOp::kSum, 2},  {DType::kFloat32, ReduceOp::kSum, 3},
      {DType::kFloat32, ReduceOp::kSum, 8},  {DType::kFloat32, ReduceOp::kSum, 2, 2},
      {DType::kFloat32, ReduceOp::kMax, 2},  {DType::kFloat64, ReduceOp::kSum, 2},
      {DType::kFloat16, ReduceOp::kSum, 2},  {DType::kFloat16, ReduceOp::kSum, 4},
      {DType::kBFloat16, ReduceOp::kSum, 2}, {DType::kBFloat16, ReduceOp::kSum, 4},
      {DType::kInt8, ReduceOp::kProduct, 2}, {DType::kInt8, ReduceOp::kSum, 2},
      {DType::kInt32, ReduceOp::kSum, 2},    {DType::kInt64, ReduceOp::kMin, 2},
      {DType::kInt32, ReduceOp::kSum, 2, 3}, {DType::kUInt8, ReduceOp::kMax, 2},
  };
  for (size_t bytes : {kInCache, kBeyond}) {
    std::string end = bytes == kInCache ? "/16KiB" : "/64MiB";
    benchmark::RegisterBenchmark(("copy" + end).c_str(),
                                 [bytes](benchmark::State& state) { RunCopy(state, bytes); });
    for (const Setting& setting : settings) {
      benchmark::RegisterBenchmark(
          (NameOfSetting(setting) + end).c_str(),
          [setting, bytes](benchmark::State& state) { RunReduce(state, setting, bytes); });
    }
  }
}

}  // namespace
}  // namespace rankrun::comm

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  rankrun::comm::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
}
