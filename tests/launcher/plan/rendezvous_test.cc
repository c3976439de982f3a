#include "launcher/plan/rendezvous.h"

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

Rendezvous Read(const Words& flags, const Variables& variables = {}) {
  auto rendezvous = ReadRendezvous(SettingsOf(flags, variables));
  EXPECT_TRUE(rendezvous) << rendezvous.error().message;
  return rendezvous ? *rendezvous : Rendezvous{};
}

std::string ErrorOf(const Words& flags, const Variables& variables = {}) {
  auto rendezvous = ReadRendezvous(SettingsOf(flags, variables));
  if (rendezvous) return "accepted";
  EXPECT_EQ(rendezvous.error().code, ErrorCode::kInvalid);
  return rendezvous.error().message;
}

std::vector<std::string> Ignored(const Words& flags) {
  std::vector<std::string> notes;
  for (const Note& note : Read(flags).ignored) notes.push_back(note.what + ": " + note.why);
  return notes;
}

using Notes = std::vector<std::string>;

TEST(RendezvousTest, NothingGivenIsNothingChosen) {
  Rendezvous rendezvous = Read({});
  EXPECT_EQ(rendezvous.address, std::nullopt);
  EXPECT_EQ(rendezvous.port, std::nullopt);
  EXPECT_EQ(rendezvous.run_id, "");
  EXPECT_TRUE(rendezvous.ignored.empty());
}

TEST(RendezvousTest, TheOnlyNodeHasRankZero) {
  EXPECT_EQ(ErrorOf({"--node-rank=0"}), "accepted");
  EXPECT_EQ(ErrorOf({"--node-rank=1"}),
            "--node-rank: a job of one node has node rank 0 only, got \"1\"");
  EXPECT_EQ(Ignored({"--node-rank=1", "--standalone"}),
            Notes{"--node-rank 1: overridden by --standalone"});
}

TEST(RendezvousTest, BackendsAreTorchruns) {
  for (const char* good : {"static", "c10d"}) {
    EXPECT_EQ(ErrorOf({"--rdzv-backend", good}), "accepted");
  }
  for (std::string nodes : {"etcd", "etcd-v2"}) {
    EXPECT_EQ(ErrorOf({"--rdzv-backend", nodes}),
              "--rdzv-backend: " + nodes + " is not supported yet; want static or c10d");
    EXPECT_EQ(Ignored({"--standalone", "--rdzv-backend", nodes}),
              Notes{"--rdzv-backend " + nodes + ": overridden by --standalone"});
  }
  EXPECT_EQ(ErrorOf({"--rdzv-backend=c10"}),
            "--rdzv-backend: want static or c10d, got \"c10\"; did you mean c10d?");
  EXPECT_EQ(ErrorOf({"--rdzv-backend=zookeeper", "--standalone"}),
            "--rdzv-backend: want static or c10d, got \"zookeeper\"; rankrun cannot load a backend "
            "of a Python package");
  EXPECT_EQ(ErrorOf({}, {{"PET_RDZV_BACKEND", "my_cloud.rdzv"}}),
            "PET_RDZV_BACKEND: want static or c10d, got \"my_cloud.rdzv\"; rankrun cannot load a "
            "backend of a Python package");
}

TEST(RendezvousTest, AStaticEndpointIsTheMaster) {
  struct Row {
    const char* endpoint;
    const char* host;
    std::optional<uint16_t> port;
  };
  for (const Row& row :
       {Row{"host:29400", "host", 29400}, Row{"10.0.0.1:1", "10.0.0.1", 1},
        Row{"[::1]:65535", "::1", 65535}, Row{"fe80::1:80", "fe80::1", 80},
        Row{"a_b.c-d:80", "a_b.c-d", 80}, Row{"localhost:0", "localhost", std::nullopt}}) {
    Rendezvous rendezvous = Read({"--rdzv-endpoint", row.endpoint});
    EXPECT_EQ(rendezvous.address, row.host);
    EXPECT_EQ(rendezvous.port, row.port);
  }
  Words flags = {"--rdzv-endpoint=h:1", "--master-addr=x", "--master-port=2", "--local-addr=y"};
  EXPECT_EQ(Read(flags).address, "h");
  EXPECT_EQ(Read(flags).port, 1);
  EXPECT_EQ(Ignored(flags), (Notes{"--master-addr x: overridden by --rdzv-endpoint",
                                   "--master-port 2: overridden by --rdzv-endpoint",
                                   "--local-addr y: overridden by --rdzv-endpoint"}));
}

TEST(RendezvousTest, AStaticEndpointNeedsAPort) {
  EXPECT_EQ(ErrorOf({"--rdzv-endpoint=host"}),
            "--rdzv-endpoint: the port is missing, want HOST:PORT, got \"host\"");
  EXPECT_EQ(ErrorOf({"--rdzv-endpoint=[::1]"}),
            "--rdzv-endpoint: the port is missing, want HOST:PORT, got \"[::1]\"");
}

TEST(RendezvousTest, AnEndpointHasItsForm) {
  for (const char* bad :
       {":29400", "[::1", "[]:1", "ho st:1", "http://h:1", "::1", "::x", "h,i:1"}) {
    EXPECT_NE(ErrorOf({"--rdzv-endpoint", bad}), "accepted") << bad;
  }
  EXPECT_EQ(ErrorOf({"--rdzv-endpoint=:1"}),
            "--rdzv-endpoint: want HOST, HOST:PORT or [IPV6]:PORT, got \":1\"");
  for (const char* bad : {"h:", "h:65536", "h:-1", "h:x"}) {
    EXPECT_EQ(ErrorOf({"--rdzv-endpoint", bad}),
              std::string("--rdzv-endpoint: want a port number from 0 to 65535 after the colon, "
                          "got \"") +
                  bad + '"');
  }
  EXPECT_NE(ErrorOf({"--rdzv-backend=c10d", "--rdzv-endpoint=[::1"}), "accepted");
}

TEST(RendezvousTest, TheDynamicBackendNeedsNoEndpointOnOneNode) {
  for (const char* endpoint : {"host", "host:29400"}) {
    Rendezvous rendezvous = Read({"--rdzv-backend=c10d", "--rdzv-endpoint", endpoint});
    EXPECT_EQ(rendezvous.address, std::nullopt);
    EXPECT_EQ(rendezvous.port, std::nullopt);
    EXPECT_EQ(rendezvous.ignored, std::vector<Note>({{std::string("--rdzv-endpoint ") + endpoint,
                                                      "a job of one node needs no endpoint"}}));
  }
  EXPECT_EQ(Ignored({"--rdzv-backend=c10d", "--master-port=29500"}),
            Notes{"--master-port 29500: only --rdzv-backend static uses it"});
}

TEST(RendezvousTest, OneNodeNeedsNoFileToMeetIn) {
  Words flags = {"--rdzv-backend=c10d", "--rdzv-endpoint=/tmp/meet here",
                 "--rdzv-conf=store_type=FILE"};
  EXPECT_EQ(Ignored(flags),
            (Notes{"--rdzv-conf store_type=FILE: a job of one node waits for no other node",
                   "--rdzv-endpoint /tmp/meet here: a job of one node needs no endpoint"}));
  flags.back() = "--rdzv-conf=store_type=hash";
  EXPECT_EQ(ErrorOf(flags), "--rdzv-conf: want tcp or file for store_type, got \"hash\"");
  flags.back() = "--rdzv-conf=store_type=tcp";
  EXPECT_EQ(ErrorOf(flags),
            "--rdzv-endpoint: want HOST, HOST:PORT or [IPV6]:PORT, got \"/tmp/meet here\"");
}

TEST(RendezvousTest, TorchrunsDynamicBackendGivesTheHostsFullName) {
  auto address_of = [](const Words& flags, const std::string& name) {
    return ReadRendezvous(SettingsOf(flags), [&] { return name; })->address;
  };
  Words dynamic = {"--rdzv-backend=c10d"};
  EXPECT_EQ(address_of(dynamic, "n1.cluster"), "n1.cluster");
  EXPECT_EQ(address_of(dynamic, ""), std::nullopt) << "a host whose name has no address";
  EXPECT_EQ(address_of({"--rdzv-backend=c10d", "--local-addr=10.0.0.1"}, "n1.cluster"), "10.0.0.1");
  EXPECT_EQ(address_of({}, "n1.cluster"), std::nullopt) << "the backend is static";
  EXPECT_EQ(address_of({"--standalone", "--rdzv-backend=c10d"}, "n1.cluster"), std::nullopt);
  EXPECT_EQ(ReadRendezvous(SettingsOf(dynamic))->address, std::nullopt) << "by the name rankrun";
}

TEST(RendezvousTest, TypedAddressAndPortCount) {
  Rendezvous rendezvous = Read({"--master-addr=10.0.0.1", "--master-port=29500"});
  EXPECT_EQ(rendezvous.address, "10.0.0.1");
  EXPECT_EQ(rendezvous.port, 29500);
  EXPECT_EQ(Read({"--master-port=0"}).port, std::nullopt);
}

TEST(RendezvousTest, AHostHasNoPortAndNoScheme) {
  EXPECT_EQ(Read({"--master-addr=[::1]"}).address, "::1");
  EXPECT_EQ(Read({"--local-addr= [fe80::1%eth0] "}).address, "fe80::1%eth0");
  EXPECT_EQ(Read({"--master-addr="}).address, std::nullopt);
  EXPECT_EQ(ErrorOf({"--master-addr=node-1:29500"}),
            "--master-addr: want HOST or an IPv6 address without a port, got \"node-1:29500\"; "
            "the port is --master-port 29500");
  EXPECT_EQ(ErrorOf({}, {{"PET_MASTER_ADDR", "tcp://10.0.0.1:80"}}),
            "PET_MASTER_ADDR: want HOST or an IPv6 address, got \"tcp://10.0.0.1:80\"");
  EXPECT_EQ(ErrorOf({"--local-addr=10.0.0.256"}),
            "--local-addr: want HOST or an IPv6 address, got \"10.0.0.256\"");
  EXPECT_EQ(ErrorOf({"--rdzv-backend=c10d", "--master-addr=a:1"}), "accepted") << "it is not used";
}

TEST(RendezvousTest, TheLocalAddressIsTheMasterUnlessThatIsTyped) {
  EXPECT_EQ(Read({"--local-addr=10.0.0.2"}).address, "10.0.0.2");
  EXPECT_EQ(Read({"--local-addr=10.0.0.2", "--standalone"}).address, "10.0.0.2");
  EXPECT_EQ(Read({"--local-addr=a", "--master-addr=b"}).address, "b");
  EXPECT_EQ(Ignored({"--local-addr=a", "--master-addr=b"}),
            Notes{"--local-addr a: overridden by --master-addr"});
}

TEST(RendezvousTest, AddressAndPortKnowWhichSettingTheyAre) {
  Rendezvous typed = Read({"--master-port=1"}, {{"PET_MASTER_ADDR", "a"}});
  EXPECT_EQ(typed.address_origin, "PET_MASTER_ADDR");
  EXPECT_EQ(typed.port_origin, "--master-port");
  Rendezvous endpoint = Read({}, {{"PET_RDZV_ENDPOINT", "a:1"}});
  EXPECT_EQ(endpoint.address_origin, "PET_RDZV_ENDPOINT");
  EXPECT_EQ(endpoint.port_origin, "PET_RDZV_ENDPOINT");
  EXPECT_EQ(Read({"--local-addr=a"}).address_origin, "--local-addr");
}

TEST(RendezvousTest, StandaloneOverridesTheRest) {
  Words flags = {"--standalone", "--rdzv-backend=static", "--rdzv-endpoint=h:1",
                 "--rdzv-id=x",  "--master-addr=a",       "--master-port=2"};
  Rendezvous rendezvous = Read(flags);
  EXPECT_EQ(rendezvous.address, std::nullopt);
  EXPECT_EQ(rendezvous.port, std::nullopt);
  EXPECT_EQ(rendezvous.run_id, "");
  std::string by = ": overridden by --standalone";
  EXPECT_EQ(Ignored(flags),
            (Notes{"--rdzv-backend static" + by, "--rdzv-endpoint h:1" + by, "--rdzv-id x" + by,
                   "--master-addr a" + by, "--master-port 2" + by}));
}

TEST(RendezvousTest, TheNameOfTheJobIsNoPath) {
  EXPECT_EQ(Read({"--rdzv-id=job 7"}).run_id, "job 7");
  EXPECT_EQ(Read({"--rdzv-id="}).run_id, "");
  EXPECT_EQ(ErrorOf({"--rdzv-id=a/b"}),
            "--rdzv-id: want a name without \"/\", because it becomes part of a folder name, got "
            "\"a/b\"");
}

TEST(RendezvousTest, TheConfigurationIsCheckedForItsForm) {
  for (const char* good : {"", "a=b", "a=b,c=d", "a=b=c", " a = b ", "timeout=soon",
                           "'join_timeout=5,last_call_timeout=1,timeout=5'"}) {
    EXPECT_EQ(ErrorOf({"--rdzv-conf", good}), "accepted") << good;
  }
  for (const char* bad : {"=b", ",", "a=b,", "a=b,,c=d"}) {
    EXPECT_EQ(ErrorOf({"--rdzv-conf", bad}),
              std::string("--rdzv-conf: want KEY=VALUE,KEY=VALUE, got \"") + bad + '"')
        << bad;
  }
  for (const char* bad : {"a", "a=", "b=c,a", "b=c,a= ,d=e"}) {
    EXPECT_EQ(ErrorOf({"--rdzv-conf", bad}),
              std::string("--rdzv-conf: the key \"a\" has no value, got \"") + bad + '"');
  }
}

}  // namespace
}  // namespace rankrun::launcher
