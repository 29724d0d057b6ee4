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
    "\"ips\":[\"10.0.0.5/24\"],\"hardwareAddress\":\"aa:bb\"}},"
    "{\"driver\":\"e.example.com\",\"pool\":\"p\",\"name\":\"gpu-1\"}]},"
    "{\"name\":\"nic\",\"devices\":[{\"driver\":\"n.example.com\",\"pool\":\"p\","
    "\"name\":\"nic-0\",\"attributes\":{\"speed\":{\"int\":9}}}]}]}\n";

static int same(const char* a, const char* b) {
  return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Whatever does not exist is NULL or INVALID, never a crash. */
static void check_bounds(const drakkar_metadata* metadata) {
  drakkar_metadata_claim claim;
  drakkar_metadata_device device;
  drakkar_metadata_attribute attribute;
  int64_t number = 0;
  expect(drakkar_metadata_get_claim(metadata, 1, &claim) == DRAKKAR_METADATA_INVALID,
         "no second claim");
  expect(drakkar_metadata_get_device(metadata, 1, 0, &device) == DRAKKAR_METADATA_INVALID,
         "no device of a second claim");
  expect(drakkar_metadata_get_device(metadata, 0, 3, &device) == DRAKKAR_METADATA_INVALID,
         "no fourth device");
  expect(drakkar_metadata_get_attribute(metadata, 0, 0, 3, &attribute) == DRAKKAR_METADATA_INVALID,
         "no fourth attribute");
  expect(drakkar_metadata_get_attribute(metadata, 0, 9, 0, &attribute) == DRAKKAR_METADATA_INVALID,
         "no attribute of a tenth device");
  expect(drakkar_metadata_get_item(metadata, 0, 0, 1, 2) == NULL, "no third item");
  expect(drakkar_metadata_get_item(metadata, 0, 0, 9, 0) == NULL, "no item of a tenth attribute");
  expect(drakkar_metadata_get_ip(metadata, 0, 1, 0) == NULL, "no ip without network data");
  expect(drakkar_metadata_get_ip(metadata, 0, 9, 0) == NULL, "no ip of a tenth device");
  expect(drakkar_metadata_attribute_text(metadata, 0, 9, "model") == NULL, "no tenth device");
  expect(drakkar_metadata_attribute_text(metadata, 0, 0, NULL) == NULL, "no name");
  expect(drakkar_metadata_attribute_int(metadata, 0, 0, "no", &number) == DRAKKAR_METADATA_INVALID,
         "no such int");
  expect(drakkar_metadata_pending_count(metadata) == 0, "a file is never partial");
  expect(drakkar_metadata_get_pending(metadata, 0) == NULL, "nothing is pending");
}

static void check_all_devices(const drakkar_metadata* metadata) {
  drakkar_metadata_device device;
  drakkar_metadata_attribute attribute;
  expect(drakkar_metadata_get_device(metadata, 0, 1, &device) == DRAKKAR_METADATA_OK &&
             same(device.request, "gpu") && same(device.driver, "e.example.com") &&
             same(device.name, "gpu-1"),
         "the second device");
  expect(!device.has_network_data && device.interface_name == NULL &&
             device.hardware_address == NULL && device.ip_count == 0 && device.attribute_count == 0,
         "has nothing else");
  expect(drakkar_metadata_get_device(metadata, 0, 2, &device) == DRAKKAR_METADATA_OK &&
             same(device.request, "nic") && same(device.name, "nic-0"),
         "the second request's");
  int64_t number = 0;
  expect(
      same(drakkar_metadata_attribute_text(metadata, 0, 2, "speed"), "9") &&
          drakkar_metadata_attribute_int(metadata, 0, 2, "speed", &number) == DRAKKAR_METADATA_OK &&
          number == 9 && drakkar_metadata_attribute_text(metadata, 0, 0, "speed") == NULL,
      "has its own attributes");
  expect(drakkar_metadata_get_attribute(metadata, 0, 2, 0, &attribute) == DRAKKAR_METADATA_OK &&
             same(attribute.name, "speed") &&
             same(drakkar_metadata_get_item(metadata, 0, 2, 0, 0), "9"),
         "by index, too");
  expect(drakkar_metadata_get_attribute(metadata, 0, 0, 0, &attribute) == DRAKKAR_METADATA_OK &&
             same(attribute.name, "index") && attribute.type == DRAKKAR_METADATA_INT &&
             attribute.count == 1 && same(attribute.text, "7"),
         "a number");
  expect(same(drakkar_metadata_get_item(metadata, 0, 0, 0, 0), "7"), "as its only item");
  expect(drakkar_metadata_get_attribute(metadata, 0, 0, 1, &attribute) == DRAKKAR_METADATA_OK &&
             same(attribute.name, "list") && same(attribute.text, "a b"),
         "a list as one text");
}

/* Arguments that must not be null. */
static void check_arguments(const char* path) {
  drakkar_metadata* metadata = (drakkar_metadata*)path; /* anything but NULL */
  char* error = NULL;
  expect(drakkar_metadata_read_file(NULL, 0, &metadata, &error) == DRAKKAR_METADATA_INVALID &&
             metadata == NULL && same(error, "`path` and `metadata` must not be null"),
         "a path is required");
  drakkar_metadata_free_text(error);
  expect(drakkar_metadata_read_file(path, 0, NULL, NULL) == DRAKKAR_METADATA_INVALID,
         "a result is required");
  expect(drakkar_metadata_read(NULL, NULL, 0, &metadata, &error) == DRAKKAR_METADATA_INVALID &&
             same(error, "`claim` and `metadata` must not be null"),
         "a claim is required");
  drakkar_metadata_free_text(error);
  expect(drakkar_metadata_read("c", NULL, 0, NULL, NULL) == DRAKKAR_METADATA_INVALID,
         "a result is required for a claim");
  expect(drakkar_metadata_read_all(0, NULL, &error) == DRAKKAR_METADATA_INVALID &&
             same(error, "`metadata` must not be null"),
         "a result is required for all");
  drakkar_metadata_free_text(error);
  expect(drakkar_metadata_read_available(NULL, NULL, 0, NULL, NULL) == DRAKKAR_METADATA_INVALID,
         "a result is required for what is available");
  error = (char*)path;
  expect(drakkar_metadata_read_file(path, -5, &metadata, &error) == DRAKKAR_METADATA_OK &&
             error == NULL,
         "a negative timeout does not wait, and success clears the error");
  drakkar_metadata_free(metadata);
}

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
  expect(claim.generation == 4 && claim.device_count == 3, "its numbers");
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
  check_all_devices(metadata);
  check_bounds(metadata);
  drakkar_metadata_free(metadata);
  check_arguments(argv[1]);
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
