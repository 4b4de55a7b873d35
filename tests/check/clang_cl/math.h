/* See string.h. */
#define INFINITY __builtin_inff()
#define HUGE_VAL __builtin_inf()
double cos(double), sin(double), sqrt(double), log(double), pow(double, double), floor(double), ceil(double);
double fabs(double), exp(double), tanh(double), ldexp(double, int);
float fmaf(float, float, float), fabsf(float);
