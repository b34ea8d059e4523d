//! The constants of the memory system: the same on every NVIDIA GPU since Volta, measured on an H200.

/// Threads of a block with 32 consecutive linear ids form a warp.
pub const WARP_LANES: u32 = 32;

/// Bytes of a sector: what global and local memory are fetched and written in.
pub const SECTOR_BYTES: u32 = 32;

/// Bytes of a line: four sectors with one tag in the L1.
pub const LINE_BYTES: u32 = 128;

/// Columns of shared memory; the bank of a byte address is `address / 4 % 32`.
pub const BANKS: u32 = 32;

/// Bytes of a word: the cell of a shared-memory bank, of constant memory and of interleaved local memory.
pub const WORD_BYTES: u32 = 4;

/// Bytes that one wavefront can move: each bank gives one word.
pub const WAVEFRONT_BYTES: u32 = BANKS * WORD_BYTES;

/// The widest access one instruction can make.
pub const WIDEST_ACCESS_BYTES: u32 = 16;

/// What `cudaMalloc` aligns a pointer to, in bytes.
pub const ALLOCATION_ALIGNMENT_BYTES: u32 = 256;
