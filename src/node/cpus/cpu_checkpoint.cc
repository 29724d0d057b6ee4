#include "node/cpus/cpu_checkpoint.h"

#include <cstdint>

#include "api/json/json_writer.h"
#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr std::string_view kPolicy = "static";

std::uint32_t Fnv1a(std::string_view text) {
  std::uint32_t hash = 2'166'136'261;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619;
  return hash;
}

std::uint32_t ChecksumOf(std::string_view data) {
  return Fnv1a(StrCat("(string)", data));
}

// How Go prints the part that kubelets before 1.35 check.
std::uint32_t OldChecksum(std::string_view policy, std::string_view shared, Value entries) {
  std::map<std::string, std::map<std::string, std::string>> sorted;
  for (const api::MemberView pod : entries.members()) {
    for (const api::MemberView container : pod.value.members()) {
      sorted[std::string(pod.name)][std::string(container.name)] = container.value.str();
    }
  }
  std::string printed;
  for (const auto& [uid, containers] : sorted) {
    std::string inside;
    for (const auto& [name, cpus] : containers) {
      inside += StrCat(inside.empty() ? "" : " ", name, ":", cpus);
    }
    printed += StrCat(printed.empty() ? "" : " ", uid, ":map[", inside, "]");
  }
  return Fnv1a(StrCat("(*state.CPUManagerCheckpoint){PolicyName:(string)", policy,
                      " DefaultCPUSet:(string)", shared,
                      " Entries:(map[string]map[string]string)map[", printed,
                      "] Checksum:(checksum.Checksum)0}"));
}

void WriteState(const CpuState& state, api::JsonWriter& json) {
  json.Key("policyName").String(kPolicy);
  json.Key("defaultCpuSet").String(state.shared.ToString());
  if (state.exclusive.empty()) return;
  json.Key("entries").BeginObject();
  for (const auto& [uid, containers] : state.exclusive) {
    json.Key(uid).BeginObject();
    for (const auto& [name, cpus] : containers) json.Key(name).String(cpus.ToString());
    json.EndObject();
  }
  json.EndObject();
}

Result<CpuState> ReadState(Value data) {
  const std::string_view policy = data["policyName"].str();
  if (policy == "none") return CpuState();
  if (policy != kPolicy) {
    return FailedPrecondition(StrCat("written by the CPU manager policy ", Quote(policy)));
  }
  CpuState state;
  ASSIGN_OR_RETURN(state.shared, CpuSet::Parse(data["defaultCpuSet"].str()));
  for (const api::MemberView pod : data["entries"].members()) {
    for (const api::MemberView container : pod.value.members()) {
      ASSIGN_OR_RETURN(CpuSet cpus, CpuSet::Parse(container.value.str()));
      state.exclusive[std::string(pod.name)][std::string(container.name)] = std::move(cpus);
    }
  }
  if (data["podEntries"].size() > 0) {
    return FailedPrecondition("it assigns CPUs to whole pods, which this node does not support");
  }
  return state;
}

}  // namespace

std::string WriteCpuCheckpoint(const CpuState& state) {
  const auto object = [&](auto&& members) {
    api::JsonWriter json({.indent = 0, .escape_html = false, .final_newline = false});
    json.BeginObject();
    WriteState(state, json);
    members(json);
    json.EndObject();
    return json.Take();
  };
  const std::string data = object([](api::JsonWriter&) {});
  const auto parsed = api::ParseJson(data);
  return object([&](api::JsonWriter& json) {
    json.Key("checksum")
        .Unsigned(OldChecksum(kPolicy, state.shared.ToString(),
                              parsed.ok() ? (*parsed)->root()["entries"] : Value()));
    json.Key("data").String(data);
    json.Key("dataChecksum").Unsigned(ChecksumOf(data));
  });
}

Result<CpuState> ReadCpuCheckpoint(std::string_view text) {
  if (Trim(text).empty()) return CpuState();
  ASSIGN_OR_RETURN(const api::TreePtr tree, api::ParseJson(text));
  const Value root = tree->root();
  if (!root.is_object()) return InvalidArgument("not a checkpoint");
  if (const Value data = root["data"]; data.has_value()) {
    if (root["dataChecksum"].integer() != ChecksumOf(data.str())) {
      return Error{ErrorCode::kDataLoss, "the checksum is wrong"};
    }
    ASSIGN_OR_RETURN(const api::TreePtr inner, api::ParseJson(data.str()));
    return ReadState(inner->root());
  }
  const std::int64_t checksum = root["checksum"].integer();
  if (checksum != 0 && checksum != OldChecksum(root["policyName"].str(),
                                               root["defaultCpuSet"].str(), root["entries"])) {
    return Error{ErrorCode::kDataLoss, "the checksum is wrong"};
  }
  return ReadState(root);
}

}  // namespace drakkar::node
