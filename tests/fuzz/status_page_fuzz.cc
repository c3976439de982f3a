// A worker's status page, which its agent reads while the worker may write anything.
// The first two bytes of the input are the place of the rest, on the page and in the flight
// recorder.

#include <sys/mman.h>

#include <cstring>

#include "base/status/activity.h"
#include "base/status/flight_reader.h"
#include "base/status/status_page.h"
#include "tests/fuzz/check_input.h"

namespace rankrun::test {
namespace {

constexpr size_t kBytesPerCharacter = 4;  // UTF-8, or "\\x1b" for what would control a terminal

}  // namespace

std::string CheckInput(std::string_view input) {
  static const StatusPage page = *StatusPage::Create();
  static char* const bytes = static_cast<char*>(
      mmap(nullptr, kStatusPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page.fd(), 0));
  if (bytes == MAP_FAILED || input.size() < 2) return "";
  uint16_t place;
  std::memcpy(&place, input.data(), sizeof place);
  input.remove_prefix(sizeof place);
  static const std::string fresh(bytes, kStatusPageBytes);
  std::memcpy(bytes, fresh.data(), kStatusPageBytes);
  size_t size = std::min(input.size(), kStatusPageBytes - place);
  std::memcpy(bytes + place, input.data(), size);
  static char* const flight = reinterpret_cast<char*>(page.flight_groups());
  if (flight == nullptr) return "";
  std::memset(flight, 0, kStatusPageBytes);
  std::memcpy(flight + place, input.data(), size);
  for (const GroupActivity& group : ReadGroups(page)) {
    if (group.name.size() > kBytesPerCharacter * kGroupNameBytes) return "a name is too long";
  }
  for (const FlightHistory& history : ReadFlightHistories(page)) {
    if (history.group.size() > kBytesPerCharacter * kGroupNameBytes) return "a name is too long";
    for (const FlightOperation& operation : history.operations) {
      if (DescribeOperation(operation.what).size() > 200) return "an operation is too long";
    }
  }
  if (ReadActivity(page).what.size() > 1000) return "an activity is too long";
  if (page.PeerDeathMessage().size() > kBytesPerCharacter * kPeerDeathBytes)
    return "a message is too long";
  (void)page.saving();
  return "";
}

}  // namespace rankrun::test
