/* Prints the arguments a DPDK application needs for the interfaces its container got, one a line.
 *
 *   eal-args CLAIM [REQUEST]
 *
 * The PCI address selects the port (EAL's -a), the rest configures it. Interface name, addresses
 * and MTU are known only once the pod's network is set up: the driver writes them from its NRI
 * hook, before the first container starts (KEP-5304). */
#include <inttypes.h>
#include <stdio.h>

#include "drakkar_metadata.h"

enum { kWaitMs = 30000 };

static int print_device(const drakkar_metadata* metadata, size_t index) {
  drakkar_metadata_device device;
  if (drakkar_metadata_get_device(metadata, 0, index, &device) != DRAKKAR_METADATA_OK) return 0;
  const char* bus_id =
      drakkar_metadata_attribute_text(metadata, 0, index, "resource.kubernetes.io/pciBusID");
  if (!device.has_network_data || bus_id == NULL) {
    fprintf(stderr, "eal-args: device %s/%s/%s has no %s\n", device.driver, device.pool,
            device.name, bus_id == NULL ? "PCI address" : "network data");
    return 0;
  }
  int64_t mtu = 1500;
  drakkar_metadata_attribute_int(metadata, 0, index, "mtu",
                                 &mtu); /* keeps the default if there is none */
  printf("-a %s # %s mac=%s mtu=%" PRId64, bus_id, device.interface_name, device.hardware_address,
         mtu);
  for (size_t i = 0; i < device.ip_count; ++i)
    printf(" ip=%s", drakkar_metadata_get_ip(metadata, 0, index, i));
  printf("\n");
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: eal-args CLAIM [REQUEST]\n");
    return 2;
  }
  drakkar_metadata* metadata = NULL;
  char* error = NULL;
  if (drakkar_metadata_read(argv[1], argc == 3 ? argv[2] : NULL, kWaitMs, &metadata, &error) !=
      DRAKKAR_METADATA_OK) {
    fprintf(stderr, "eal-args: %s\n", error);
    drakkar_metadata_free_text(error);
    return 1;
  }
  drakkar_metadata_claim claim;
  int ok = drakkar_metadata_get_claim(metadata, 0, &claim) == DRAKKAR_METADATA_OK;
  for (size_t i = 0; ok && i < claim.device_count; ++i) ok = print_device(metadata, i);
  drakkar_metadata_free(metadata);
  return ok ? 0 : 1;
}
