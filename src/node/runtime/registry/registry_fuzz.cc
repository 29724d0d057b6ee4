// What registries send, and credentials for them. The first byte chooses the decoder.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result/check.h"
#include "base/text/text.h"
#include "node/runtime/images/image_name.h"
#include "node/runtime/images/oci_layout.h"
#include "node/runtime/registry/credentials.h"
#include "node/runtime/registry/image_puller.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0: {
      const auto manifest = node::ParseManifest(text);
      if (!manifest.ok()) break;
      // Digests become paths and URLs.
      CHECK(manifest->layers.size() <= node::kMaxImageLayers);
      CHECK(node::IsSha256Digest(manifest->next_digest.empty() ? manifest->config.digest
                                                               : manifest->next_digest));
      for (const node::BlobDescriptor& layer : manifest->layers) {
        CHECK(node::IsSha256Digest(layer.digest));
      }
      break;
    }
    case 1: {
      std::vector<std::string> headers;
      for (const std::string_view line : Split(text, '\n')) headers.emplace_back(line);
      const auto challenge = node::ParseChallenge(headers);
      if (challenge.ok() && challenge->is_bearer) CHECK(!challenge->realm.empty());
      break;
    }
    case 2:
      for (const bool is_legacy : {false, true}) {
        const auto logins = node::ParseDockerConfig(text, is_legacy);
        if (!logins.ok()) continue;
        CHECK(node::ChooseLogins(*logins, "registry.example.com/team/app:1").size() <=
              logins->size());
      }
      break;
    default: {
      const auto name = node::NormalizeImageName(text);
      if (!name.ok()) break;
      CHECK(*node::NormalizeImageName(*name) == *name);
      const auto reference = node::ParseImageReference(*name);
      if (!reference.ok()) break;
      // They become a URL: no part may begin another one.
      CHECK(reference->host.find_first_of("/?#@ ") == std::string::npos);
      CHECK(reference->repository.find("..") == std::string::npos);
      CHECK(reference->repository.find_first_of("?#@ %\\") == std::string::npos);
      CHECK(reference->tag.empty() != reference->digest.empty());
    }
  }
  return 0;
}
