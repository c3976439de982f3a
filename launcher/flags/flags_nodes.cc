#include "launcher/flags/flag_groups.h"
#include "store/server/server.h"

namespace rankrun::launcher {
namespace {

using enum FlagValue;
using enum FlagSources;

constexpr std::string_view kNodes = "Several nodes";
constexpr std::string_view kRendezvous = "Rendezvous";

constexpr int kMaxNodes = 1'000'000;
constexpr int kMaxFailures = 1'000'000;

constexpr Flag kFlags[] = {
    {.name = "nnodes",
     .value = kText,
     .value_name = "N|MIN:MAX",
     .default_value = "1",
     .help = "Number of nodes of the job; start the same command on each. With _MIN_:_MAX_, the "
             "job starts with _MIN_ nodes and continues while _MIN_ are left.",
     .details = "Once _MIN_ nodes are present, the job waits for `--last-call` before it starts. "
                "Nodes may join at any time until there are _MAX_; further nodes are spares. With "
                "`--rdzv-backend static`, the job needs _MAX_ nodes, as with torchrun. See SEVERAL "
                "NODES.",
     .group = kNodes,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "node-rank",
     .value = kCount,
     .most = kMaxNodes,
     .value_name = "N",
     .default_value = "0",
     .help = "Rank of this node. With `--rdzv-backend static`, each node needs its own; with c10d, "
             "it is optional.",
     .details = "With static, the nodes meet at the node of rank 0. With c10d, no two nodes may "
                "claim the same rank. A job of one node accepts only 0.",
     .group = kNodes,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "spares",
     .value = kCount,
     .most = kMaxNodes,
     .value_name = "N",
     .default_value = "0",
     .help = "Number of nodes that wait as spares until another node is lost or fails again.",
     .details = "This lowers _MAX_ of `--nnodes` by _N_, and also _MIN_ if `--nnodes` is a single "
                "number.",
     .group = kNodes,
     .sources = kOurs},
    {.name = "replace-after",
     .value = kCount,
     .most = kMaxFailures,
     .value_name = "N",
     .default_value = "2",
     .help = "Let a node change places with an idle spare after _N_ failures in a row; 0: never.",
     .details = "Failures on one node are in a row until another node fails, whatever time has "
                "passed. The change costs no restart of its own. The replaced node waits as a "
                "spare, and takes part again only when no other spare is left. Without an idle "
                "spare, nothing changes. The setting of the coordinator's node counts.",
     .group = kNodes,
     .sources = kOurs},
    {.name = "node-timeout",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "10",
     .help = "Treat a node as lost after it has been silent for this long.",
     .details = "A node is lost at once if its rankrun was killed while its host lives, unless a "
                "firewall hides that. It is lost, too, if one of its processes still exists this "
                "long after its SIGKILL. The other nodes then continue without it, and it may join "
                "again when that process is gone.",
     .group = kNodes,
     .sources = kOurs},
    {.name = "last-call",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "30",
     .help = "Wait this long for more nodes once _MIN_ nodes are present.",
     .details = "No effect with `--rdzv-backend static`, which waits for all nodes.",
     .group = kNodes,
     .sources = kOurs},
    {.name = "on-lost-node",
     .value = kChoice,
     .choices = "restart|stop",
     .value_name = "restart|stop",
     .default_value = "`restart`",
     .help = "When a node is lost, restart the workers on the other nodes, or stop the job.",
     .group = kNodes,
     .sources = kOurs},
    {.name = "finish-timeout",
     .value = kSeconds,
     .value_name = "SECONDS",
     .default_value = "3600",
     .help = "Wait this long for the workers of all nodes after those of the first node have "
             "finished.",
     .details =
         "Then the job fails. rankrun blames a worker that others are seen to wait for, "
         "even if it has finished; if no such wait is visible, it names the finished workers "
         "and the running ones. In a job of one node the time begins when the "
         "first worker has finished, and there is no default.",
     .group = kNodes,
     .sources = kOurs},
    {.name = "secret-file",
     .value = kFile,
     .value_name = "FILE",
     .default_value = "RANKRUN_SECRET, else the user's own secret",
     .help = "Admit only nodes that have the secret in this file.",
     .details = "The secret is at least 16 bytes of any kind; line ends at the end of the file do "
                "not count. Only the owner should be able to read the file. Without this flag, "
                "the variable RANKRUN_SECRET is the secret itself. See SECRETS for the defaults. "
                "rankrun does not pass the secret to workers and never shows it.",
     .group = kNodes,
     .sources = kOurs},
    {.name = "insecure",
     .help = "Admit nodes without a secret.",
     .details = "Any program that can connect to the port of the job can then join it, stop it, or "
                "change the data that its workers exchange. This is the default by the name "
                "torchrun.",
     .group = kNodes,
     .sources = kOurs},

    {.name = "standalone",
     .help = "Run on this node alone, without a fixed port, whatever the other settings of the "
             "rendezvous.",
     .details = "Overrides `--rdzv-backend`, `--rdzv-endpoint`, `--rdzv-id`, `--master-addr`, "
                "`--master-port` and `--node-rank`.",
     .group = kRendezvous,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "master-addr",
     .value = kText,
     .value_name = "ADDRESS",
     .default_value = "127.0.0.1",
     .help = "Set MASTER_ADDR for the workers; the store listens at this address and at loopback.",
     .details = "With `--rdzv-backend static`, this is the address of the node of rank 0, where "
                "all nodes meet. It is a name or an address without a port; an IPv6 address may "
                "have brackets.",
     .group = kRendezvous,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "master-port",
     .value = kPort,
     .value_name = "PORT",
     .default_value = "a free port for each attempt; 29500 for several nodes",
     .help = "Set MASTER_PORT for the workers; it stays the same over restarts.",
     .details = "0 is any free port. A job of several nodes refuses 0, because its nodes could not "
                "find such a port.",
     .group = kRendezvous,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "local-addr",
     .value = kText,
     .value_name = "ADDRESS",
     .help = "Address at which other nodes reach this node.",
     .details = "Without it, they use the address that this node's connection came from. For a job "
                "of one node, this is the same as `--master-addr`, which takes precedence.",
     .group = kRendezvous,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "rdzv-backend",
     .value = kText,
     .choices = "static|c10d",
     .value_name = "static|c10d",
     .default_value = "`static`",
     .help = "How nodes find each other: `static` at the master, each with its `--node-rank`; "
             "`c10d` at `--rdzv-endpoint`, in any order and number.",
     .details = "With c10d, `--master-addr` and `--master-port` have no effect, because the store "
                "of each attempt is on the node of rank 0. The backends etcd and etcd-v2 are not "
                "supported yet, and those of Python packages cannot be loaded.",
     .group = kRendezvous,
     .from_torchrun = true,
     .sources = kPet},
    {.name = "rdzv-endpoint",
     .value = kText,
     .value_name = "HOST[:PORT],...",
     .help = "Host at which the nodes meet, or several addresses of that host. With `static`, this "
             "is the address and port of the master.",
     .details = "The coordinator runs on the first host of a list. The others are further ways to "
                "reach that host, and nodes try them in turn. Write an IPv6 address in brackets. "
                "The default port is 29400. With c10d and without an endpoint, the nodes meet at "
                "localhost. With static, an endpoint overrides `--master-addr` and "
                "`--master-port`; it must be a single one, with a port.",
     .group = kRendezvous,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "rdzv-id",
     .value = kText,
     .value_name = "NAME",
     .default_value = "a random UUID; \"none\" for several nodes",
     .help = "Name of the job, the same on all nodes; it becomes TORCHELASTIC_RUN_ID and begins "
             "the name of the log folder.",
     .details = "It must not contain a slash.",
     .group = kRendezvous,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "rdzv-conf",
     .value = kText,
     .value_name = "KEY=VALUE,...",
     .help = "Set keys of torchrun's rendezvous: `join_timeout`, `last_call_timeout`, `is_host` "
             "and others. No effect on a job of one node.",
     .details =
         "The keys are:"
         "\n\n`join_timeout` (with static `timeout`): seconds that the nodes have to meet. "
         "Default: 600 (with static 900)."
         "\n\n`last_call_timeout`: as `--last-call`."
         "\n\n`keep_alive_interval`, `keep_alive_max_attempt`: if either is set, their "
         "product is as `--node-timeout`. Defaults: 5 and 3."
         "\n\n`is_host` (c10d only): whether this node runs the coordinator. It is needed where "
         "the endpoint is no node's own address."
         "\n\n`rank` (static only): as `--node-rank`."
         "\n\n`store_type` (c10d only): `tcp`. Several nodes cannot meet in a `file`."
         "\n\nA flag overrides the key of the same meaning. Other keys may have any value "
         "and have no effect; `--explain` lists them.",
     .group = kRendezvous,
     .from_torchrun = true,
     .sources = kPet,
     .may_be_empty = true},
    {.name = "store-open",
     .help = "Let other users, and hosts outside of the job, use the store.",
     .details =
         "Without this flag, the store of a job of one node admits clients from this host "
         "only, also at the address of `--master-addr`. A store admits programs on the hosts of "
         "the job if the job's user, root, or a user of the job's processes there runs them. "
         "Without a secret, it admits all users of the hosts that are not its own. "
         "The store has no passwords, so any program that reaches it can read and change "
         "it. This is the default by the name torchrun.",
     .group = kRendezvous,
     .sources = kOurs},
    {.name = "store-strict",
     .help = "Refuse nodes whose addresses are uncertain.",
     .details = "The store of a job of several nodes admits clients from the addresses of the "
                "nodes only. A node behind address translation does not know its own; the store "
                "then admits the address of the node's connection, and the coordinator prints a "
                "warning. With this flag, the coordinator refuses the node. It counts on the "
                "coordinator's node.",
     .group = kRendezvous,
     .sources = kOurs},
    {.name = "store-max-value",
     .value = kSize,
     .most = store::kMaxPieceG,
     .value_name = "SIZE",
     .default_value = "64M",
     .help = "Largest value in the job's store; at most 1G.",
     .details = "A _SIZE_ is a number of bytes, or of units of 1024, such as `512`, `8K`, `64M`, "
                "`1G` or `2T`. The store closes the connection of a client that sends a larger "
                "value.",
     .group = kRendezvous,
     .sources = kOurs},
};

}  // namespace

std::span<const Flag> NodeFlags() { return kFlags; }

}  // namespace rankrun::launcher
