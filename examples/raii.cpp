// raii.cpp - the library from C++: memory that frees itself, statuses that throw, a cache that may be moved (all state
// lies in its memory, so the handle is free to move), spans of tokens instead of pointers.
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

static void check(swa_status status) {
    if (status != SWA_OK) throw std::runtime_error(swa_status_str(status));
}

class Cache {
public:
    explicit Cache(const swa_cache_desc &desc, int parts = 1)
        : memory(swa_cache_bytes(&desc)), scratch(swa_cache_scratch_bytes(&desc, parts)) {
        check(swa_cache_init(&handle, &desc, memory.data(), memory.size()));
        check(swa_cache_set_scratch(&handle, scratch.data(), scratch.size()));
    }
    Cache(Cache &&from) noexcept { *this = std::move(from); }
    Cache &operator=(Cache &&from) noexcept {
        memory = std::move(from.memory);
        scratch = std::move(from.scratch);
        handle = from.handle;
        from.handle = {}; // which every call refuses: what was moved from is no alias
        return *this;
    }
    Cache(const Cache &) = delete;
    Cache &operator=(const Cache &) = delete;

    void begin(int seq, int64_t pos, int32_t n) { check(swa_step_one(&handle, seq, pos, n)); }
    void begin(std::vector<swa_run> &runs) {
        check(swa_step_begin(&handle, runs.data(), static_cast<int>(runs.size())));
    }
    void attend(int layer, const swa_attn &attn) { check(swa_attend(&handle, layer, &attn)); }
    int64_t end(int seq) const { return swa_cache_end(&handle, seq); }

private:
    std::vector<unsigned char> memory, scratch;
    swa_cache handle = {};
};

static std::vector<float> numbers(std::size_t n, unsigned seed) {
    std::vector<float> x(n);
    for (float &v : x) {
        seed = seed * 1664525u + 1013904223u;
        v = static_cast<float>(seed >> 8) / 8388608.0f - 1.0f;
    }
    return x;
}

int main() {
    constexpr int heads = 4, kv_heads = 2, dim = 16;
    constexpr int32_t tokens = 80;
    const swa_window window = swa_window_sliding(32);
    swa_cache_desc desc = {};
    desc.shape.n_heads = heads;
    desc.shape.n_kv_heads = kv_heads;
    desc.shape.head_dim = dim;
    desc.n_layers = 1;
    desc.windows = &window;
    desc.n_windows = 1;
    const std::vector<float> q = numbers(tokens * heads * dim, 1), k = numbers(tokens * kv_heads * dim, 2),
                             v = numbers(tokens * kv_heads * dim, 3);
    std::vector<float> whole(q.size()), single(q.size());

    auto attend = [&](Cache &cache, int32_t pos, int32_t n, std::vector<float> &out) {
        swa_attn a = {};
        a.q.p = &q[static_cast<std::size_t>(pos) * heads * dim];
        a.k.p = &k[static_cast<std::size_t>(pos) * kv_heads * dim];
        a.v.p = &v[static_cast<std::size_t>(pos) * kv_heads * dim];
        a.out.p = &out[static_cast<std::size_t>(pos) * heads * dim];
        cache.begin(0, pos, n);
        cache.attend(0, a);
    };
    Cache first(desc);
    attend(first, 0, tokens, whole);
    Cache moved(desc);
    for (int32_t pos = 0; pos < tokens; pos++) {
        Cache next(std::move(moved)); // moved in the middle of the text
        attend(next, pos, 1, single);
        moved = std::move(next);
    }
    std::printf(
        "%lld tokens, one by one: %s as in one call\n", static_cast<long long>(moved.end(0)),
        std::memcmp(whole.data(), single.data(), whole.size() * sizeof(float)) == 0 ? "the same bits" : "OTHER BITS");
    try {
        moved.begin(0, 7, 1); // neither the end nor a rewind that is meant
    } catch (const std::runtime_error &e) { std::printf("refused: %s\n", e.what()); }
    return 0;
}
