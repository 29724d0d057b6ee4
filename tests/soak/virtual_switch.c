// A network switch in user space, for kernels without netem: connects the machines of a soak test
// and delays, loses and throttles what they send each other, per direction.
//
// usage: virtual_switch LINKS NAMESPACE...
//
// Makes a TAP interface "eth0" in each network namespace of /run/netns ("-": the one it is started
// in, where the interface is "eth0", too) and forwards frames between them by the last byte of
// their destination address: port n has the address 02:00:00:00:00:n. LINKS is a file with one
// `struct Link` per pair of ports, which the test writes while this runs. It prints "ready" and
// ends with the test.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kPortsMax = 32, kFrameBytesMax = 9216, kQueuedMax = 512 };

// What happens to frames from one port to another. All zero: nothing.
struct Link {
  int32_t lost_per_million;
  int32_t delay_microseconds;
  int32_t jitter_microseconds;
  int32_t bytes_per_second;  // 0: unlimited
};

struct Frame {
  struct Frame* next;
  int64_t due;  // nanoseconds
  int bytes;
  unsigned char data[];
};

// Frames leave in order. A frame that finds kQueuedMax others waiting is dropped, as in a router.
struct Queue {
  struct Frame *first, *last;
  int length;
  int64_t busy_until;
};

static int ports;
static int taps[kPortsMax];
static const volatile struct Link* links;
static struct Queue queues[kPortsMax][kPortsMax];

static void Die(const char* what) {
  perror(what);
  exit(1);
}

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int MakeTap(const char* namespace, int own) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", namespace);
  const int entered = strcmp(namespace, "-") == 0 ? own : open(path, O_RDONLY | O_CLOEXEC);
  if (entered < 0 || setns(entered, CLONE_NEWNET) != 0) Die(path);
  if (entered != own) close(entered);
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tap < 0) Die("/dev/net/tun");
  struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
  strcpy(request.ifr_name, "eth0");
  if (ioctl(tap, TUNSETIFF, &request) != 0) Die("TUNSETIFF");
  if (setns(own, CLONE_NEWNET) != 0) Die("setns");
  return tap;
}

static void Deliver(int to, const unsigned char* data, int bytes) {
  // A full or disabled interface loses the frame, as a network does.
  if (write(taps[to], data, (size_t)bytes) < 0) return;
}

static void Send(int from, int to, const unsigned char* data, int bytes, int64_t now) {
  const volatile struct Link* link = &links[from * ports + to];
  const int is_arp = data[12] == 0x08 && data[13] == 0x06;
  if (is_arp) return Deliver(to, data, bytes);  // the test is about IP
  const int32_t lost = link->lost_per_million;
  if (lost > 0 && random() % 1000000 < lost) return;
  struct Queue* queue = &queues[from][to];
  int64_t due = now + link->delay_microseconds * 1000LL;
  if (link->jitter_microseconds > 0) due += random() % link->jitter_microseconds * 1000LL;
  if (link->bytes_per_second > 0) {
    if (queue->busy_until < now) queue->busy_until = now;
    queue->busy_until += bytes * 1000000000LL / link->bytes_per_second;
    if (due < queue->busy_until) due = queue->busy_until;
  }
  if (queue->last != NULL && due < queue->last->due) due = queue->last->due;
  if (due <= now && queue->first == NULL) return Deliver(to, data, bytes);
  if (queue->length >= kQueuedMax) return;
  struct Frame* frame = malloc(sizeof *frame + (size_t)bytes);
  if (frame == NULL) Die("malloc");
  frame->next = NULL;
  frame->due = due;
  frame->bytes = bytes;
  memcpy(frame->data, data, (size_t)bytes);
  if (queue->last != NULL) {
    queue->last->next = frame;
  } else {
    queue->first = frame;
  }
  queue->last = frame;
  ++queue->length;
}

// Delivers what is due. Returns when the next frame is, or -1.
static int64_t Flush(int64_t now) {
  int64_t next = -1;
  for (int from = 0; from < ports; ++from) {
    for (int to = 0; to < ports; ++to) {
      struct Queue* queue = &queues[from][to];
      while (queue->first != NULL && queue->first->due <= now) {
        struct Frame* frame = queue->first;
        queue->first = frame->next;
        if (queue->first == NULL) queue->last = NULL;
        --queue->length;
        Deliver(to, frame->data, frame->bytes);
        free(frame);
      }
      if (queue->first != NULL && (next < 0 || queue->first->due < next)) next = queue->first->due;
    }
  }
  return next;
}

static void Forward(int from, const unsigned char* data, int bytes, int64_t now) {
  if (bytes < 14) return;
  if ((data[0] & 1) == 0) {
    const int to = data[5];
    if (to < ports && to != from) Send(from, to, data, bytes, now);
    return;
  }
  for (int to = 0; to < ports; ++to) {
    if (to != from) Send(from, to, data, bytes, now);
  }
}

int main(int count, char** arguments) {
  ports = count - 2;
  if (ports < 1 || ports > kPortsMax) {
    fprintf(stderr, "usage: virtual_switch LINKS NAMESPACE...\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int file = open(arguments[1], O_RDONLY | O_CLOEXEC);
  const size_t bytes = sizeof(struct Link) * (size_t)ports * (size_t)ports;
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) Die(arguments[1]);
  if ((size_t)status.st_size < bytes) {
    fprintf(stderr, "%s: must have %zu bytes\n", arguments[1], bytes);
    return 2;
  }
  links = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (links == MAP_FAILED) Die("mmap");
  const int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  struct pollfd waits[kPortsMax];
  for (int port = 0; port < ports; ++port) {
    taps[port] = MakeTap(arguments[2 + port], own);
    waits[port] = (struct pollfd){.fd = taps[port], .events = POLLIN};
  }
  puts("ready");
  fflush(stdout);
  for (;;) {
    const int64_t next = Flush(Now());
    struct timespec timeout = {0, 0};
    if (next >= 0) {
      int64_t left = next - Now();
      if (left < 0) left = 0;
      timeout.tv_sec = left / 1000000000LL;
      timeout.tv_nsec = left % 1000000000LL;
    }
    if (ppoll(waits, (nfds_t)ports, next >= 0 ? &timeout : NULL, NULL) < 0) continue;
    const int64_t now = Now();
    for (int port = 0; port < ports; ++port) {
      if ((waits[port].revents & POLLIN) == 0) continue;
      unsigned char data[kFrameBytesMax];
      // At most this many at a time, so that nobody waits for a busy port.
      for (int frames = 0; frames < 64; ++frames) {
        const ssize_t got = read(taps[port], data, sizeof data);
        if (got <= 0) break;
        Forward(port, data, (int)got, now);
      }
    }
  }
}
