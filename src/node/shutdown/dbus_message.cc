#include "node/shutdown/dbus_message.h"

#include "base/text/text.h"

namespace drakkar::node {
namespace {

enum Field : std::uint8_t {
  kPath = 1,
  kInterface = 2,
  kMember = 3,
  kErrorName = 4,
  kReplySerial = 5,
  kDestination = 6,
  kSignature = 8,
  kDescriptors = 9,
};
constexpr char kLittleEndian = 'l';
constexpr char kVersion = 1;
constexpr std::size_t kFixedHeader = 16;  // up to and with the length of the fields

class Writer {
 public:
  void Align(std::size_t to) { bytes_.resize((bytes_.size() + to - 1) / to * to, '\0'); }
  void Byte(char byte) { bytes_ += byte; }
  void Number(std::uint32_t number) {
    Align(4);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(number >> shift & 0xff);
  }
  void String(std::string_view text) {
    Number(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text).push_back('\0');
  }
  void Signature(std::string_view text) {
    Byte(static_cast<char>(text.size()));
    bytes_.append(text).push_back('\0');
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t position() const { return at_; }
  Result<void> Align(std::size_t to) { return Skip((to - at_ % to) % to); }
  Result<void> Skip(std::size_t count) {
    if (count > bytes_.size() - at_) return TooShort();
    at_ += count;
    return Ok();
  }
  Result<std::uint8_t> Byte() {
    if (at_ == bytes_.size()) return TooShort();
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  Result<std::uint64_t> Number(std::size_t size = 4) {
    RETURN_IF_ERROR(Align(size));
    if (bytes_.size() - at_ < size) return TooShort();
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < size; ++i) {
      number |= std::uint64_t{static_cast<std::uint8_t>(bytes_[at_ + i])} << 8 * i;
    }
    at_ += size;
    return number;
  }
  Result<std::string> Text(std::uint64_t length) {
    if (bytes_.size() - at_ <= length) return TooShort();
    std::string text(bytes_.substr(at_, length));
    at_ += length + 1;  // with its zero
    return text;
  }
  Result<std::string> String() {
    ASSIGN_OR_RETURN(const std::uint64_t length, Number());
    return Text(length);
  }
  Result<std::string> Signature() {
    ASSIGN_OR_RETURN(const std::uint8_t length, Byte());
    return Text(length);
  }

 private:
  static Error TooShort() { return {ErrorCode::kDataLoss, "a D-Bus message is too short"}; }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

Result<void> ReadField(Reader& reader, DbusMessage& message) {
  RETURN_IF_ERROR(reader.Align(8));
  ASSIGN_OR_RETURN(const std::uint8_t code, reader.Byte());
  ASSIGN_OR_RETURN(const std::string type, reader.Signature());
  std::string text;
  std::uint64_t number = 0;
  if (type == "s" || type == "o") {
    ASSIGN_OR_RETURN(text, reader.String());
  } else if (type == "g") {
    ASSIGN_OR_RETURN(text, reader.Signature());
  } else if (type == "u") {
    ASSIGN_OR_RETURN(number, reader.Number());
  } else {
    return Error{ErrorCode::kDataLoss, "a D-Bus header has a field of an unknown type"};
  }
  switch (code) {
    case kPath:
      message.path = std::move(text);
      break;
    case kInterface:
      message.interface = std::move(text);
      break;
    case kMember:
      message.member = std::move(text);
      break;
    case kErrorName:
      message.error_name = std::move(text);
      break;
    case kReplySerial:
      message.reply_to = static_cast<std::uint32_t>(number);
      break;
    case kDestination:
      message.destination = std::move(text);
      break;
    case kSignature:
      message.signature = std::move(text);
      break;
    case kDescriptors:
      message.descriptors = static_cast<std::uint32_t>(number);
      break;
    default:  // the sender, and what later versions add
      break;
  }
  return Ok();
}

Error WrongBody(const DbusMessage& message) {
  return {ErrorCode::kDataLoss,
          StrCat("a D-Bus message has the unexpected body ", Quote(message.signature))};
}

}  // namespace

std::string EncodeDbus(const DbusMessage& message) {
  Writer writer;
  writer.Byte(kLittleEndian);
  writer.Byte(static_cast<char>(message.type));
  writer.Byte(0);
  writer.Byte(kVersion);
  writer.Number(static_cast<std::uint32_t>(message.body.size()));
  writer.Number(message.serial);
  writer.Number(0);  // the length of the fields, see below
  const std::size_t begin = writer.bytes().size();
  auto field = [&](Field code, std::string_view type) {
    writer.Align(8);
    writer.Byte(static_cast<char>(code));
    writer.Signature(type);
  };
  auto text = [&](Field code, std::string_view type, std::string_view value) {
    if (value.empty()) return;
    field(code, type);
    type == "g" ? writer.Signature(value) : writer.String(value);
  };
  auto number = [&](Field code, std::uint32_t value) {
    if (value == 0) return;
    field(code, "u");
    writer.Number(value);
  };
  text(kPath, "o", message.path);
  text(kInterface, "s", message.interface);
  text(kMember, "s", message.member);
  text(kErrorName, "s", message.error_name);
  number(kReplySerial, message.reply_to);
  text(kDestination, "s", message.destination);
  text(kSignature, "g", message.signature);
  number(kDescriptors, message.descriptors);
  Writer length;
  length.Number(static_cast<std::uint32_t>(writer.bytes().size() - begin));
  writer.bytes().replace(begin - 4, 4, length.bytes());
  writer.Align(8);
  return writer.bytes() + message.body;
}

std::string EncodeDbusCall(std::uint32_t serial, const DbusCall& call) {
  Writer body;
  for (const std::string& each : call.strings) body.String(each);
  if (call.number) body.Number(static_cast<std::uint32_t>(*call.number));
  return EncodeDbus({.serial = serial,
                     .path = call.path,
                     .interface = call.interface,
                     .member = call.member,
                     .destination = call.destination,
                     .signature = std::string(call.strings.size(), 's') + (call.number ? "i" : ""),
                     .body = body.bytes()});
}

Result<std::optional<DbusMessage>> DbusReader::Next() {
  if (buffer_.size() < kFixedHeader) return std::optional<DbusMessage>();
  Reader reader(buffer_);
  ASSIGN_OR_RETURN(const std::uint8_t order, reader.Byte());
  ASSIGN_OR_RETURN(const std::uint8_t type, reader.Byte());
  RETURN_IF_ERROR(reader.Skip(2));
  ASSIGN_OR_RETURN(const std::uint64_t body, reader.Number());
  ASSIGN_OR_RETURN(const std::uint64_t serial, reader.Number());
  ASSIGN_OR_RETURN(const std::uint64_t fields, reader.Number());
  if (order != kLittleEndian || type < 1 || type > 4) {
    return Error{ErrorCode::kDataLoss, "not a D-Bus message"};
  }
  if (body > kMaxMessage || fields > kMaxMessage) {
    return Error{ErrorCode::kResourceExhausted, "a D-Bus message is too large"};
  }
  const std::size_t header = (kFixedHeader + fields + 7) / 8 * 8;
  if (buffer_.size() < header + body) return std::optional<DbusMessage>();
  DbusMessage message{.type = static_cast<DbusMessage::Type>(type),
                      .serial = static_cast<std::uint32_t>(serial)};
  Reader inside(std::string_view(buffer_).substr(0, kFixedHeader + fields));
  RETURN_IF_ERROR(inside.Skip(kFixedHeader));
  while (inside.position() < kFixedHeader + fields) RETURN_IF_ERROR(ReadField(inside, message));
  message.body = buffer_.substr(header, body);
  buffer_.erase(0, header + body);
  return std::optional(std::move(message));
}

Result<bool> DbusBool(const DbusMessage& message) {
  if (message.signature != "b") return WrongBody(message);
  ASSIGN_OR_RETURN(const std::uint64_t value, Reader(message.body).Number());
  return value != 0;
}

Result<std::uint64_t> DbusVariantNumber(const DbusMessage& message) {
  if (message.signature != "v") return WrongBody(message);
  Reader reader(message.body);
  ASSIGN_OR_RETURN(const std::string type, reader.Signature());
  if (type != "t") return WrongBody(message);
  return reader.Number(8);
}

std::string DbusText(const DbusMessage& message) {
  if (!message.signature.starts_with("s")) return "";
  auto text = Reader(message.body).String();
  return text.ok() ? *std::move(text) : "";
}

}  // namespace drakkar::node
