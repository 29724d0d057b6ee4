#include "cmd/drakkar/etcd_flags.h"

#include "base/env/absolute_path.h"
#include "base/text/text.h"

namespace drakkar::cmd {
namespace {

constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";
constexpr std::string_view kJson = "application/json";

// "registry/" is "/registry", as in kube-apiserver.
Result<std::string> ReadPrefix(std::string_view text) {
  std::string root;
  for (std::string_view part : Split(text, '/')) {
    if (part.empty()) continue;
    if (part == "." || part == "..") {
      return InvalidArgument(StrCat("--etcd-prefix must not contain ", Quote(part)));
    }
    root += StrCat("/", part);
  }
  if (root.empty()) return InvalidArgument("--etcd-prefix must not be empty");
  return root;
}

}  // namespace

std::vector<cli::Flag> EtcdFlags() {
  return {
      {.name = "etcd-servers",
       .type = cli::FlagType::kRepeated,
       .help = "Store objects in etcd (3.4 or newer) instead of the embedded store. URLs of its "
               "members, separated by commas: https://HOST:PORT or http://HOST:PORT.",
       .placeholder = "URLS"},
      {.name = "etcd-cafile",
       .help = "CA of etcd's server certificates. Defaults to the system's CAs.",
       .placeholder = "FILE"},
      {.name = "etcd-certfile", .help = "Client certificate for etcd.", .placeholder = "FILE"},
      {.name = "etcd-keyfile", .help = "Private key of that certificate.", .placeholder = "FILE"},
      {.name = "etcd-prefix",
       .help = "Prefix of all keys in etcd.",
       .default_value = "/registry",
       .placeholder = "PREFIX"},
      {.name = "etcd-compaction-interval",
       .type = cli::FlagType::kDuration,
       .help = "How often one of the API servers removes old revisions from etcd; 0 if something "
               "else compacts it.",
       .default_value = "5m",
       .placeholder = "DURATION"},
      {.name = "storage-media-type",
       .help = StrCat("Encoding in which built-in kinds are written to etcd: ", kProtobuf, " or ",
                      kJson, ". Both are always read."),
       .default_value = std::string(kProtobuf),
       .placeholder = "TYPE"},
  };
}

Result<EtcdFlagValues> ReadEtcdFlags(const cli::Arguments& arguments, bool compacts) {
  EtcdFlagValues values;
  for (const std::string& list : arguments.List("etcd-servers")) {
    for (std::string_view server : Split(list, ',')) {
      if (!Trim(server).empty()) values.location.etcd_servers.emplace_back(Trim(server));
    }
  }
  if (values.location.etcd_servers.empty()) {
    if (arguments.Has("etcd-servers")) {
      return InvalidArgument("--etcd-servers names no server, such as https://etcd-0:2379");
    }
    for (const cli::Flag& flag : EtcdFlags()) {
      if (arguments.Has(flag.name)) {
        return InvalidArgument(StrCat("--", flag.name, " needs --etcd-servers"));
      }
    }
    return values;
  }
  values.location.engine = "etcd";
  const auto path = [&](std::string_view flag) {
    const std::string& given = arguments.Text(flag);
    return given.empty() ? std::string() : AbsolutePath(given);
  };
  values.location.etcd_ca_file = path("etcd-cafile");
  values.location.etcd_certificate_file = path("etcd-certfile");
  values.location.etcd_key_file = path("etcd-keyfile");
  if (values.location.etcd_certificate_file.empty() != values.location.etcd_key_file.empty()) {
    return InvalidArgument("--etcd-certfile and --etcd-keyfile must be given together");
  }
  values.location.etcd_compaction_interval =
      compacts ? arguments.Time("etcd-compaction-interval") : Duration(0);
  if (values.location.etcd_compaction_interval < Duration(0)) {
    return InvalidArgument("--etcd-compaction-interval must not be negative");
  }
  values.layout.is_kubernetes = true;
  ASSIGN_OR_RETURN(values.layout.root, ReadPrefix(arguments.Text("etcd-prefix")));
  const std::string& media_type = arguments.Text("storage-media-type");
  if (media_type == kJson) {
    values.layout.media_type = apiserver::StoreLayout::MediaType::kJson;
  } else if (media_type != kProtobuf) {
    return InvalidArgument(StrCat("--storage-media-type must be ", kProtobuf, " or ", kJson,
                                  ", not ", Quote(media_type)));
  }
  return values;
}

}  // namespace drakkar::cmd
