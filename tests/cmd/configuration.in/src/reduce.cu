__global__ void reduce() {}
