#include "node/pods/pod_worker.h"

#include <algorithm>

#include "base/text/text.h"
#include "client/event_recorder.h"
#include "node/pods/image_pull_queue.h"
#include "node/runtime/images/image_name.h"
#include "node/runtime/registry/credentials.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.pods");

std::string Seconds(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms < 1000) return StrCat(ms, "ms");
  std::string fraction = std::to_string(ms % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  return StrCat(ms / 1000, ".", fraction, "s");
}

std::string ContainerOf(const std::string& key) {
  return key.substr(0, key.find('/'));
}

}  // namespace

bool PodWorker::IsPulling(const std::string& container) const {
  return std::ranges::any_of(pulls_, [&](const auto& each) {
    return each.second.in_flight && ContainerOf(each.first) == container;
  });
}

// All pulls of a container begin at once.
bool PodWorker::HasImages(const ContainerFacts& container) {
  bool all = HasImage(container.name, std::string(container.spec["image"].str()),
                      container.spec["imagePullPolicy"].str());
  for (Value use : container.spec["volumeMounts"].elements()) {
    for (Value volume : root()["spec"]["volumes"].elements()) {
      const Value source = volume["image"];
      if (!source.has_value() || volume["name"].str() != use["name"].str()) continue;
      all &= HasImage(StrCat(container.name, "/", volume["name"].str()),
                      std::string(source["reference"].str()), source["pullPolicy"].str());
    }
  }
  return all;
}

// True if the image is present and as recent as the pull policy requires. Otherwise a pull was
// started, or the reason is recorded and the next attempt scheduled.
bool PodWorker::HasImage(const std::string& key, const std::string& image,
                         std::string_view policy) {
  const std::string name = ContainerOf(key);
  ImagePull& pull = pulls_[key];
  if (pull.in_flight) return false;
  if (pull.image != image) pull = {.image = image};
  auto present = context_.runtime.ImageStatus(image);
  if (!present.ok() && present.error().code != ErrorCode::kNotFound) {
    FailContainer(name, "ImageInspectError", present.error().message);
    return false;
  }
  // Names of the registry "localhost", without a port, are only ever imported.
  const bool is_local = image.starts_with("localhost/");
  const bool may_pull = policy != "Never" && !is_local;
  const bool is_stale =
      policy == "Always" && !pull.is_fresh && may_pull && !context_.runtime.IsImported(image);
  if (present.ok() && !is_stale) {
    if (!pull.is_fresh) {
      context_.events.Normal(
          pod_, "Pulled", StrCat("Container image ", Quote(image), " already present on machine"));
    }
    return true;
  }
  if (policy == "Never") {
    waiting_[name] = {
        "ErrImageNeverPull",
        StrCat("Container image ", Quote(image),
               " is not present with pull policy of Never; import it with: drakkar image import "
               "FILE --name ",
               image)};
    context_.events.Warning(pod_, "ErrImageNeverPull", waiting_[name].message);
    context_.events.Warning(pod_, "Failed", "Error: ErrImageNeverPull");
    ContainerRetry& retry = container_retry_[name];
    retry.at = Tick() + retry.backoff.Next();
    StepAgain();
    return false;
  }
  if (is_local) {
    FailContainer(name, waiting_.contains(name) ? "ImagePullBackOff" : "ErrImagePull",
                  present.error().message);
    return false;
  }
  StartPull(key, image);
  return false;
}

void PodWorker::StartPull(const std::string& key, const std::string& image) {
  ImagePull& pull = pulls_[key];
  pull.in_flight = true;
  pull.begun = Tick();
  waiting_.erase(ContainerOf(key));
  context_.events.Normal(pod_, "Pulling", StrCat("Pulling image ", Quote(image)));
  auto ask = [this, key, image](std::vector<RegistryCredential> credentials) {
    PullRequest request{.image = image, .credentials = std::move(credentials)};
    auto done = lifetime_.Guard(
        [this, key, image](Result<Image> pulled) { OnPulled(key, image, std::move(pulled)); });
    if (context_.pulls != nullptr) return context_.pulls->Pull(std::move(request), done);
    context_.runtime.PullImage(std::move(request), done);
  };
  if (root()["spec"]["imagePullSecrets"].empty()) return ask({});
  FetchPodSources(
      context_.client, pod_, SourceUse::kImages, {tokens_, Now()},
      lifetime_.Guard([this, ask, image](Result<PodSources> sources) {
        ask(sources.ok() ? ImageCredentials(*sources, image) : std::vector<RegistryCredential>());
      }));
}

std::vector<RegistryCredential> PodWorker::ImageCredentials(const PodSources& sources,
                                                            const std::string& image) {
  std::vector<RegistryLogin> logins;
  std::vector<std::string> unusable;
  for (Value secret : root()["spec"]["imagePullSecrets"].elements()) {
    const std::string name(secret["name"].str());
    const auto data = sources.SecretData(name, /*optional=*/false);
    bool is_usable = false;
    for (const auto& [key, is_legacy] :
         {std::pair(".dockerconfigjson", false), std::pair(".dockercfg", true)}) {
      if (!data.ok() || !data->contains(key)) continue;
      auto parsed = ParseDockerConfig(data->at(key), is_legacy);
      if (!parsed.ok()) continue;
      is_usable = true;
      logins.insert(logins.end(), parsed->begin(), parsed->end());
    }
    if (!is_usable) unusable.push_back(name);
  }
  if (!unusable.empty()) {
    context_.events.Warning(
        pod_, "FailedToRetrieveImagePullSecret",
        StrCat("Unable to retrieve some image pull secrets (", Join(unusable, ", "),
               "); attempting to pull the image may not succeed."));
  }
  const auto full = NormalizeImageName(image);
  return full.ok() ? ChooseLogins(logins, *full) : std::vector<RegistryCredential>();
}

void PodWorker::OnPulled(const std::string& key, const std::string& image, Result<Image> pulled) {
  const std::string name = ContainerOf(key);
  ImagePull& pull = pulls_[key];
  pull.in_flight = false;
  if (pulled.ok()) {
    pull.is_fresh = true;
    pull.backoff.Reset();
    const std::string took = Seconds(Tick() - pull.begun);
    context_.events.Normal(
        pod_, "Pulled",
        StrCat("Successfully pulled image ", Quote(image), " in ", took, " (", took,
               " including waiting). Image size: ", pulled->size_bytes, " bytes."));
    return Sync();
  }
  kLog.Warning("could not pull image", {{"pod", pod_ ? pod_->qualified_name() : uid_},
                                        {"image", image},
                                        {"err", pulled.error().message}});
  pull.error = StrCat("failed to pull image ", Quote(image), ": ", pulled.error().message);
  waiting_[name] = {"ErrImagePull", pull.error};
  if (pod_) {
    context_.events.Warning(
        pod_, "Failed",
        StrCat("Failed to pull image ", Quote(image), ": ", pulled.error().message));
    context_.events.Warning(pod_, "Failed", "Error: ErrImagePull");
  }
  container_retry_[name].at = Tick() + pull.backoff.Next();
  pull.back_off_at = Tick() + kShowPullError;
  Sync();
}

// Some time after a failed pull, its status changes to back-off, as with a kubelet.
void PodWorker::ShowPullBackOff() {
  for (auto& [key, pull] : pulls_) {
    if (pull.in_flight || pull.back_off_at == MonotonicTime{}) continue;
    if (pull.back_off_at > Tick()) {
      ArmTimer(pull.back_off_at);
      continue;
    }
    pull.back_off_at = {};
    const auto found = waiting_.find(ContainerOf(key));
    if (found == waiting_.end() || found->second.reason != "ErrImagePull") continue;
    found->second = {"ImagePullBackOff", StrCat("Back-off pulling image ", Quote(pull.image),
                                                ": ErrImagePull: ", pull.error)};
    context_.events.Normal(pod_, "BackOff", StrCat("Back-off pulling image ", Quote(pull.image)));
    context_.events.Warning(pod_, "Failed", "Error: ImagePullBackOff");
  }
}

}  // namespace drakkar::node
