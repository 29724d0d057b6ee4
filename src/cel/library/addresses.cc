// The ip and cidr libraries.
#include "base/text/text.h"
#include "cel/library/ip_address.h"
#include "cel/library/library.h"
#include "cel/library/objects.h"

namespace drakkar::cel {
namespace {

class IpValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "net.IP";
  explicit IpValue(IpAddress value) : ObjectValue(&kTypeName), address(std::move(value)) {}
  bool Equals(const ObjectValue& other) const override {
    return address == static_cast<const IpValue&>(other).address;
  }
  std::uint64_t CostSize() const override { return address.size(); }
  IpAddress address;
};

class CidrValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "net.CIDR";
  explicit CidrValue(IpPrefix value) : ObjectValue(&kTypeName), prefix(std::move(value)) {}
  bool Equals(const ObjectValue& other) const override {
    return prefix == static_cast<const CidrValue&>(other).prefix;
  }
  std::uint64_t CostSize() const override {
    return static_cast<std::uint64_t>((prefix.bits + 7) / 8);
  }
  IpPrefix prefix;
};

}  // namespace

namespace types {
const TypeRef& Ip() {
  static const TypeRef type = Object(TypeKind::kOpaque, IpValue::kTypeName);
  return type;
}
const TypeRef& Cidr() {
  static const TypeRef type = Object(TypeKind::kOpaque, CidrValue::kTypeName);
  return type;
}
}  // namespace types

namespace library {
namespace {

using types::Bool, types::Int, types::String, types::Ip, types::Cidr;

const IpAddress& GetIp(const Value& value) {
  return static_cast<const IpValue*>(value.object)->address;
}
const IpPrefix& GetCidr(const Value& value) {
  return static_cast<const CidrValue*>(value.object)->prefix;
}

Result<IpAddress> ParseIp(std::string_view text) {
  Result<IpAddress> address = ParseIpAddress(text);
  if (!address.ok()) {
    return InvalidArgument(
        StrCat("IP Address ", Quote(text),
               " parse error during conversion from string: ", address.error().message));
  }
  if (!address->zone.empty())
    return InvalidArgument(StrCat("IP address ", Quote(text), " with zone value is not allowed"));
  if (address->IsMapped())
    return InvalidArgument(StrCat("IPv4-mapped IPv6 address ", Quote(text), " is not allowed"));
  return address;
}

Result<IpPrefix> ParseCidr(std::string_view text) {
  Result<IpPrefix> prefix = ParseIpPrefix(text);
  if (!prefix.ok()) {
    return InvalidArgument(StrCat("network address parse error during conversion from string: ",
                                  prefix.error().message));
  }
  if (prefix->address.IsMapped())
    return InvalidArgument(StrCat("IPv4-mapped IPv6 address ", Quote(text), " is not allowed"));
  return prefix;
}

Value ToIp(CallContext& c, Args args) {
  Result<IpAddress> address = ParseIp(args[0].text());
  if (!address.ok()) return NewError(c.arena, address.error().message);
  return MakeObject(c.arena.New<IpValue>(*std::move(address)));
}
Value IsIp(CallContext&, Args args) {
  return MakeBool(ParseIp(args[0].text()).ok());
}
Value IsCanonical(CallContext& c, Args args) {
  const Result<IpAddress> address = ParseIp(args[0].text());
  if (!address.ok()) return NewError(c.arena, address.error().message);
  return MakeBool(address->ToString() == args[0].text());
}
Value Family(CallContext&, Args args) {
  return MakeInt(GetIp(args[0]).is_v4 ? 4 : 6);
}
Value IpText(CallContext& c, Args args) {
  return NewString(c.arena, GetIp(args[0]).ToString());
}

bool AllZero(const IpAddress& ip, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    if (ip.bytes[i] != 0) return false;
  }
  return true;
}
bool Unspecified(const IpAddress& ip) {
  return AllZero(ip, 0, ip.size());
}
bool Loopback(const IpAddress& ip) {
  return ip.is_v4 ? ip.bytes[0] == 127 : AllZero(ip, 0, 15) && ip.bytes[15] == 1;
}
bool LinkLocalMulticast(const IpAddress& ip) {
  if (ip.is_v4) return ip.bytes[0] == 224 && ip.bytes[1] == 0 && ip.bytes[2] == 0;
  return ip.bytes[0] == 0xFF && (ip.bytes[1] & 0x0F) == 0x02;
}
bool LinkLocalUnicast(const IpAddress& ip) {
  if (ip.is_v4) return ip.bytes[0] == 169 && ip.bytes[1] == 254;
  return ip.bytes[0] == 0xFE && (ip.bytes[1] & 0xC0) == 0x80;
}
bool Multicast(const IpAddress& ip) {
  return ip.is_v4 ? (ip.bytes[0] & 0xF0) == 0xE0 : ip.bytes[0] == 0xFF;
}
bool GlobalUnicast(const IpAddress& ip) {
  const bool broadcast = ip.is_v4 && ip.bytes[0] == 255 && ip.bytes[1] == 255 &&
                         ip.bytes[2] == 255 && ip.bytes[3] == 255;
  return !broadcast && !Unspecified(ip) && !Loopback(ip) && !Multicast(ip) && !LinkLocalUnicast(ip);
}
template <bool (*test)(const IpAddress&)>
Value Test(CallContext&, Args args) {
  return MakeBool(test(GetIp(args[0])));
}

Value ToCidr(CallContext& c, Args args) {
  Result<IpPrefix> prefix = ParseCidr(args[0].text());
  if (!prefix.ok()) {
    return NewError(c.arena, StrCat("network address parse error during conversion from string: ",
                                    prefix.error().message));
  }
  return MakeObject(c.arena.New<CidrValue>(*std::move(prefix)));
}
Value IsCidr(CallContext&, Args args) {
  return MakeBool(ParseCidr(args[0].text()).ok());
}
Value ContainsIp(CallContext& c, Args args) {
  const Value ip = args[1].kind == Kind::kString ? ToIp(c, args.subspan(1)) : args[1];
  if (ip.IsError()) return ip;
  return MakeBool(GetCidr(args[0]).Contains(GetIp(ip)));
}
Value ContainsCidr(CallContext& c, Args args) {
  const Value cidr = args[1].kind == Kind::kString ? ToCidr(c, args.subspan(1)) : args[1];
  if (cidr.IsError()) return cidr;
  const IpPrefix& outer = GetCidr(args[0]);
  const IpPrefix& inner = GetCidr(cidr);
  return MakeBool(outer.bits <= inner.bits && outer.Contains(inner.address));
}
Value CidrIp(CallContext& c, Args args) {
  return MakeObject(c.arena.New<IpValue>(GetCidr(args[0]).address));
}
Value PrefixLength(CallContext&, Args args) {
  return MakeInt(GetCidr(args[0]).bits);
}
Value MaskedCidr(CallContext& c, Args args) {
  return MakeObject(c.arena.New<CidrValue>(GetCidr(args[0]).Masked()));
}
Value CidrText(CallContext& c, Args args) {
  return NewString(c.arena, GetCidr(args[0]).ToString());
}

}  // namespace

void AddIps(Declarations& d) {
  const TypeRef& ip = Ip();
  d.AddTypeName(ip);
  Global(d, "ip", "string_to_ip", {String()}, ip, ToIp);
  Global(d, "isIP", "is_ip", {String()}, Bool(), IsIp);
  Global(d, "ip.isCanonical", "ip_is_canonical", {String()}, Bool(), IsCanonical);
  Member(d, "family", "ip_family", {ip}, Int(), Family);
  Member(d, "isUnspecified", "ip_is_unspecified", {ip}, Bool(), Test<Unspecified>);
  Member(d, "isLoopback", "ip_is_loopback", {ip}, Bool(), Test<Loopback>);
  Member(d, "isLinkLocalMulticast", "ip_is_link_local_multicast", {ip}, Bool(),
         Test<LinkLocalMulticast>);
  Member(d, "isLinkLocalUnicast", "ip_is_link_local_unicast", {ip}, Bool(), Test<LinkLocalUnicast>);
  Member(d, "isGlobalUnicast", "ip_is_global_unicast", {ip}, Bool(), Test<GlobalUnicast>);
  Global(d, "string", "ip_to_string", {ip}, String(), IpText);
}

void AddCidrs(Declarations& d) {
  const TypeRef& cidr = Cidr();
  d.AddTypeName(cidr);
  Global(d, "cidr", "string_to_cidr", {String()}, cidr, ToCidr);
  Global(d, "isCIDR", "is_cidr", {String()}, Bool(), IsCidr);
  Member(d, "containsIP", "cidr_contains_ip_string", {cidr, String()}, Bool(), ContainsIp);
  Member(d, "containsIP", "cidr_contains_ip_ip", {cidr, Ip()}, Bool(), ContainsIp);
  Member(d, "containsCIDR", "cidr_contains_cidr_string", {cidr, String()}, Bool(), ContainsCidr);
  Member(d, "containsCIDR", "cidr_contains_cidr", {cidr, cidr}, Bool(), ContainsCidr);
  Member(d, "ip", "cidr_ip", {cidr}, Ip(), CidrIp);
  Member(d, "prefixLength", "cidr_prefix_length", {cidr}, Int(), PrefixLength);
  Member(d, "masked", "cidr_masked", {cidr}, cidr, MaskedCidr);
  Global(d, "string", "cidr_to_string", {cidr}, String(), CidrText);
}

}  // namespace library
}  // namespace drakkar::cel
