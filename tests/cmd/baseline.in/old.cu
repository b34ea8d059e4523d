// cudalint: allow(no-such-rule)
__global__ void k() {}
