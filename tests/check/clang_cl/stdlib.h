/* See string.h. */
#include <stddef.h>
void *malloc(size_t), *calloc(size_t, size_t), free(void *), exit(int);
