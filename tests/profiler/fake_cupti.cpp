// A CUPTI without a GPU: what is done under an external number is one call and one kernel (or copy), whose records are as
// cupti_activity.h of CUDA 13.0 lays them out. Its clock is the monotonic one, from another origin.
#include <pthread.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#define EXPORT extern "C" __attribute__((visibility("default")))

typedef void (*Requested)(uint8_t **, size_t *, size_t *);
typedef void (*Completed)(void *, uint32_t, uint8_t *, size_t, size_t);

static Requested requested;
static Completed completed;
static uint8_t *buffer;
static size_t room, used, lost;
static uint64_t enabled, pushed[16];
static int depth, refused = -1, incomplete, copies, waits;
static uint32_t number = 100;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *name = "tt_kernel";

EXPORT uint64_t fake_origin = 1'000'000'000'000'000'000ull;
EXPORT void fake_refuse(int kind) { refused = kind; }
EXPORT void fake_incomplete(int on) { incomplete = on; }
EXPORT void fake_copies(int on) { copies = on; }
EXPORT void fake_waits(int on) { waits = on; }
EXPORT void fake_name(const char *n) { name = n; }
EXPORT uint64_t fake_enabled() { return enabled; }

static uint64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return fake_origin + uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

static size_t size_of(uint32_t kind) {
    switch (kind) {
    case 1: return 96;
    case 2: return 88;
    case 10: return 216;
    case 4: case 5: return 40;
    case 17: return 56;
    case 39: return 24;
    }
    return 0;
}

static void give_back() {
    if (!buffer) return;
    uint8_t *b = buffer;
    size_t size = room, valid = used;
    buffer = nullptr;
    completed(nullptr, 0, b, size, valid);
}

struct Record {
    uint8_t bytes[256] = {};
    template <class T> void put(size_t at, T value) { memcpy(bytes + at, &value, sizeof value); }
};

static void add(uint32_t kind, Record &r) {
    if (!(enabled >> kind & 1)) return;
    size_t size = size_of(kind), most;
    r.put(0, kind);
    if (buffer && used + size > room) give_back();
    if (!buffer) {
        used = 0;
        requested(&buffer, &room, &most);
        if (!buffer) {
            lost++;
            return;
        }
    }
    memcpy(buffer + used, r.bytes, size);
    used += size;
}

EXPORT int cuptiGetVersion(uint32_t *v) { *v = 130000; return 0; }
EXPORT int cuptiGetTimestamp(uint64_t *t) { *t = now(); return 0; }
EXPORT int cuptiGetResultString(int status, const char **text) { *text = status == 35 ? "not allowed" : "?"; return 0; }
EXPORT int cuptiGetCallbackName(int domain, uint32_t number, const char **text) {
    *text = domain != 1 ? nullptr : number == 307 ? "cuLaunchKernel" : "cuStreamSynchronize_v2";
    return 0;
}
EXPORT int cuptiActivityRegisterCallbacks(Requested r, Completed c) { requested = r; completed = c; return 0; }
EXPORT int cuptiActivityEnable(int kind) {
    if (kind == refused) return 35;
    enabled |= 1ull << kind;
    return 0;
}
EXPORT int cuptiActivityDisable(int kind) { enabled &= ~(1ull << kind); return 0; }
EXPORT int cuptiActivityFlushAll(uint32_t) {
    pthread_mutex_lock(&lock);
    give_back();
    pthread_mutex_unlock(&lock);
    return 0;
}
EXPORT int cuptiActivityGetNextRecord(uint8_t *b, size_t valid, uint8_t **record) {
    uint8_t *next = *record ? *record + size_of(*(uint32_t *)*record) : b;
    if (next >= b + valid) return 12;
    if (!size_of(*(uint32_t *)next)) return 21;
    *record = next;
    return 0;
}
EXPORT int cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t *n) { *n = lost; lost = 0; return 0; }
EXPORT int cuptiActivityPushExternalCorrelationId(int, uint64_t id) { pushed[depth++] = id; return 0; }
EXPORT int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *) {
    uint64_t ours = pushed[--depth], t = now();
    pthread_mutex_lock(&lock);
    uint32_t own = number++;
    Record external, call, work, overhead;
    external.put(4, uint32_t(kind)), external.put(8, ours), external.put(16, own);
    add(39, external);
    call.put(4, uint32_t(307)), call.put(8, t - 2000), call.put(16, t - 1000);
    call.put(28, uint32_t(pthread_self())), call.put(32, own);
    add(4, call);
    work.put(16, t), work.put(24, incomplete ? uint64_t(0) : t + 5000);
    if (copies) {
        work.put(4, uint8_t(1)), work.put(8, uint64_t(4096)), work.put(32, 0u), work.put(40, 7u), work.put(44, own);
        add(1, work);
    } else {
        work.put(40, 0u), work.put(48, 7u), work.put(52, 11), work.put(56, 2), work.put(60, 1), work.put(64, 128);
        work.put(68, 1), work.put(72, 1), work.put(76, 16), work.put(80, 1024), work.put(92, own), work.put(104, name);
        add(10, work);
    }
    if (waits) {
        Record wait;
        wait.put(4, uint32_t(1)), wait.put(8, t + 100), wait.put(16, t + 200);
        wait.put(28, uint32_t(pthread_self())), wait.put(32, number++);
        add(4, wait);
    }
    overhead.put(4, uint32_t(1 << 16)), overhead.put(24, t), overhead.put(32, t + 70);
    add(17, overhead);
    pthread_mutex_unlock(&lock);
    return 0;
}
