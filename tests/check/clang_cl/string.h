/* What matrix.c and swa.h need of a C library, declared: the headers of MSVC are not to be had here, and MinGW's take
   clang-cl for a compiler that knows no attributes. */
#include <stddef.h>
void *memcpy(void *, const void *, size_t), *memmove(void *, const void *, size_t), *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t), strcmp(const char *, const char *);
size_t strlen(const char *);
char *strcpy(char *, const char *), *strcat(char *, const char *);
