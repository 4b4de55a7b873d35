/* See string.h. */
int printf(const char *, ...);
