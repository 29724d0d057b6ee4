#include <chrono>

#include "cmd/drakkar/command_groups.h"
#include "sdk/metadata/output.h"

namespace drakkar::cmd {
namespace {

// The same as the `drakkar-metadata` binary.
int RunMetadata(const cli::Arguments& arguments, cli::Console& console) {
  metadata::Query query;
  const std::vector<std::string>& names = arguments.positionals();
  if (!names.empty()) query.claim = names[0];
  if (names.size() > 1) query.request = names[1];
  query.file = arguments.Text("file");
  query.output = arguments.Text("output");
  query.wait = arguments.Time("wait");
  metadata::Reader::Options options;
  options.root = arguments.Text("root");
  metadata::Reader reader(options);
  std::vector<std::string> pending;
  const Result<std::string> text = RunQuery(query, reader, pending);
  if (text.ok()) {
    std::string note;
    const int status = PartialExit(query, pending, note);
    console.Out(*text);
    console.Err(note);
    return status;
  }
  console.Error(text.error().message);
  const ErrorCode code = text.error().code;
  const bool not_yet = code == ErrorCode::kNotFound || code == ErrorCode::kDeadlineExceeded;
  return not_yet ? 3 : cli::kExitFailure;
}

}  // namespace

void AddMetadataCommand(cli::App& app) {
  app.Add(
      {.name = "metadata",
       .arguments = "[CLAIM [REQUEST]]",
       .summary = "Print the metadata of this container's devices",
       .help =
           "Reads device metadata (KEP-5304) inside a container, in any version. CLAIM is the "
           "name of the ResourceClaim or its name in the pod; without it, everything is printed. "
           "Exits with 3 if there is no metadata yet. If only some is available, that is printed, "
           "the missing files are listed on standard error, and with --wait the exit status is 3.",
       .examples = "  drakkar metadata my-claim gpu -o env --wait 10s\n"
                   "  drakkar metadata my-claim gpu -o jsonpath='{.requests[0].devices[0].name}'\n",
       .flags = {{.name = "output",
                  .short_name = 'o',
                  .help = "Output format: json, env or jsonpath=TEMPLATE.",
                  .default_value = "json",
                  .placeholder = "FORMAT"},
                 {.name = "file", .help = "Read this file instead.", .placeholder = "FILE"},
                 {.name = "wait",
                  .type = cli::FlagType::kDuration,
                  .help = "How long to wait for missing metadata.",
                  .default_value = "0s",
                  .placeholder = "TIME"},
                 {.name = "root",
                  .help = "Root directory to search, for example that of another container.",
                  .placeholder = "DIR"}},
       .max_arguments = 2,
       .section = "Other",
       .run = RunMetadata});
}

}  // namespace drakkar::cmd
