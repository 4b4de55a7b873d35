/* The entry of a Windows program without the start-up code of a C compiler. */
#include <stdlib.h>
int _fltused = 1;
int main(void);
void start(void);
void start(void) { exit(main()); }
