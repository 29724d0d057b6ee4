#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/text.h"
#include "sdk/metadata/output.h"

namespace {

using drakkar::metadata::Query;

constexpr char kUsage[] =
    "usage: drakkar-metadata [CLAIM [REQUEST]] [-o json|env|jsonpath=TEMPLATE] [--wait SECONDS]\n"
    "\n"
    "Prints the metadata of this container's devices (KEP-5304). CLAIM is the name of the\n"
    "ResourceClaim or its name in the pod; without it, everything is printed.\n"
    "\n"
    "  -o, --output FORMAT   json (default), env (lines for eval), jsonpath=TEMPLATE\n"
    "      --file FILE       read this file instead\n"
    "      --wait SECONDS    how long to wait for missing metadata\n"
    "      --root DIR        root directory to search, for example that of another container\n"
    "\n"
    "Exit status: 0 printed, 1 failed, 2 bad arguments, 3 no metadata yet. If only some metadata "
    "is\n"
    "available, that is printed, standard error lists the missing files, and with --wait the exit\n"
    "status is 3.\n"
    "\n"
    "  eval \"$(drakkar-metadata my-claim gpu -o env --wait 10)\"\n"
    "  drakkar-metadata my-claim gpu -o "
    "jsonpath='{.requests[0].devices[0].attributes.model.string}'\n";

int Complain(std::string_view problem) {
  std::fprintf(stderr, "drakkar-metadata: %.*s\n", static_cast<int>(problem.size()),
               problem.data());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Query query;
  std::string root;
  std::vector<std::string> names;
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string flag = words[i];
    if (flag == "-h" || flag == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (flag.empty() || flag[0] != '-') {
      names.push_back(flag);
      continue;
    }
    std::string value;
    const std::size_t equals = flag.starts_with("--") ? flag.find('=') : std::string::npos;
    if (equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    } else if (flag.size() > 2 && flag.starts_with("-o")) {
      value = flag.substr(2);
      flag = "-o";
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      return Complain(flag + " is unknown or needs a value; see --help");
    }
    if (flag == "-o" || flag == "--output") {
      query.output = value;
    } else if (flag == "--file") {
      query.file = value;
    } else if (flag == "--root") {
      root = value;
    } else if (flag == "--wait") {
      if (value.ends_with('s')) value.pop_back();
      const auto seconds = drakkar::ParseInt64(value);
      if (!seconds || *seconds < 0 || *seconds > 1'000'000) {
        return Complain("--wait must be a number of seconds");
      }
      query.wait = std::chrono::seconds(*seconds);
    } else {
      return Complain("unknown flag " + flag + "; see --help");
    }
  }
  if (names.size() > 2) return Complain("expected at most a claim and a request; see --help");
  if (!names.empty()) query.claim = names[0];
  if (names.size() > 1) query.request = names[1];

  drakkar::metadata::Reader::Options options;
  options.root = root;
  drakkar::metadata::Reader reader(options);
  std::vector<std::string> pending;
  const auto text = RunQuery(query, reader, pending);
  if (text.ok()) {
    const bool written = std::fwrite(text->data(), 1, text->size(), stdout) == text->size() &&
                         std::fflush(stdout) == 0;
    std::string note;
    const int status = PartialExit(query, pending, note);
    std::fputs(note.c_str(), stderr);
    return written ? status : 1;
  }
  Complain(text.error().message);
  switch (text.error().code) {
    case drakkar::ErrorCode::kNotFound:
    case drakkar::ErrorCode::kDeadlineExceeded:
      return 3;
    default:
      return 1;
  }
}
