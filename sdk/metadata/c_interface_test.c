/* Uses the interface from C, as a workload would: prints the contents of a file. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sdk/metadata/drakkar_metadata.h"

static int failures = 0;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s\n", what);
  failures++;
}

static int put(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const ssize_t size = (ssize_t)strlen(text);
  const int good = file >= 0 && write(file, text, (size_t)size) == size;
  if (file >= 0) close(file);
  return good;
}

static const char kText[] =
    "{\"kind\":\"DeviceMetadata\",\"apiVersion\":\"metadata.resource.k8s.io/"
    "v1beta1\",\"metadata\":{\"name\":\"c\","
    "\"namespace\":\"ns\",\"uid\":\"u\",\"generation\":4},\"podClaimName\":\"dev\",\"requests\":[{"
    "\"name\":\"gpu\",\"devices\":["
    "{\"driver\":\"d.example.com\",\"pool\":\"node\",\"name\":\"gpu-0\",\"attributes\":{\"index\":{"
    "\"int\":7},"
    "\"list\":{\"strings\":[\"a\",\"b\"]},\"model\":{\"string\":\"x\"}},\"networkData\":{"
    "\"interfaceName\":\"eth0\","
    "\"ips\":[\"10.0.0.5/24\"],\"hardwareAddress\":\"aa:bb\"}}]}]}\n";

int main(int argc, char** argv) {
  drakkar_metadata* metadata = NULL;
  drakkar_metadata_claim claim;
  drakkar_metadata_device device;
  drakkar_metadata_attribute attribute;
  char* error = NULL;
  int64_t number = 0;
  if (argc != 2) return 2;

  remove(argv[1]);
  expect(drakkar_metadata_read_file(argv[1], 0, &metadata, &error) == DRAKKAR_METADATA_NOT_YET,
         "absent is not yet");
  expect(error != NULL && metadata == NULL, "an error has a text");
  drakkar_metadata_free_text(error);
  expect(drakkar_metadata_read_file(argv[1], 30, &metadata, NULL) == DRAKKAR_METADATA_TIMEOUT,
         "waiting ends");

  if (!put(argv[1], "{broken")) return 2;
  expect(drakkar_metadata_read_file(argv[1], 0, &metadata, &error) == DRAKKAR_METADATA_INVALID,
         "broken is invalid");
  drakkar_metadata_free_text(error);

  if (!put(argv[1], kText)) return 2;
  if (drakkar_metadata_read_file(argv[1], 0, &metadata, &error) != DRAKKAR_METADATA_OK) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  expect(drakkar_metadata_claim_count(metadata) == 1, "one claim");
  expect(drakkar_metadata_get_claim(metadata, 0, &claim) == DRAKKAR_METADATA_OK, "the claim");
  expect(strcmp(claim.name, "c") == 0 && strcmp(claim.namespace_name, "ns") == 0, "its name");
  expect(strcmp(claim.uid, "u") == 0 && strcmp(claim.pod_claim_name, "dev") == 0,
         "its other names");
  expect(claim.generation == 4 && claim.device_count == 1, "its numbers");
  expect(drakkar_metadata_get_device(metadata, 0, 0, &device) == DRAKKAR_METADATA_OK, "the device");
  expect(strcmp(device.request, "gpu") == 0 && strcmp(device.driver, "d.example.com") == 0,
         "whose");
  expect(strcmp(device.pool, "node") == 0 && strcmp(device.name, "gpu-0") == 0, "which");
  expect(device.attribute_count == 3 && device.has_network_data && device.ip_count == 1, "counts");
  expect(
      strcmp(device.interface_name, "eth0") == 0 && strcmp(device.hardware_address, "aa:bb") == 0,
      "network");
  expect(strcmp(drakkar_metadata_get_ip(metadata, 0, 0, 0), "10.0.0.5/24") == 0, "ip");
  expect(drakkar_metadata_get_ip(metadata, 0, 0, 1) == NULL, "no second ip");
  expect(drakkar_metadata_attribute_int(metadata, 0, 0, "index", &number) == DRAKKAR_METADATA_OK &&
             number == 7,
         "int");
  expect(
      drakkar_metadata_attribute_int(metadata, 0, 0, "model", &number) == DRAKKAR_METADATA_INVALID,
      "no int");
  expect(strcmp(drakkar_metadata_attribute_text(metadata, 0, 0, "model"), "x") == 0, "text");
  expect(drakkar_metadata_attribute_text(metadata, 0, 0, "none") == NULL, "no such attribute");
  expect(drakkar_metadata_get_attribute(metadata, 0, 0, 1, &attribute) == DRAKKAR_METADATA_OK,
         "by number");
  expect(attribute.type == DRAKKAR_METADATA_STRINGS && attribute.count == 2, "a list");
  expect(strcmp(drakkar_metadata_get_item(metadata, 0, 0, 1, 1), "b") == 0, "its second item");
  expect(drakkar_metadata_get_device(metadata, 0, 1, &device) == DRAKKAR_METADATA_INVALID,
         "no second device");
  drakkar_metadata_free(metadata);
  expect(drakkar_metadata_read("../x", NULL, 0, &metadata, NULL) == DRAKKAR_METADATA_INVALID,
         "names are no paths");
  expect(drakkar_metadata_read_available("no-such-claim", NULL, 0, &metadata, NULL) ==
             DRAKKAR_METADATA_NOT_YET,
         "nothing at all is not yet");
  expect(drakkar_metadata_pending_count(NULL) == 0 && drakkar_metadata_get_pending(NULL, 0) == NULL,
         "nothing pending");
  remove(argv[1]);
  if (failures == 0) puts("ok");
  return failures != 0;
}
