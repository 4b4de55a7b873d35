/* Ring operations against an array that never forgets: the bytes are a cache and then calls, see ../model.h. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#define FUZZ_NAME "ring"
#include "fuzz.h"
#include "../model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static md m;
    int ok = md_run(&m, data, size < 4096 ? size : 4096);
    fuzz_ops += m.ops;
    if (!ok) FUZZ_DIE("%s", m.why);
    return 0;
}
