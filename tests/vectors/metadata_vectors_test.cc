// Compares the format and the writer of device metadata with Kubernetes', in the `kubernetes`
// dialect.
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/object.h"
#include "api/metadata/document.h"
#include "api/metadata/paths.h"
#include "api/metadata/validation.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "sdk/driver/metadata/metadata_store.h"
#include "tests/vectors/vector_case.h"

namespace drakkar {
namespace {

using api::Value;
using metadata::Dialect;

constexpr std::string_view kArea = "devicemetadata";

// --- decode ---

// The answer of Kubernetes' decoder for a document type ("" for the internal one).
std::string CheckDecoded(Value expected, std::string_view stream, std::string_view version) {
  const auto document = metadata::DecodeDocument(stream, {.dialect = Dialect::kKubernetes});
  const std::string_view error = expected["error"].str();
  if (!document.ok()) {
    return document.error().message == error ? "" : "refused: " + document.error().message;
  }
  if (!error.empty()) return StrCat("should be rejected: ", error);
  if (document->api_version != expected["source"].str()) return "source " + document->api_version;
  // Parsed again, because opaque values are not compared with trees.
  const api::TreePtr converted =
      *api::ParseJson(api::WriteJson(metadata::ConvertDocument(*document, version)->root()));
  if (!api::Equal(converted->root(), expected["object"])) {
    return StrCat("\n    should be ", api::WriteJson(expected["object"], {.sort_members = true}),
                  "\n    is        ", api::WriteJson(converted->root(), {.sort_members = true}));
  }
  const std::string problems = api::JoinFieldErrors(metadata::ValidateDocument(*document));
  if (problems != expected["validationError"].str()) return "validation: " + problems;
  return "";
}

std::string RunDecode(Value c) {
  for (const auto& [field, version] :
       {std::pair("toInternal", std::string_view()), std::pair("toV1alpha1", metadata::kV1alpha1),
        std::pair("toV1beta1", metadata::kV1beta1)}) {
    if (!c.Entry(field).has_value()) continue;
    const std::string problem = CheckDecoded(c.Entry(field), c["stream"].str(), version);
    if (!problem.empty()) return StrCat(field, ": ", problem);
  }
  return "";
}

// --- merging the files of a directory ---

std::string RunReadDirectory(Value c) {
  std::vector<metadata::DeviceMetadata> files;
  std::string error;
  for (const auto& [key, name, text] : c["files"].members()) {
    if (!name.ends_with("-metadata.json")) continue;
    auto file = metadata::DecodeMetadata(text.str(), {.dialect = Dialect::kKubernetes});
    if (!file.ok()) {
      error = StrCat("<dir>/", name, ": ", file.error().message);
      break;
    }
    files.push_back(*std::move(file));
  }
  if (files.empty() && error.empty()) error = "no metadata files found in <dir>";
  if (error != c["error"].str()) return "error: " + error;
  if (!error.empty()) return "";
  const std::string text = EncodeMetadata(metadata::MergeMetadata(files, Dialect::kKubernetes),
                                          std::vector{std::string(metadata::kV1beta1)});
  const auto document = metadata::DecodeDocument(text, {.dialect = Dialect::kKubernetes});
  if (!document.ok()) return document.error().message;
  const api::TreePtr merged = metadata::ConvertDocument(*document, "");
  return api::Equal(merged->root(), c["merged"]) ? "" : "merged: " + api::WriteJson(merged->root());
}

// --- writing ---

template <typename T, typename Read>
std::vector<T> ReadList(Value list, Read read) {
  std::vector<T> items;
  for (const Value item : list.elements()) items.push_back(read(item));
  return items;
}

metadata::AttributeValue ReadAttribute(Value attribute) {
  const auto text = [](Value value) { return std::string(value.str()); };
  const auto version = [](Value value) { return metadata::Version{std::string(value.str())}; };
  for (const auto& [key, type, value] : attribute.members()) {
    if (type == "int") return value.integer();
    if (type == "bool") return value.boolean();
    if (type == "string") return text(value);
    if (type == "version") return version(value);
    if (type == "ints") {
      return ReadList<std::int64_t>(value, [](Value item) { return item.integer(); });
    }
    if (type == "bools") return ReadList<bool>(value, [](Value item) { return item.boolean(); });
    if (type == "strings") return ReadList<std::string>(value, text);
    if (type == "versions") return ReadList<metadata::Version>(value, version);
  }
  return std::string();
}

std::vector<driver::PreparedDevice> ReadDevices(Value list) {
  return ReadList<driver::PreparedDevice>(list, [](Value value) {
    driver::PreparedDevice device;
    const auto text = [](Value item) { return std::string(item.str()); };
    device.request_names = ReadList<std::string>(value["requests"], text);
    device.pool_name = value["poolName"].str();
    device.device_name = value["deviceName"].str();
    const Value metadata = value["metadata"];
    if (!metadata.has_value()) return device;
    device.metadata.emplace();
    for (const auto& [key, name, attribute] : metadata["attributes"].members()) {
      device.metadata->attributes[std::string(name)] = ReadAttribute(attribute);
    }
    if (const Value network = metadata["networkData"]; network.is_object()) {
      device.metadata->network_data = {std::string(network["interfaceName"].str()),
                                       ReadList<std::string>(network["ips"], text),
                                       std::string(network["hardwareAddress"].str())};
    }
    return device;
  });
}

// The metadata files and CDI specs, without the driver's own records.
void Collect(FileSystem& files, const std::string& directory,
             std::map<std::string, std::string>& found) {
  const auto names = files.ListDirectory(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = JoinPath(directory, name);
    if (files.Stat(path)->type == FileType::kDirectory) {
      Collect(files, path, found);
    } else {
      found[path] = *files.ReadFile(path);
    }
  }
}

std::string CheckFiles(FileSystem& files, Value c, Value expected) {
  std::map<std::string, std::string> found;
  Collect(files, JoinPath(std::string(c["pluginDataDir"].str()), "dra-device-metadata"), found);
  Collect(files, std::string(c["cdiDir"].str()), found);
  for (const auto& [key, path, text] : expected.members()) {
    const auto file = found.find(std::string(path));
    if (file == found.end()) return StrCat("missing file ", path);
    if (file->second != text.str()) return StrCat(path, " is ", file->second);
    found.erase(file);
  }
  return found.empty() ? "" : "unexpected file " + found.begin()->first;
}

std::string ModeText(const FileInfo& info) {
  std::string text = "-";
  for (int bit = 8; bit >= 0; --bit) text += (info.mode >> bit) & 1 ? "xwr"[bit % 3] : '-';
  return text;
}

std::string RunWriter(Value c) {
  MemoryFileSystem files;
  const std::string driver_name(c["driver"].str());
  auto store = driver::MetadataStore::Create(
      {.files = files,
       .driver_name = driver_name,
       .directory = std::string(c["pluginDataDir"].str()),
       .cdi_directory = std::string(c["cdiDir"].str()),
       .versions =
           ReadList<std::string>(c["versions"], [](Value v) { return std::string(v.str()); }),
       .dialect = Dialect::kKubernetes});
  const std::string_view error = c["error"].str();
  const api::Object claim(*api::ParseJson(api::WriteJson(c["claim"])));
  std::vector<driver::PreparedDevice> devices = ReadDevices(c["devices"]);
  const Result<void> prepared =
      store.ok() ? (*store)->Prepare(claim, devices) : Result<void>(store.error());
  if (!prepared.ok()) {
    return prepared.error().message == error ? "" : "refused: " + prepared.error().message;
  }
  if (!error.empty()) return StrCat("should be rejected: ", error);
  std::size_t ids = 0;
  for (const auto& [key, request, id] : c["cdiDeviceIDs"].members()) {
    for (const driver::PreparedDevice& device : devices) {
      for (const std::string& own : device.cdi_device_ids) {
        if (own == id.str() && metadata::BaseRequest(device.request_names.front()) == request)
          ++ids;
      }
    }
  }
  if (ids != c["cdiDeviceIDs"].size()) return "the CDI ids differ";
  std::string problem = CheckFiles(files, c, c["files"]);
  if (!problem.empty()) return problem;
  for (const auto& [key, path, mode] : c["permissions"].members()) {
    const auto info = files.Stat(std::string(path));
    if (!info.ok() || ModeText(*info) != mode.str()) return StrCat("the mode of ", path);
  }
  if (const Value update = c["update"]; update.has_value()) {
    Result<void> updated = Ok();
    for (std::int64_t i = 0; i < update["times"].integer() && updated.ok(); ++i) {
      updated = (*store)->Update({std::string(claim.namespace_()), std::string(claim.name()),
                                  std::string(claim.uid()), std::string(update["request"].str())},
                                 ReadDevices(update["devices"]));
    }
    const std::string message = updated.ok() ? "" : updated.error().message;
    if (message != update["error"].str()) return "update: " + message;
    problem = CheckFiles(files, c, update["files"]);
    if (!problem.empty()) return "after the update: " + problem;
  }
  const auto removed = (*store)->Remove(
      {std::string(claim.namespace_()), std::string(claim.uid()), std::string(claim.name())});
  if (!removed.ok()) return removed.error().message;
  return CheckFiles(files, c, Value());
}

TEST(MetadataVectors, FormatAndWriterMatchKubernetes) {
  if (!vectors::Available(kArea)) {
    GTEST_SKIP() << "no vectors in " << vectors::Root() << "/" << kArea;
  }
  vectors::Tally tally(kArea);
  for (const auto& [file, run] :
       {std::pair("decode", &RunDecode), std::pair("read_request_dir", &RunReadDirectory),
        std::pair("writer", &RunWriter)}) {
    const auto cases = api::ParseJson(vectors::ReadText(kArea, StrCat(file, ".json")),
                                      {.refuse_duplicates = false});
    ASSERT_TRUE(cases.ok()) << cases.error().message;
    for (const Value c : (*cases)->root().elements()) {
      tally.Count(file, std::string(c["name"].str()), run(c));
    }
  }
  tally.Finish();
}

}  // namespace
}  // namespace drakkar
