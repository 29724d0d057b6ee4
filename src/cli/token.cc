// token create, list and delete: bootstrap tokens for machines that join the cluster.
#include <algorithm>

#include "api/meta/age.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "bootstrap/cluster_info.h"
#include "bootstrap/token.h"
#include "cli/commands.h"
#include "cli/printable.h"
#include "cli/session.h"
#include "client/kubeconfig.h"

namespace drakkar::cli {
namespace {

constexpr char kSection[] = "Objects";

const api::KindSchema& SecretKind() {
  return *api::FindResource("", "v1", "secrets");
}

client::ResourceRef SecretRef(std::string name = {}) {
  return {&SecretKind(), std::string(bootstrap::kSecretNamespace), std::move(name), ""};
}

Result<bootstrap::TokenRecord> ReadRecord(const Arguments& arguments, const Clock& clock) {
  bootstrap::TokenRecord record;
  if (!arguments.positionals().empty()) {
    const std::optional<bootstrap::Token> given =
        bootstrap::ParseToken(arguments.positionals().front());
    if (!given) {
      return InvalidArgument(
          "a token has six characters, a dot and sixteen characters, all of them a-z or 0-9: "
          "abcdef.0123456789abcdef");
    }
    record.token = *given;
  } else {
    record.token = bootstrap::MakeToken(RealRandom());
  }
  const Duration lifetime = arguments.Time("ttl");
  if (lifetime < Duration::zero()) return InvalidArgument("--ttl must not be negative");
  if (lifetime > Duration::zero()) record.expires = clock.Now() + lifetime;
  for (const std::string_view usage : Split(arguments.Text("usages"), ',')) {
    if (usage == "authentication") {
      record.authenticates = true;
    } else if (usage == "signing") {
      record.signs = true;
    } else {
      return InvalidArgument(
          StrCat("--usages: ", Quote(usage), " is neither authentication nor signing"));
    }
  }
  for (const std::string_view group : Split(arguments.Text("groups"), ',')) {
    if (group.empty()) continue;
    if (!bootstrap::IsExtraGroup(group)) {
      return InvalidArgument(
          StrCat("--groups: ", Quote(group), " must be system:bootstrappers: and a name"));
    }
    record.extra_groups.emplace_back(group);
  }
  record.description = arguments.Text("description");
  return record;
}

// The address that the cluster advertises, or else the one that this command uses.
std::string ServerOf(Session& session) {
  const client::ResourceRef ref{api::FindResource("", "v1", "configmaps"),
                                std::string(bootstrap::kInfoNamespace),
                                std::string(bootstrap::kInfoName), ""};
  const Result<api::ObjectPtr> map = session.Get(ref);
  if (!map.ok()) return session.server();
  const Result<bootstrap::ClusterInfo> info =
      bootstrap::ReadClusterInfo((**map)["data"].Entry(bootstrap::kInfoKubeconfig).str());
  return info.ok() ? info->server : session.server();
}

// "drakkar node --join https://10.0.0.1:6443 --token ... --ca-hash sha256:..."
Result<std::string> JoinCommand(Session& session, const bootstrap::Token& token) {
  const std::string& ca = session.access().ca_pem;
  if (ca.empty()) {
    return FailedPrecondition(
        "the kubeconfig has no CA, so there is no hash by which a machine can recognize the "
        "cluster; use the one that the API server wrote");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> hashes, bootstrap::CaHashes(ca));
  return StrCat("drakkar node --join ", ServerOf(session), " --token ", token.ToString(),
                " --ca-hash ", hashes.front());
}

int RunCreate(const Arguments& arguments, Console& console) {
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  const Result<bootstrap::TokenRecord> record = ReadRecord(arguments, (*session)->clock());
  if (!record.ok()) {
    console.Error(record.error().message);
    return kExitUsage;
  }
  // Do this before the token is created, so that no token is left behind if the command cannot be
  // printed.
  std::string text = record->token.ToString();
  if (arguments.Bool("print-join-command")) {
    const Result<std::string> command = JoinCommand(**session, record->token);
    if (!command.ok()) {
      Report(console, command.error());
      return kExitFailure;
    }
    text = *command;
  }
  const Result<api::ObjectPtr> made =
      (*session)->Create(SecretRef(), bootstrap::MakeTokenSecret(*record), {});
  if (!made.ok()) {
    Report(console, made.error());
    return kExitFailure;
  }
  console.Out(text + "\n");
  return kExitOk;
}

std::string UsagesOf(const bootstrap::TokenRecord& record) {
  std::vector<std::string_view> usages;
  if (record.authenticates) usages.push_back("authentication");
  if (record.signs) usages.push_back("signing");
  return usages.empty() ? "<none>" : Join(usages, ",");
}

std::string Aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 3, ' ');
    }
    text += line + "\n";
  }
  return text;
}

int RunList(const Arguments& arguments, Console& console) {
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  const Result<api::TreePtr> list =
      (*session)->List(SecretRef(), {}, StrCat("type=", bootstrap::kSecretType));
  if (!list.ok()) {
    Report(console, list.error());
    return kExitFailure;
  }
  const WallTime now = (*session)->clock().Now();
  std::vector<std::vector<std::string>> rows = {
      {"TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS"}};
  for (const api::Value secret : (*list)->root()["items"].elements()) {
    const Result<bootstrap::TokenRecord> record = bootstrap::ReadTokenSecret(secret);
    if (!record.ok()) {
      console.Err(StrCat("warning: Secret ", Printable(secret["metadata"]["name"].str()),
                         " is not a valid token: ", Printable(record.error().message), "\n"));
      continue;
    }
    const std::string ttl = !record->expires          ? "<forever>"
                            : *record->expires <= now ? "<expired>"
                                                      : api::FormatAge(*record->expires - now);
    rows.push_back({record->token.ToString(), ttl,
                    record->expires ? api::FormatTime(*record->expires) : "<never>",
                    UsagesOf(*record),
                    record->description.empty() ? "<none>" : Printable(record->description),
                    record->extra_groups.empty() ? "<none>" : Join(record->extra_groups, ",")});
  }
  if (rows.size() == 1) {
    console.Err("No tokens found.\n");
    return kExitOk;
  }
  console.Out(Aligned(rows));
  return kExitOk;
}

int RunDelete(const Arguments& arguments, Console& console) {
  std::vector<std::string> names;
  for (const std::string& word : arguments.positionals()) {
    // The ID is enough.
    const std::optional<bootstrap::Token> token = bootstrap::ParseToken(
        word.find('.') == std::string::npos ? word + ".0000000000000000" : word);
    if (!token) {
      console.Error(StrCat(Quote(word), " is neither a token nor the ID of one"));
      return kExitUsage;
    }
    names.push_back(token->SecretName());
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  for (const std::string& name : names) {
    const Result<api::ObjectPtr> gone = (*session)->Delete(SecretRef(name), {});
    if (!gone.ok()) {
      Report(console, gone.error());
      return kExitFailure;
    }
    console.Out(
        StrCat("token ", Quote(name.substr(bootstrap::kSecretPrefix.size())), " deleted\n"));
  }
  return kExitOk;
}

}  // namespace

std::vector<Command> TokenCommands() {
  Command create;
  create.name = "token create";
  create.arguments = "[TOKEN]";
  create.summary = "Create a token that lets a machine join the cluster";
  create.help =
      "Creates a bootstrap token and prints it. Anyone who has it can register a node, any number "
      "of times until it expires, so keep its lifetime short. It cannot read Secrets or run pods.";
  create.examples =
      "  # the command to run on a new machine\n"
      "  drakkar token create --print-join-command\n"
      "  # for an hour\n"
      "  drakkar token create --ttl 1h --description 'rack 7'\n";
  create.flags = {
      {.name = "ttl",
       .type = FlagType::kDuration,
       .help = "How long the token is valid; 0 means that it never expires.",
       .default_value = "24h",
       .placeholder = "DURATION"},
      {.name = "usages",
       .help = "What the token is for: authentication, signing.",
       .default_value = "authentication,signing",
       .placeholder = "LIST"},
      {.name = "groups",
       .help = "Additional groups of its users: system:bootstrappers:NAME, separated by commas.",
       .placeholder = "LIST"},
      {.name = "description", .help = "A note for `token list`.", .placeholder = "TEXT"},
      {.name = "print-join-command",
       .type = FlagType::kBool,
       .help = "Print the complete command to run on the new machine instead of only the token.",
       .default_value = "false"}};
  create.max_arguments = 1;
  create.group = FlagGroup::kCluster;
  create.section = kSection;
  create.run = RunCreate;

  Command list;
  list.name = "token list";
  list.summary = "List the tokens with which machines can join";
  list.help = "Prints the tokens themselves: anyone who sees them can register nodes.";
  list.examples = "  drakkar token list\n";
  list.max_arguments = 0;
  list.group = FlagGroup::kCluster;
  list.section = kSection;
  list.run = RunList;

  Command remove;
  remove.name = "token delete";
  remove.arguments = "TOKEN...";
  remove.summary = "Revoke tokens";
  remove.help = "Nodes that have joined keep their certificates.";
  remove.examples = "  drakkar token delete abcdef\n";
  remove.min_arguments = 1;
  remove.group = FlagGroup::kCluster;
  remove.section = kSection;
  remove.run = RunDelete;
  return {std::move(create), std::move(list), std::move(remove)};
}

}  // namespace drakkar::cli
