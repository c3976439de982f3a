#include "launcher/plan/observer_settings.h"

#include <unistd.h>

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

std::string Shown(std::string_view text) {
  auto address = ParseMetricsAddress(text);
  if (!address) return address.error().message;
  if (!address->path.empty()) return "unix " + address->path;
  return address->host + " " + std::to_string(address->port);
}

TEST(MetricsAddressTest, APortIsOnLoopback) {
  EXPECT_EQ(Shown("9400"), "127.0.0.1 9400");
  EXPECT_EQ(Shown("0"), "127.0.0.1 0");
}

TEST(MetricsAddressTest, AHostMayBeChosen) {
  EXPECT_EQ(Shown("0.0.0.0:9400"), "0.0.0.0 9400");
  EXPECT_EQ(Shown("[::1]:9400"), "::1 9400");
  EXPECT_EQ(Shown("node-1:9400"), "node-1 9400");
}

TEST(MetricsAddressTest, AUnixSocketHasAPath) {
  EXPECT_EQ(Shown("unix:/run/a.sock"), "unix /run/a.sock");
  EXPECT_EQ(Shown("unix:a"), "unix a");
}

TEST(MetricsAddressTest, OtherTextsAreRefused) {
  for (const char* text :
       {"", "65536", "-1", "host", "host:", ":9400", "host:99999", "unix:", "9400 "}) {
    EXPECT_EQ(Shown(text), "want a port from 0 to 65535, HOST:PORT or unix:PATH, got \"" +
                               std::string(text) + "\"");
  }
}

agent::JobSpec Read(const Words& flags, const Variables& variables) {
  agent::JobSpec spec;
  auto read = ReadObservers(SettingsOf(flags), EnvironmentOf(variables), spec);
  EXPECT_TRUE(read);
  return spec;
}

TEST(ReportFolderSettingTest, TheDefaultIsTheUsersStateFolder) {
  EXPECT_EQ(Read({}, {{"HOME", "/home/a"}}).report_folder, "/home/a/.local/state/rankrun/reports");
  EXPECT_EQ(Read({}, {{"HOME", "/home/a"}, {"XDG_STATE_HOME", "/s"}}).report_folder,
            "/s/rankrun/reports");
  EXPECT_EQ(Read({}, {{"XDG_STATE_HOME", "relative"}, {"HOME", "/h"}}).report_folder,
            "/h/.local/state/rankrun/reports");
  EXPECT_EQ(Read({}, {}).report_folder, "");
  EXPECT_EQ(Read({}, {{"HOME", "nowhere"}}).report_folder, "");
  EXPECT_FALSE(Read({}, {{"HOME", "/h"}}).report_folder_typed);
}

TEST(ReportFolderSettingTest, AFolderMayBeTyped) {
  agent::JobSpec spec = Read({"--report-dir=/r"}, {{"HOME", "/h"}});
  EXPECT_EQ(spec.report_folder, "/r");
  EXPECT_TRUE(spec.report_folder_typed);
  EXPECT_EQ(Read({"--report-dir=/dev/null"}, {{"HOME", "/h"}}).report_folder, "");
}

}  // namespace
}  // namespace rankrun::launcher
