// A stream of bytes from a bus: split anywhere, it gives the same messages, and what could be read
// can be written and read again.
#include <cstddef>
#include <cstdint>

#include "base/result/check.h"
#include "node/shutdown/dbus_message.h"

namespace {

using drakkar::node::DbusMessage;

std::vector<DbusMessage> ReadAll(std::string_view first, std::string_view second) {
  drakkar::node::DbusReader reader;
  std::vector<DbusMessage> messages;
  for (const std::string_view part : {first, second}) {
    reader.Feed(part);
    while (true) {
      auto message = reader.Next();
      if (!message.ok()) return messages;
      if (!*message) break;
      messages.push_back(**std::move(message));
    }
  }
  return messages;
}

}  // namespace

// The first byte chooses where to split.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::node;
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = text.size() * data[0] / 256;
  const auto messages = ReadAll(text, "");
  CHECK(messages == ReadAll(text.substr(0, cut), text.substr(cut)));
  for (const DbusMessage& message : messages) {
    static_cast<void>(DbusBool(message).ok());
    static_cast<void>(DbusVariantNumber(message).ok());
    static_cast<void>(DbusText(message));
    CHECK(ReadAll(EncodeDbus(message), "") == std::vector{message});
  }
  return 0;
}
