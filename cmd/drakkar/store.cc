// store check, repair, backup, restore and migrate.
#include "api/meta/quantity.h"
#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/etcd_flags.h"
#include "cmd/drakkar/store_source.h"
#include "cmd/drakkar/store_target.h"
#include "storage/backup/backup_file.h"
#include "storage/sqlite/store_file.h"

namespace drakkar::cmd {
namespace {

using cli::Arguments;
using cli::Command;
using cli::Console;
using cli::FlagType;

constexpr char kSection[] = "This machine";
// Maximum number of damaged objects to list.
constexpr std::size_t kMaxNamed = 50;
constexpr Duration kProgressInterval = std::chrono::seconds(2);

const cli::Flag kDataDirectoryFlag = {
    "data-dir", 0, FlagType::kString, "Data directory.", kDefaultDataDirectory, "DIR"};
const cli::Flag kKubeconfigFlag = {
    "kubeconfig",
    0,
    FlagType::kString,
    "Ask this API server. Default: the one that uses the data directory, if it runs.",
    "",
    "FILE"};

// The etcd flags that locate the data, without those that tune a server.
std::vector<cli::Flag> LocationFlags() {
  std::vector<cli::Flag> flags;
  for (cli::Flag& flag : EtcdFlags()) {
    if (flag.name == "etcd-compaction-interval") continue;
    if (flag.name == "etcd-servers") {
      flag.help =
          "etcd members that hold the objects, separated by commas: https://HOST:PORT or "
          "http://HOST:PORT.";
    }
    flags.push_back(std::move(flag));
  }
  return flags;
}

std::vector<cli::Flag> WithLocation(std::vector<cli::Flag> flags) {
  for (cli::Flag& flag : LocationFlags()) flags.push_back(std::move(flag));
  return flags;
}

int Fail(Console& console, const Error& error) {
  console.Error(error.message);
  return cli::kExitFailure;
}

std::string StoreDirectory(const Arguments& arguments) {
  return JoinPath(AbsolutePath(arguments.Text("data-dir")), "store");
}

bool IsInUse(const std::string& directory) {
  if (!RealFileSystem().Exists(directory)) return false;
  const auto lock = storage::DirectoryLock::Take(directory);
  return !lock.ok() && lock.error().code == ErrorCode::kFailedPrecondition;
}

// The kubeconfig of the server to ask; empty if the store is to be read directly.
std::string ServerOf(const Arguments& arguments) {
  if (!arguments.Text("kubeconfig").empty()) return arguments.Text("kubeconfig");
  if (!IsInUse(StoreDirectory(arguments))) return "";
  return JoinPath(AbsolutePath(arguments.Text("data-dir")), "admin.kubeconfig");
}

// Prints a line from time to time, if something takes long.
class Progress {
 public:
  explicit Progress(Console& console) : console_(console), last_(RealClock().Monotonic()) {}
  void Show(const std::string& line) {
    const MonotonicTime now = RealClock().Monotonic();
    if (now - last_ < kProgressInterval) return;
    last_ = now;
    console_.Err(line + "\n");
  }

 private:
  Console& console_;
  MonotonicTime last_;
};

std::string Megabytes(std::uint64_t bytes) {
  return StrCat((bytes + 500'000) / 1'000'000, " MB");
}

void PrintDamaged(Console& console, const std::vector<storage::UnreadableEntry>& damaged) {
  for (std::size_t i = 0; i < damaged.size() && i < kMaxNamed; ++i) {
    console.Out(StrCat("damaged: ", damaged[i].key.empty() ? "(unknown)" : damaged[i].key,
                       " at revision ", damaged[i].mod_revision, ": ", damaged[i].reason, "\n"));
  }
  if (damaged.size() > kMaxNamed) {
    console.Out(StrCat("... and ", damaged.size() - kMaxNamed, " more\n"));
  }
}

int CheckBackupFile(const std::string& path, Console& console) {
  const Result<storage::BackupEnd> end = storage::CheckBackup(console.files(), path);
  if (!end.ok()) return Fail(console, end.error());
  console.Out(
      StrCat("intact: backup of ", end->entries, " objects at revision ", end->revision, "\n"));
  return cli::kExitOk;
}

// Reads every object in etcd, as an API server would.
int CheckEtcd(const EtcdFlagValues& etcd, Console& console) {
  Result<std::unique_ptr<StoreSource>> source =
      OpenOwnStore(etcd.location, apiserver::RootPrefix(etcd.layout));
  if (!source.ok()) return Fail(console, source.error());
  Progress progress(console);
  CopyProgress total;
  const Result<storage::Revision> revision = CopyObjects(
      **source, etcd.layout, {}, [](const storage::Entry&) { return Ok(); },
      [&](const CopyProgress& so_far) {
        progress.Show(StrCat("checked ", so_far.entries, " of ", so_far.entries_expected,
                             " objects, ", Megabytes(so_far.bytes)));
      },
      total);
  if (!revision.ok()) return Fail(console, revision.error());
  PrintDamaged(console, total.unreadable);
  if (!total.unreadable.empty()) {
    console.Error(
        StrCat(total.unreadable.size(), " of ", total.entries, " objects cannot be read"));
    return cli::kExitFailure;
  }
  console.Out(StrCat("intact: ", total.entries, " objects in etcd at revision ", *revision, ", ",
                     Megabytes(total.bytes), "\n"));
  return cli::kExitOk;
}

int CheckServer(const std::string& kubeconfig, Console& console) {
  Result<std::unique_ptr<StoreSource>> source = OpenServerStore(kubeconfig);
  if (!source.ok()) return Fail(console, source.error());
  Progress progress(console);
  storage::VerifyResult total;
  std::string from;
  do {
    Result<storage::VerifyResult> slice = (*source)->Check(from);
    if (!slice.ok()) return Fail(console, slice.error());
    total.rows += slice->rows;
    total.bytes += slice->bytes;
    for (auto& damaged : slice->damaged) total.damaged.push_back(std::move(damaged));
    from = slice->next;
    progress.Show(StrCat("checked ", total.rows, " rows, ", Megabytes(total.bytes)));
  } while (!from.empty());
  PrintDamaged(console, total.damaged);
  if (!total.damaged.empty()) {
    console.Error(StrCat(total.damaged.size(), " of ", total.rows,
                         " rows are damaged; stop the server and run `drakkar store repair`, or "
                         "restore a backup"));
    return cli::kExitFailure;
  }
  console.Out(StrCat("intact: ", total.rows, " rows, ", Megabytes(total.bytes), "\n"));
  return cli::kExitOk;
}

int RunCheck(const Arguments& arguments, Console& console) {
  if (!arguments.Text("backup").empty()) {
    return CheckBackupFile(AbsolutePath(arguments.Text("backup")), console);
  }
  const Result<EtcdFlagValues> etcd = ReadEtcdFlags(arguments, /*compacts=*/false);
  if (!etcd.ok()) return Fail(console, etcd.error());
  if (etcd->layout.is_kubernetes) return CheckEtcd(*etcd, console);
  if (const std::string server = ServerOf(arguments); !server.empty()) {
    return CheckServer(server, console);
  }
  Progress progress(console);
  const Result<storage::StoreCheck> check =
      storage::CheckStoreFile(StoreDirectory(arguments), [&](const storage::StoreCheck& so_far) {
        progress.Show(StrCat("checked ", so_far.rows, " rows, ", Megabytes(so_far.bytes)));
      });
  if (!check.ok()) return Fail(console, check.error());
  PrintDamaged(console, check->damaged);
  if (check->structure) return Fail(console, *check->structure);
  if (!check->damaged.empty()) {
    console.Error(StrCat(check->damaged.size(), " of ", check->rows,
                         " rows are damaged; run `drakkar store repair`, or restore a backup"));
    return cli::kExitFailure;
  }
  console.Out(StrCat("intact: ", check->rows, " rows, ", Megabytes(check->bytes), ", format ",
                     check->format, "\n"));
  return cli::kExitOk;
}

int RunRepair(const Arguments& arguments, Console& console) {
  const Result<storage::StoreRepair> repair = storage::RepairStoreFile(
      StoreDirectory(arguments), RealClock(), arguments.Bool("drop-damaged"));
  if (!repair.ok()) return Fail(console, repair.error());
  if (repair->was_intact) {
    console.Out("intact: nothing to repair\n");
    return cli::kExitOk;
  }
  for (const std::string& key : repair->restored) {
    console.Out(StrCat("restored an older version: ", key, "\n"));
  }
  for (const std::string& key : repair->lost) console.Out(StrCat("lost: ", key, "\n"));
  if (repair->may_have_lost_more) {
    console.Out("objects in unreadable parts of the file are lost without a trace\n");
  }
  console.Out(StrCat("repaired: ", repair->objects, " objects; the damaged file is now ",
                     repair->kept_as, "\n"));
  return cli::kExitOk;
}

Result<std::uint64_t> ReadRate(const Arguments& arguments) {
  const std::string& text = arguments.Text("rate");
  const Result<api::Quantity> rate = api::Quantity::Parse(text);
  if (!rate.ok() || rate->Sign() < 0 || rate->CompareInt64(std::int64_t{1} << 40) > 0) {
    return InvalidArgument(StrCat(
        "--rate must be bytes per second, such as 64Mi, or 0 for no limit, not ", Quote(text)));
  }
  return static_cast<std::uint64_t>(rate->Value());
}

Result<std::unique_ptr<StoreSource>> OpenFile(const Arguments& arguments, Console& console) {
  if (!console.files().Exists(JoinPath(StoreDirectory(arguments), "store.db"))) {
    return NotFound(StrCat("there is no store in ", StoreDirectory(arguments)));
  }
  return OpenOwnStore({.directory = StoreDirectory(arguments)}, "");
}

// The store that the flags name: in etcd, of a running server, or in a data directory.
Result<std::unique_ptr<StoreSource>> OpenSource(const Arguments& arguments,
                                                const EtcdFlagValues& etcd, Console& console) {
  if (etcd.layout.is_kubernetes) {
    return OpenOwnStore(etcd.location, apiserver::RootPrefix(etcd.layout));
  }
  if (const std::string server = ServerOf(arguments); !server.empty()) {
    return OpenServerStore(server);
  }
  return OpenFile(arguments, console);
}

int RunBackup(const Arguments& arguments, Console& console) {
  const Result<std::uint64_t> rate = ReadRate(arguments);
  if (!rate.ok()) return Fail(console, rate.error());
  const std::string path = AbsolutePath(arguments.positionals()[0]);
  if (console.files().Exists(path)) {
    return Fail(console, FailedPrecondition(StrCat(path, " exists; choose another name")));
  }
  const Result<EtcdFlagValues> etcd = ReadEtcdFlags(arguments, /*compacts=*/false);
  if (!etcd.ok()) return Fail(console, etcd.error());
  Result<std::unique_ptr<StoreSource>> source = OpenSource(arguments, *etcd, console);
  if (!source.ok()) return Fail(console, source.error());
  storage::BackupWriter writer(console.files(), path);
  Progress progress(console);
  CopyProgress total;
  const Result<storage::Revision> revision = CopyObjects(
      **source, etcd->layout, {.bytes_per_second_max = *rate},
      [&](const storage::Entry& entry) { return writer.Add(entry); },
      [&](const CopyProgress& so_far) {
        progress.Show(StrCat("saved ", so_far.entries, " of ", so_far.entries_expected,
                             " objects, ", Megabytes(so_far.bytes)));
      },
      total);
  if (!revision.ok()) return Fail(console, revision.error());
  if (Result<void> finished = writer.Finish(*revision); !finished.ok()) {
    return Fail(console, finished.error());
  }
  console.Out(
      StrCat("saved ", writer.entries(), " objects at revision ", *revision, " to ", path, "\n"));
  if (total.unreadable.empty()) return cli::kExitOk;
  PrintDamaged(console, total.unreadable);
  console.Error(StrCat(total.unreadable.size(),
                       " objects cannot be read and are not in the backup; see `drakkar store "
                       "repair`"));
  return cli::kExitFailure;
}

int RunRestore(const Arguments& arguments, Console& console) {
  const std::string path = AbsolutePath(arguments.positionals()[0]);
  // Change nothing unless everything is readable.
  const Result<storage::BackupEnd> end = storage::CheckBackup(console.files(), path);
  if (!end.ok()) return Fail(console, end.error());
  const Result<EtcdFlagValues> etcd = ReadEtcdFlags(arguments, /*compacts=*/false);
  if (!etcd.ok()) return Fail(console, etcd.error());
  Result<std::unique_ptr<StoreTarget>> target =
      etcd->layout.is_kubernetes
          ? OpenEtcdTarget(etcd->location, etcd->layout)
          : OpenFileTarget(StoreDirectory(arguments), arguments.Bool("force"));
  if (!target.ok()) return Fail(console, target.error());
  storage::BackupReader reader(console.files(), path);
  Progress progress(console);
  std::uint64_t entries = 0;
  while (true) {
    const Result<std::optional<storage::Entry>> entry = reader.Next();
    if (!entry.ok()) return Fail(console, entry.error());
    if (!*entry) break;
    if (Result<void> added = (*target)->Add(**entry); !added.ok()) {
      return Fail(console, added.error());
    }
    progress.Show(StrCat("restored ", ++entries, " of ", end->entries, " objects"));
  }
  const Result<std::string> old = (*target)->Finish(reader.end().revision);
  if (!old.ok()) return Fail(console, old.error());
  console.Out(StrCat("restored ", end->entries, " objects from revision ", end->revision, "\n"));
  if (!old->empty()) console.Out(StrCat("the store before is now ", *old, "\n"));
  return cli::kExitOk;
}

// Reads both stores again and compares them: finds what was not copied, and what somebody
// changed in the meantime.
Result<std::uint64_t> VerifyMigration(const Arguments& arguments, const EtcdFlagValues& etcd,
                                      bool to_etcd) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StoreSource> remote,
                   OpenOwnStore(etcd.location, apiserver::RootPrefix(etcd.layout)));
  ASSIGN_OR_RETURN(const std::unique_ptr<StoreSource> local,
                   OpenOwnStore({.directory = StoreDirectory(arguments)}, ""));
  ASSIGN_OR_RETURN(const ObjectDigests in_etcd, DigestsOf(*remote, etcd.layout, etcd.layout));
  ASSIGN_OR_RETURN(const ObjectDigests embedded, DigestsOf(*local, {}, etcd.layout));
  const std::string difference =
      to_etcd ? FindDifference(embedded, in_etcd) : FindDifference(in_etcd, embedded);
  if (difference.empty()) return in_etcd.size();
  return FailedPrecondition(StrCat("the copy differs: ", difference,
                                   "; stop all API servers, remove the copy and migrate again"));
}

int RunMigrate(const Arguments& arguments, Console& console) {
  const std::string& to = arguments.Text("to");
  if (to != "etcd" && to != "embedded") {
    return Fail(console, InvalidArgument(StrCat("--to must be etcd or embedded, not ", Quote(to))));
  }
  const bool to_etcd = to == "etcd";
  const Result<EtcdFlagValues> etcd = ReadEtcdFlags(arguments, /*compacts=*/false);
  if (!etcd.ok()) return Fail(console, etcd.error());
  if (!etcd->layout.is_kubernetes) {
    return Fail(console, InvalidArgument("--etcd-servers is missing"));
  }
  if (IsInUse(StoreDirectory(arguments))) {
    return Fail(console, FailedPrecondition(StrCat("a server uses ", StoreDirectory(arguments),
                                                   "; stop it first")));
  }
  CopyProgress total;
  std::string old;
  {
    Result<std::unique_ptr<StoreSource>> source =
        to_etcd ? OpenFile(arguments, console)
                : OpenOwnStore(etcd->location, apiserver::RootPrefix(etcd->layout));
    if (!source.ok()) return Fail(console, source.error());
    Result<std::unique_ptr<StoreTarget>> target =
        to_etcd ? OpenEtcdTarget(etcd->location, etcd->layout)
                : OpenFileTarget(StoreDirectory(arguments), arguments.Bool("force"));
    if (!target.ok()) return Fail(console, target.error());
    Progress progress(console);
    const Result<storage::Revision> revision = CopyObjects(
        **source, to_etcd ? apiserver::StoreLayout{} : etcd->layout, {},
        [&](const storage::Entry& entry) { return (*target)->Add(entry); },
        [&](const CopyProgress& so_far) {
          progress.Show(
              StrCat("copied ", so_far.entries, " of ", so_far.entries_expected, " objects"));
        },
        total);
    if (!revision.ok()) return Fail(console, revision.error());
    if (!total.unreadable.empty()) {
      PrintDamaged(console, total.unreadable);
      return Fail(console, Error{ErrorCode::kDataLoss,
                                 StrCat(total.unreadable.size(),
                                        " objects cannot be read, and nothing was migrated")});
    }
    Result<std::string> finished = (*target)->Finish(*revision);
    if (!finished.ok()) return Fail(console, finished.error());
    old = *std::move(finished);
  }
  const Result<std::uint64_t> verified = VerifyMigration(arguments, *etcd, to_etcd);
  if (!verified.ok()) return Fail(console, verified.error());
  console.Out(StrCat("migrated and verified ", *verified, " objects\n"));
  if (!old.empty()) console.Out(StrCat("the store before is now ", old, "\n"));
  return cli::kExitOk;
}

}  // namespace

void AddStoreCommands(cli::App& app) {
  Command check;
  check.name = "store check";
  check.summary = "Check the store for damage";
  check.help =
      "Reads everything in the store and compares it with its checksums. Changes nothing. If a "
      "server is using the data directory, the server does the check, a little at a time. In "
      "etcd, which has checksums of its own, every object is decoded.";
  check.examples =
      "  drakkar store check\n"
      "  drakkar store check --backup cluster.backup\n"
      "  drakkar store check --etcd-servers http://127.0.0.1:2379\n";
  check.section = kSection;
  check.max_arguments = 0;
  check.flags =
      WithLocation({kDataDirectoryFlag,
                    kKubeconfigFlag,
                    {"backup", 0, FlagType::kString, "Check this backup instead.", "", "FILE"}});
  check.run = RunCheck;
  app.Add(std::move(check));

  Command repair;
  repair.name = "store repair";
  repair.summary = "Repair a damaged store";
  repair.help =
      "Writes a new store with everything that is intact and keeps the damaged file under another "
      "name. If the newest version of an object is damaged, the newest intact one that the store "
      "still has replaces it. Stop the server first.";
  repair.examples = "  drakkar store repair\n";
  repair.section = kSection;
  repair.max_arguments = 0;
  repair.flags = {kDataDirectoryFlag,
                  {"drop-damaged", 0, FlagType::kBool,
                   "Remove damaged objects instead of restoring an older version.", "false"}};
  repair.run = RunRepair;
  app.Add(std::move(repair));

  Command backup;
  backup.name = "store backup";
  backup.arguments = "FILE";
  backup.summary = "Save the contents of the store to a file";
  backup.help =
      "Saves a consistent snapshot of all objects; the server may be running. The file contains "
      "Secrets, so only its owner can read it. Certificates and keys are in the data directory's "
      "pki folder, not in the store: back them up as well. A backup of either store can be "
      "restored into the other one.";
  backup.examples =
      "  drakkar store backup /backup/cluster-1.backup\n"
      "  # from another machine, with less load on the server\n"
      "  drakkar store backup --kubeconfig admin.kubeconfig --rate 8Mi cluster.backup\n";
  backup.section = kSection;
  backup.min_arguments = 1;
  backup.max_arguments = 1;
  backup.flags =
      WithLocation({kDataDirectoryFlag,
                    kKubeconfigFlag,
                    {"rate", 0, FlagType::kString,
                     "Bytes per second to read at most; 0 for no limit.", "64Mi", "QUANTITY"}});
  backup.run = RunBackup;
  app.Add(std::move(backup));

  Command restore;
  restore.name = "store restore";
  restore.arguments = "FILE";
  restore.summary = "Replace the contents of the store with a backup";
  restore.help =
      "The backup is checked completely before anything is changed. Objects keep their resource "
      "versions, and new ones start far above them, so that clients notice and list again. Stop "
      "the server first. In etcd there must be no keys below --etcd-prefix, and objects get new "
      "resource versions.";
  restore.examples =
      "  drakkar store restore --force /backup/cluster-1.backup\n"
      "  drakkar store restore --etcd-servers http://127.0.0.1:2379 /backup/cluster-1.backup\n";
  restore.section = kSection;
  restore.min_arguments = 1;
  restore.max_arguments = 1;
  restore.flags =
      WithLocation({kDataDirectoryFlag,
                    {"force", 0, FlagType::kBool,
                     "Replace an existing store, which is kept under another name.", "false"}});
  restore.run = RunRestore;
  app.Add(std::move(restore));

  Command migrate;
  migrate.name = "store migrate";
  migrate.summary = "Move a cluster between the embedded store and etcd";
  migrate.help =
      "Copies all objects from the store in the data directory to etcd, or back, reads both again "
      "and compares them. The source is not changed. Stop all API servers first.";
  migrate.examples =
      "  drakkar store migrate --to etcd --etcd-servers http://127.0.0.1:2379\n"
      "  drakkar store migrate --to embedded --etcd-servers http://127.0.0.1:2379 --force\n";
  migrate.section = kSection;
  migrate.max_arguments = 0;
  migrate.flags = WithLocation(
      {kDataDirectoryFlag,
       {"to", 0, FlagType::kString, "Where the objects go: etcd or embedded.", "", "STORE"},
       {"force", 0, FlagType::kBool,
        "Replace an existing embedded store, which is kept under another name.", "false"}});
  migrate.run = RunMigrate;
  app.Add(std::move(migrate));
}

}  // namespace drakkar::cmd
