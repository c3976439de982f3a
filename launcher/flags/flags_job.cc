#include "launcher/flags/flag_groups.h"

namespace rankrun::launcher {
namespace {

using enum FlagValue;
using enum FlagSources;

constexpr std::string_view kWorkers = "Workers";
constexpr std::string_view kProgram = "Program";

constexpr Flag kFlags[] = {
    {.name = "nproc-per-node",
     .letter = 'n',
     .value = kText,
     .choices = "auto|cpu|gpu",
     .value_name = "N|auto|cpu|gpu",
     .default_value = "the number of visible GPUs, or 1 if there are none",
     .help = "Start this many workers on this node: a number, `gpu` (one per GPU), `cpu` (one per "
             "usable CPU), or `auto` (as `gpu` if there are GPUs, else as `cpu`).",
     .details =
         "Usable CPUs are those in the affinity mask of rankrun, but no more than the CPU limit of "
         "its container. With `--gpus`, only the GPUs of that list count. GPUs are those of "
         "NVIDIA, AMD and Intel, and Ascend NPUs. If rankrun finds none, `gpu` and `auto` ask the "
         "PyTorch of the workers' Python for other accelerators. A type of PyTorch, such as `xpu` "
         "or `npu`, counts devices of that type only. Started as `torchrun`, the default is 1.",
     .group = kWorkers,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "gpus",
     .value = kText,
     .value_name = "LIST",
     .help = "Give the workers these GPUs: names as in CUDA_VISIBLE_DEVICES, separated by commas, "
             "such as `2,4,7`.",
     .details = "The variable of another maker takes its place, such as HIP_VISIBLE_DEVICES.",
     .group = kWorkers,
     .sources = kOurs},
    {.name = "virtual-local-rank",
     .help = "Let each worker see only its own GPU, and set LOCAL_RANK=0.",
     .details = "It is chosen by CUDA_VISIBLE_DEVICES, or by the variable that another maker has: "
                "HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, ZE_AFFINITY_MASK, "
                "ONEAPI_DEVICE_SELECTOR or ASCEND_RT_VISIBLE_DEVICES.",
     .group = kWorkers,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "bind",
     .value = kChoice,
     .choices = "none|core|numa|socket",
     .value_name = "none|core|numa|socket",
     .default_value = "`none`",
     .help = "Bind each worker to CPUs near its GPU: to whole cores of its own, to a NUMA node, or "
             "to a socket.",
     .details = "Only CPUs that rankrun itself may use are given to workers.",
     .group = kWorkers,
     .sources = kOurs},
    {.name = "numa-binding",
     .value = kChoice,
     .choices = "node|socket|exclusive|core-complex",
     .value_name = "node|socket|exclusive|core-complex",
     .help = "torchrun's form of `--bind`: `node` is `--bind numa`; `exclusive` gives each worker "
             "its own part of the cores of a NUMA node, `core-complex` the cores under one "
             "last-level cache.",
     .details = "It is refused together with a `--bind` that has another meaning.",
     .group = kWorkers,
     .from_torchrun = true,
     .sources = kOurs},
    {.name = "env",
     .letter = 'x',
     .value = kText,
     .value_name = "NAME[=VALUE]",
     .help = "Set a variable for the workers; _NAME_ alone passes on the value that rankrun has. "
             "May be given several times.",
     .details = "_NAME_ alone is refused if the variable is not set. Variables that rankrun itself "
                "sets for each worker take precedence.",
     .group = kWorkers,
     .sources = kOurs,
     .repeats = true},
    {.name = "role",
     .value = kText,
     .value_name = "NAME",
     .default_value = "default",
     .help = "Set ROLE_NAME for the workers, and `${role_name}` in a prefix.",
     .group = kWorkers,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},

    {.name = "module",
     .letter = 'm',
     .help = "Run the program as a Python module, as `python -m` does.",
     .group = kProgram,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "no-python",
     .help = "Execute the program itself, whatever its name.",
     .group = kProgram,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "use-env",
     .help = "Pass no `--local-rank` to the program, as torch.distributed.launch does.",
     .details = "Only by the name `rankrun-launch`, which otherwise inserts `--local-rank=`_N_ "
                "before the arguments of the program.",
     .group = kProgram,
     .sources = kOurs},
    {.name = "run-path",
     .help = "Run the program under Python, whatever its name and permissions.",
     .details = "Overrides `--no-python` and `--module`.",
     .group = kProgram,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "preload",
     .value = kText,
     .value_name = "MODULE,...|auto",
     .help = "Import these Python modules once per node, and fork each worker from there. `auto`: "
             "PyTorch, if the script imports it.",
     .details =
         "A restarted program then needs not import them again. A fork gets the environment, "
         "limits, cores and descriptors that an executed worker gets. Where modules leave "
         "threads, sockets or devices behind, so that a fork is not safe, rankrun says which "
         "one does, and executes the workers. Modules whose files change are imported again "
         "at the next attempt.",
     .group = kProgram,
     .sources = kOurs},
    {.name = "chdir",
     .value = kFolder,
     .value_name = "FOLDER",
     .help = "Change to this folder before looking up anything else, as `env -C` does.",
     .group = kProgram,
     .sources = kOurs},
    {.name = "start-method",
     .value = kChoice,
     .choices = "spawn|fork|forkserver",
     .value_name = "spawn|fork|forkserver",
     .default_value = "`spawn`",
     .help = "No effect: workers are executed, or with `--preload` forked.",
     .group = kProgram,
     .from_torchrun = true,
     .sources = kPet},
};

}  // namespace

std::span<const Flag> JobFlags() { return kFlags; }

}  // namespace rankrun::launcher
