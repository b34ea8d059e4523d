// Numbers that are not known, though something is known about them.
__global__ void open(float *out, const float *in, const int *flag, const int *first, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // 32 lanes of 4 bytes are 4 sectors; of the lanes whose flag is set, 1 to 4.
    if (flag[i] > 0) out[i] = 1;
    // The start of a block's part of `in` may lie within a sector: 4 or 5.
    out[i] += in[width * (first[blockIdx.x] + 1) + threadIdx.x];
    // A flag of the whole block: all its lanes or none, 4 sectors.
    if (flag[blockIdx.x] > 0) out[i] = 2;
}

int main() { open<<<1024, 256>>>(nullptr, nullptr, nullptr, nullptr, 97); }
