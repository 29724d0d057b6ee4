/* Prints the QEMU arguments that pass the container's devices on to a virtual machine, one a line.
 *
 *   vm-args CLAIM [REQUEST]
 *
 * A launcher such as KubeVirt's needs one fact per device: the address of a PCI function, or the
 * UUID of a mediated device. Both are in the device metadata (KEP-5304), so the launcher needs no
 * access to the API server and no knowledge of the driver. */
#include <stdio.h>
#include <string.h>

#include "drakkar_metadata.h"

/* Drivers publish the standard attribute; the proposal's examples use the older prefix. */
static const char* const kPciBusId[] = {"resource.kubernetes.io/pciBusID",
                                        "resource.k8s.io/pciBusID", "pciBusID"};
static const char* const kMdevUuid[] = {"mdevUUID"};

/* How long a driver may take to write metadata that is not known when the container starts. */
enum { kWaitMs = 30000 };

static const char* find(const drakkar_metadata* metadata, size_t device, const char* const* names,
                        size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const char* text = drakkar_metadata_attribute_text(metadata, 0, device, names[i]);
    if (text != NULL) return text;
  }
  return NULL;
}

/* The value becomes part of a command line, so it must be what it claims to be. */
static int is_made_of(const char* text, const char* characters) {
  return *text != '\0' && strspn(text, characters) == strlen(text);
}

static int print_device(const drakkar_metadata* metadata, size_t index) {
  drakkar_metadata_device device;
  if (drakkar_metadata_get_device(metadata, 0, index, &device) != DRAKKAR_METADATA_OK) return 0;
  const char* uuid = find(metadata, index, kMdevUuid, sizeof kMdevUuid / sizeof *kMdevUuid);
  const char* bus_id = find(metadata, index, kPciBusId, sizeof kPciBusId / sizeof *kPciBusId);
  if (uuid != NULL && is_made_of(uuid, "0123456789abcdefABCDEF-")) {
    printf("-device vfio-pci,sysfsdev=/sys/bus/mdev/devices/%s\n", uuid);
    return 1;
  }
  if (bus_id != NULL && is_made_of(bus_id, "0123456789abcdefABCDEF:.")) {
    printf("-device vfio-pci,host=%s\n", bus_id);
    return 1;
  }
  fprintf(stderr, "vm-args: device %s/%s/%s has neither a valid pciBusID nor a valid mdevUUID\n",
          device.driver, device.pool, device.name);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: vm-args CLAIM [REQUEST]\n");
    return 2;
  }
  drakkar_metadata* metadata = NULL;
  char* error = NULL;
  if (drakkar_metadata_read(argv[1], argc == 3 ? argv[2] : NULL, kWaitMs, &metadata, &error) !=
      DRAKKAR_METADATA_OK) {
    fprintf(stderr, "vm-args: %s\n", error);
    drakkar_metadata_free_text(error);
    return 1;
  }
  drakkar_metadata_claim claim;
  int ok = drakkar_metadata_get_claim(metadata, 0, &claim) == DRAKKAR_METADATA_OK;
  for (size_t i = 0; ok && i < claim.device_count; ++i) ok = print_device(metadata, i);
  drakkar_metadata_free(metadata);
  return ok ? 0 : 1;
}
