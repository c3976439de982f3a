#include "bench/rankrun_bench/flags.h"

#include "launcher/flags/man_page.h"

namespace rankrun::bench {
namespace {

using launcher::Flag;
using enum launcher::FlagValue;

constexpr int kMaxSizeG = 1 << 20;  // 1 PiB

constexpr Flag kFlags[] = {
    {.name = "min-bytes",
     .letter = 'b',
     .value = kSize,
     .most = kMaxSizeG,
     .value_name = "SIZE",
     .default_value = "8",
     .help = "Smallest size.",
     .details = "A _SIZE_ is a number of bytes, or of units of 1024: `512`, `8K`, `64M`, `1G`, "
                "`2T`."},
    {.name = "max-bytes",
     .letter = 'e',
     .value = kSize,
     .most = kMaxSizeG,
     .value_name = "SIZE",
     .default_value = "256M",
     .help = "Largest size.",
     .details = "With `--tune`, the default is 8M."},
    {.name = "factor",
     .letter = 'f',
     .value = kCount,
     .least = 2,
     .most = 1 << 20,
     .value_name = "N",
     .default_value = "2",
     .help = "Factor from one size to the next, at least 2."},
    {.name = "dtype",
     .letter = 'd',
     .value = kChoice,
     .choices = "float32|float64|float16|bfloat16|int8|int16|int32|int64|uint8|uint16|uint32|"
                "uint64|bool|complex64|complex128|float8_e4m3|float8_e5m2|half|float|double",
     .value_name = "TYPE",
     .default_value = "`float32`",
     .help = "Type of the elements: float32, float64, float16, bfloat16, int8 to int64, uint8 to "
             "uint64, bool, complex64, complex128, float8_e4m3 or float8_e5m2.",
     .details =
         "The last two cannot be reduced. `half`, `float` and `double`, names of nccl-tests, "
         "mean float16, float32 and float64."},
    {.name = "op",
     .letter = 'o',
     .value = kChoice,
     .choices = "sum|avg|product|min|max|bit_and|bit_or|bit_xor|prod",
     .value_name = "OP",
     .default_value = "`sum`",
     .help = "Reduction of all_reduce and reduce_scatter: sum, avg, product, min, max, bit_and, "
             "bit_or or bit_xor.",
     .details = "Integers have all of them, bool all except avg, floating point all except the "
                "last three, complex numbers sum and avg. `prod` means product."},
    {.name = "root",
     .letter = 'r',
     .value = kCount,
     .most = 1'000'000,
     .value_name = "RANK",
     .default_value = "0",
     .help = "Rank whose data broadcast sends."},
    {.name = "backend",
     .value = kText,
     .value_name = "NAME",
     .default_value = "the library's choice",
     .help = "Backend, such as `shm` or `tcp`."},
    {.name = "warmup",
     .letter = 'w',
     .value = kCount,
     .most = 1'000'000,
     .value_name = "N",
     .default_value = "5",
     .help = "Number of calls before the first measured one."},
    {.name = "iters",
     .letter = 'n',
     .value = kCount,
     .most = 1'000'000'000,
     .value_name = "N",
     .default_value = "0",
     .help = "Number of calls in a batch; 0: as many as take about 20 ms."},
    {.name = "batches",
     .value = kCount,
     .least = 1,
     .most = 1'000'000,
     .value_name = "N",
     .default_value = "5",
     .help = "Number of batches; the median of their times is printed."},
    {.name = "time-limit",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "10",
     .help = "Start no further batch of a size after this time."},
    {.name = "json",
     .help = "Print one JSON object per line instead of a table.",
     .details = "Its keys are collective, backend, ranks, bytes, count, type, redop, root, us, "
                "algbw, busbw, wrong, calls (of a batch) and batches. For a program that reads "
                "them, start rankrun with `--prefix none`; otherwise rankrun puts the rank before "
                "each line."},
    {.name = "tune",
     .help = "Measure each algorithm of tcp for all_reduce, all_gather, broadcast and all_to_all, "
             "and print the value of RANKRUN_ALGORITHMS that chooses the fastest at each size.",
     .details = "It holds for this number of ranks on these hosts. With `--json`, the last line "
                "has the key algorithms."},
    {.name = "version", .help = "Print the version and exit."},
    {.name = "help", .letter = 'h', .help = "Print a summary of the flags and exit."},
};

}  // namespace

launcher::FlagTable BenchFlags() { return {.command = "rankrun-bench", .flags = kFlags}; }

std::string BenchManPart() {
  return launcher::GeneratedPart("bench/rankrun_bench/flags.cc",
                                 launcher::ManEntries(BenchFlags()));
}

}  // namespace rankrun::bench
