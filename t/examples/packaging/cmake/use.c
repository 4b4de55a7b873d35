/* use.c - the smallest program that needs the library linked: what a package's own test runs. */
#include "swa.h"
#include <stdio.h>

int main(void) {
    swa_window window = swa_window_sliding(4);
    int keys = 0;
    for (int k = 0; k < 10; k++) keys += swa_visible(&window, 9, k);
    printf("swa.h %s: position 9 sees %d keys in a window of 4; best instruction set: %s\n", SWA_VERSION_STRING, keys,
           swa_isa_name(swa_isa_best()));
    return keys == 4 ? 0 : 1;
}
